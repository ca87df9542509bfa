/**
 * Defaults of kinds on an API server that does not run our admission: filled in right after an object has come, where upstream's
 * webhooks would have done it on the way in. Controllers wait for what is not there yet. Refusing is not possible any more by then:
 * schemas alone decide what such a server accepts.
 */
import { type Controller, proceed } from '@capstan/controller'
import { type Admission, diffMerge, draft, isDeleting, type Kind } from '@capstan/kube'

/** One controller for each kind that has defaults. Where admission runs they find nothing to do. */
export function lateDefaults(admission: readonly Admission[], kinds: readonly Kind[]): readonly Controller[] {
  return kinds.flatMap((kind) => {
    const all = admission.filter((one) => one.default && one.kind.plural === kind.plural && one.kind.group === kind.group)
    return all.length === 0 ? [] : [defaultsOf(kind, all)]
  })
}

const defaultsOf = (kind: Kind, admission: readonly Admission[]): Controller => ({
  name: `defaults/${kind.kind.toLowerCase()}`,
  for: kind,
  // A status has no defaults of the client.
  when: ({ previous, object }) => object !== undefined && previous?.metadata.generation !== object.metadata.generation,
  async reconcile(key, { cache, client, signal }) {
    const object = cache.peek(kind, key)
    if (!object || isDeleting(object)) return proceed()
    const filled = draft(object)
    for (const one of admission)
      await one.default!(filled, {
        operation: 'CREATE',
        oldObject: undefined,
        dryRun: false,
        userInfo: {},
        reader: client,
        warn() {},
      })
    const body = diffMerge(object, filled)
    if (body) await client.patch(kind, key, { type: 'merge', body }, { fieldManager: 'capstan-defaults', signal })
    return proceed()
  },
})
