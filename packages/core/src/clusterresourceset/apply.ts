/** Creates and updates objects in a workload cluster. Upstream: clusterresourceset_scope.go, v1.14. */
import type { ClusterResourceSet } from '@capstan/api'
import {
  type Client,
  diffMerge,
  isReason,
  type Kind,
  type KindFinder,
  type ObjectKey,
  orAbsent,
  parseApiVersion,
  type UnknownObject,
  withErrorContext,
} from '@capstan/kube'
import { throwAggregate } from '../aggregate-errors.ts'
import type { Manifest } from './manifests.ts'

/** The workload cluster in which objects are created and updated, and the strategy of the ClusterResourceSet. */
export interface ApplyTarget {
  readonly client: Client
  readonly findKind: KindFinder
  readonly strategy: ClusterResourceSet['spec']['strategy']
  readonly signal: AbortSignal
}

/**
 * Applies all objects in order, even after one has failed, unless the signal aborts.
 * @throws AggregateError with the distinct texts of all failures; the signal's reason if it aborts during a request
 */
export async function applyManifests(manifests: readonly Manifest[], target: ApplyTarget): Promise<void> {
  const failures: unknown[] = []
  for (const manifest of manifests) {
    try {
      await applyManifest(manifest, target)
    } catch (err) {
      target.signal.throwIfAborted()
      failures.push(err)
    }
  }
  throwAggregate(failures)
}

async function applyManifest(manifest: Manifest, { client, findKind, strategy, signal }: ApplyTarget): Promise<void> {
  const { name = '', namespace } = manifest.metadata ?? {}
  const objectText = `object ${kindText(manifest)} ${namespace ? `${namespace}/${name}` : name}`
  const create = async (kind: Kind<UnknownObject>) => {
    if (kind.scope === 'Namespaced' && !namespace) throw new Error('an empty namespace may not be set during creation')
    await client.create(kind, manifestInScope(kind, manifest) as unknown as UnknownObject, { signal })
  }
  const { apiVersion = '', kind: kindName = '' } = manifest
  // Looks up kind `X` for a list of kind `XList`, as upstream's client does.
  const itemKindName = Array.isArray(manifest.items) ? kindName.replace(/List$/, '') : kindName
  const findObjectKind = () => findKind({ apiVersion, kind: itemKindName }, signal)

  if (strategy === 'Reconcile') {
    const current = await withErrorContext(`reading ${objectText}`, async () => {
      const kind = await findObjectKind()
      if (kind.scope === 'Namespaced' && !namespace)
        throw new Error('an empty namespace may not be set when a resource name is provided')
      return { kind, object: await orAbsent(client.get(kind, keyIn(kind, namespace, name), { signal })) }
    })
    const { kind, object } = current
    if (object) {
      const body = changesTo(object, manifestInScope(kind, manifest))
      await withErrorContext(`patching ${objectText}`, () =>
        client.patch(kind, keyIn(kind, namespace, name), { type: 'merge', body }, { signal }),
      )
      return
    }
  }
  await withErrorContext(`creating ${objectText}`, async () => {
    try {
      await create(await findObjectKind())
    } catch (err) {
      if (strategy !== 'Reconcile' && isReason(err, 'AlreadyExists')) return
      throw err
    }
  })
}

/**
 * Returns the merge patch from the current object to its manifest. As upstream, the patch removes all fields that the manifest lacks; the
 * server ignores the removal of fields that it sets itself.
 */
export function changesTo(current: UnknownObject, manifest: Manifest): object {
  // With the current resourceVersion on both sides, the patch contains none, so that it also applies after later changes of the object.
  const { resourceVersion } = current.metadata
  return diffMerge(current, { ...manifest, metadata: { ...manifest.metadata, resourceVersion } }) ?? {}
}

/** Formats a kind as Go's GroupVersionKind: `apps/v1, Kind=Deployment`. */
function kindText({ apiVersion = '', kind = '' }: Manifest): string {
  const { group, version } = parseApiVersion(apiVersion)
  return `${group}/${version}, Kind=${kind}`
}

const keyIn = ({ scope }: Kind, namespace: string | undefined, name: string): ObjectKey =>
  scope === 'Namespaced' && namespace ? { namespace, name } : { name }

/** Returns the manifest; without its namespace if the object is cluster-scoped. */
function manifestInScope({ scope }: Kind, manifest: Manifest): Manifest {
  const { namespace: _, ...metadata } = manifest.metadata ?? {}
  return scope === 'Cluster' ? { ...manifest, metadata } : manifest
}
