/**
 * Sets the defaults of kinds on an API server that does not call our admission. Upstream, webhooks set them within the request; here a
 * controller sets them after an object is created and after each change of its spec. Until then, controllers that need a missing value,
 * such as `spec.replicas` of a MachineSet, wait for it. Only schemas validate objects on such a server, because a controller cannot reject
 * a stored object.
 */
import { type Controller, proceed } from '@capstan/controller'
import { type Admission, diffMerge, draft, isDeleting, type Kind } from '@capstan/kube'

/** Creates one controller for each kind with defaults. If admission runs, the controllers write nothing. */
export function lateDefaults(admission: readonly Admission[], kinds: readonly Kind[]): readonly Controller[] {
  return kinds.flatMap((kind) => {
    const defaulters = admission.filter(
      (entry) => entry.default && entry.kind.plural === kind.plural && entry.kind.group === kind.group,
    )
    return defaulters.length === 0 ? [] : [createDefaultsController(kind, defaulters)]
  })
}

const createDefaultsController = (kind: Kind, admission: readonly Admission[]): Controller => ({
  name: `defaults/${kind.kind.toLowerCase()}`,
  for: kind,
  // A change of the spec changes the generation, a change of the status does not; a status has no defaults.
  when: ({ previous, object }) => object !== undefined && previous?.metadata.generation !== object.metadata.generation,
  async reconcile(key, { cache, client, signal }) {
    const object = cache.peek(kind, key)
    if (!object || isDeleting(object)) return proceed()
    const defaulted = draft(object)
    for (const entry of admission)
      await entry.default!(defaulted, {
        operation: 'CREATE',
        oldObject: undefined,
        dryRun: false,
        userInfo: {},
        reader: client,
        warn() {},
      })
    const body = diffMerge(object, defaulted)
    if (body) await client.patch(kind, key, { type: 'merge', body }, { fieldManager: 'capstan-defaults', signal })
    return proceed()
  },
})
