/** Applies the resources of a ClusterResourceSet to one Cluster. Upstream: clusterresourceset_controller.go, v1.14. */
import {
  type Cluster,
  ClusterResourceSet,
  ClusterResourceSetBinding,
  ClusterResourceSetSecretType,
  type ResourceRef,
} from '@capstan/api'
import { ensureOwner } from '@capstan/controller'
import {
  conflict,
  ConfigMap,
  diffMerge,
  draft,
  ensureOwnerReference,
  isReason,
  type Kind,
  kindFinder,
  keyOf,
  messageOf,
  notFound,
  orAbsent,
  ownerReference,
  Secret,
  timestamp,
} from '@capstan/kube'
import { applyManifests } from './apply.ts'
import { entryOf, needsApply, recordResource } from './binding.ts'
import { readManifests } from './manifests.ts'
import { internalError, notApplied, UnsupportedSecretType, wrongSecretType } from './report.ts'
import type { AppliedReport, ResourceSetIO } from './scope.ts'

/** Result of applying the resources of a ClusterResourceSet to one Cluster. */
export interface ClusterResult {
  /**
   * Failure to report in the condition ResourcesApplied. Absent when all existing resources were applied, and after errors that the
   * condition does not cover.
   */
  readonly report?: AppliedReport
  readonly errors: readonly unknown[]
  /**
   * Errors of the write that records the results of the resources in the binding. As upstream, the condition ResourcesApplied does not
   * report these errors.
   */
  readonly bindingErrors?: readonly unknown[]
  /** Set when there is no connection to the workload cluster: the reason for waiting. A new connection triggers the next reconcile. */
  readonly wait?: string
}

type Source = Secret | ConfigMap

export async function applyToCluster(
  resourceSet: ClusterResourceSet,
  cluster: Cluster,
  io: ResourceSetIO,
): Promise<ClusterResult> {
  const read = await readSources(resourceSet, io)
  if (read.errors.length > 0) return read

  let existing: ClusterResourceSetBinding
  try {
    existing = await getOrCreateBinding(resourceSet, cluster, io)
  } catch (err) {
    return { ...read, errors: [err] }
  }
  const binding = draft(existing)
  ensureOwnerReference(binding, ownerReference(resourceSet, ClusterResourceSet))
  const applied = await applySources(resourceSet, cluster, binding.spec, read.sources, io)
  // Here, a missing resource is reported only if applying another resource failed without a report of its own.
  const result = applied.errors.length > 0 ? { ...read, ...applied } : applied
  try {
    await commitBinding(existing, binding, io)
  } catch (err) {
    return { ...result, bindingErrors: [err] }
  }
  return result
}

interface SourcesRead extends ClusterResult {
  /** Existing resources of a supported type, in the order of the spec. */
  readonly sources: readonly { readonly ref: ResourceRef; readonly source: Source }[]
}

/**
 * Reads the resources and makes the ClusterResourceSet an owner of those that exist and have a supported type, whether or not the Cluster
 * is reachable.
 */
async function readSources(resourceSet: ClusterResourceSet, io: ResourceSetIO): Promise<SourcesRead> {
  const sources: { ref: ResourceRef; source: Source }[] = []
  const errors: unknown[] = []
  let report: AppliedReport | undefined
  for (const ref of resourceSet.spec.resources) {
    const kind = (ref.kind === 'Secret' ? Secret : ConfigMap) as unknown as Kind<Source>
    const source = io.cache.peek(kind, { namespace: resourceSet.metadata.namespace!, name: ref.name })
    if (!source) {
      // No error: when the resource is created, a watch event triggers the next reconcile.
      report = internalError('RetrievingResourceFailed', notFound(kind, ref.name).message)
      continue
    }
    if (ref.kind === 'Secret' && (source as Secret).type !== ClusterResourceSetSecretType) {
      report = wrongSecretType(ref.name)
      errors.push(new Error(UnsupportedSecretType))
      continue
    }
    try {
      await ensureOwner(io, kind, source, ownerReference(resourceSet, ClusterResourceSet))
    } catch (err) {
      errors.push(err)
    }
    sources.push({ ref, source })
  }
  return { sources, errors, ...(report ? { report } : {}) }
}

async function applySources(
  resourceSet: ClusterResourceSet,
  cluster: Cluster,
  bindingSpec: ClusterResourceSetBinding['spec'],
  sources: SourcesRead['sources'],
  io: ResourceSetIO,
): Promise<ClusterResult> {
  const entry = entryOf(bindingSpec, resourceSet.metadata.name)
  const connection = io.clusters.connection(keyOf(cluster))
  if (!connection) {
    const problem = 'error getting client: connection to the workload cluster is down'
    return { report: internalError('RemoteClusterClientFailed', problem, 'Error'), errors: [], wait: problem }
  }
  const { strategy } = resourceSet.spec
  const target = { client: connection.client, findKind: kindFinder(connection.client), strategy, signal: io.signal }
  const errors: unknown[] = []
  let report: AppliedReport | undefined
  for (const { ref, source } of sources) {
    const lastAppliedTime = timestamp(io.clock.now())
    try {
      const { hash, objects } = readManifests(source, ref.kind)
      if (!needsApply(entry, ref, hash, strategy)) continue
      try {
        await applyManifests(objects, target)
        recordResource(entry, { ...ref, applied: true, hash, lastAppliedTime })
      } catch (err) {
        io.log.info('Failed to apply ClusterResourceSet resource', { [ref.kind]: ref.name, Cluster: cluster.metadata.name, err })
        report = notApplied(messageOf(err))
        recordResource(entry, { ...ref, applied: false, hash, lastAppliedTime })
        errors.push(err)
      }
    } catch (err) {
      recordResource(entry, { ...ref, applied: false, lastAppliedTime })
      errors.push(err)
    }
  }
  return { errors, ...(report ? { report } : {}) }
}

/**
 * Returns the binding of the Cluster. A missing binding is created before resources are applied, so that no resource is
 * applied when the binding cannot be created.
 *
 * @throws StatusError Conflict when the binding was created meanwhile, for example for another ClusterResourceSet
 */
async function getOrCreateBinding(
  resourceSet: ClusterResourceSet,
  cluster: Cluster,
  { cache, client, signal }: ResourceSetIO,
): Promise<ClusterResourceSetBinding> {
  const key = keyOf(cluster)
  const existing =
    cache.peek(ClusterResourceSetBinding, key) ?? (await orAbsent(client.get(ClusterResourceSetBinding, key, { signal })))
  if (existing) return existing
  const { name, namespace } = cluster.metadata
  const ownerReferences = [ownerReference(resourceSet, ClusterResourceSet)]
  const binding = { metadata: { name, namespace: namespace!, ownerReferences }, spec: { clusterName: name } }
  try {
    return await client.create(ClusterResourceSetBinding, binding, { signal })
  } catch (err) {
    throw isReason(err, 'AlreadyExists') ? conflict(ClusterResourceSetBinding, name, 'it was created meanwhile') : err
  }
}

/** @throws StatusError Conflict when the binding was changed meanwhile, for example for another ClusterResourceSet */
async function commitBinding(
  before: ClusterResourceSetBinding,
  after: ClusterResourceSetBinding,
  { client, signal }: ResourceSetIO,
): Promise<void> {
  if (!diffMerge(before, after)) return
  const { resourceVersion, ownerReferences } = after.metadata
  const body = { metadata: { resourceVersion, ownerReferences }, spec: { bindings: after.spec.bindings } }
  await client.patch(ClusterResourceSetBinding, keyOf(before), { type: 'merge', body }, { signal })
}
