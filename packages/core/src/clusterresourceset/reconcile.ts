import { Cluster, ClusterResourceSet, ClusterResourceSetFinalizer, ConditionOrder, pausedCondition } from '@capstan/api'
import { type Outcome, proceed, reconcileObject, requeue, wait } from '@capstan/controller'
import {
  appendAll,
  ConfigMap,
  isDeleting,
  isReason,
  labelSelector,
  messageOf,
  type ObjectKey,
  Secret,
  setConditions,
  withErrorContext,
} from '@capstan/kube'
import { reportLegacyConditions } from '../legacy-status.ts'
import { applyToCluster, type ClusterResult } from './cluster.ts'
import { remove } from './delete.ts'
import { applied, internalError } from './report.ts'
import type { AppliedReport, ResourceSetIO, ResourceSetScope } from './scope.ts'
import { resourceSetsOfSource } from './sources.ts'
import { throwAggregate } from '../aggregate-errors.ts'

/** Conditions that this controller computes. */
export const OwnedConditions = ['ResourcesApplied', 'Paused']

/** Applies the resources of one ClusterResourceSet to all Clusters that it selects. Safe to call at any time, any number of times. */
export const reconcileClusterResourceSet = (key: ObjectKey, io: ResourceSetIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: ClusterResourceSet,
    related: () => undefined,
    finalizer: ClusterResourceSetFinalizer,
    paused: (resourceSet) => pausedCondition(undefined, resourceSet),
    scope: (resourceSet): ResourceSetScope => ({ resourceSet, isConnected: true }),
    phases: () => [reconcileResources],
    status({ resourceSet, report, isConnected }, { clock }, { errors }) {
      const now = clock.now()
      const { generation } = resourceSet.metadata
      const computed = [pausedCondition(undefined, resourceSet), ...(report ? [report.condition] : [])]
      const conditions = setConditions(resourceSet.status?.conditions, computed, { now, generation, order: ConditionOrder })
      resourceSet.status = { ...resourceSet.status, conditions }
      if (errors.length === 0 && isConnected && generation) resourceSet.status.observedGeneration = generation
      if (report) reportLegacyConditions(resourceSet, [report.legacy], { now })
      return proceed()
    },
    observesGeneration: false,
    conditions: OwnedConditions,
    legacyConditions: ['ResourcesApplied'],
    order: ConditionOrder,
  })

async function reconcileResources(scope: ResourceSetScope, io: ResourceSetIO): Promise<Outcome> {
  const { resourceSet } = scope
  let clusters: Cluster[]
  try {
    clusters = await selectedClusters(resourceSet, io)
  } catch (err) {
    scope.report = internalError('ClusterMatchFailed', messageOf(err))
    throw err
  }
  if (isDeleting(resourceSet)) {
    await remove(resourceSet, clusters, io)
    return proceed()
  }
  // Watches both kinds, so that later changes of the resources trigger a reconcile.
  await io.watch(ConfigMap, resourceSetsOfSource('ConfigMap'))
  await io.watch(Secret, resourceSetsOfSource('Secret'))

  const failures: AppliedReport[] = []
  const errors: unknown[] = []
  const bindingErrors: unknown[] = []
  const waitReasons: string[] = []
  let hasConflict = false
  for (const cluster of clusters) {
    const result = await applyToCluster(resourceSet, cluster, io)
    if (result.report) failures.push(result.report)
    appendAll(errors, result.errors)
    appendAll(bindingErrors, result.bindingErrors ?? [])
    if (result.wait !== undefined) waitReasons.push(result.wait)
    hasConflict ||= hasOnlyConflict(result)
  }
  // Clusters are sorted by name, and the first failure is reported. Upstream reports the result of the last Cluster, even after failures of
  // others.
  if (failures[0]) scope.report = failures[0]
  else if (clusters.length > 0 && errors.length === 0) scope.report = applied
  appendAll(errors, bindingErrors)
  // ClusterResourceSets of one Cluster share its binding. As upstream, this requeue replaces errors of other Clusters: the next
  // reconcile reports them. Also as upstream, the generation counts as observed.
  if (hasConflict) return requeue(100, 'a ClusterResourceSetBinding was changed meanwhile')
  scope.isConnected = waitReasons.length === 0
  throwAggregate(errors)
  return waitReasons.length > 0 ? wait(waitReasons.join('; ')) : proceed()
}

/** Whether a conflict is the only error of a Cluster. */
function hasOnlyConflict({ errors, bindingErrors = [], wait: waitReason }: ClusterResult): boolean {
  const [first, ...others] = [...errors, ...bindingErrors]
  return isReason(first, 'Conflict') && others.length === 0 && waitReason === undefined
}

/**
 * Returns the Clusters of the namespace that match the selector and are not being deleted, sorted by name. An empty selector matches no
 * Cluster.
 */
async function selectedClusters({ metadata, spec }: ClusterResourceSet, { cache }: ResourceSetIO): Promise<Cluster[]> {
  const selector = withErrorContext('unable to convert selector', () => labelSelector(spec.clusterSelector))
  if (selector.requirements.length === 0) return []
  const { items } = await cache.list(Cluster, { namespace: metadata.namespace! })
  return items.filter((cluster) => !isDeleting(cluster) && selector.matches(cluster.metadata.labels))
}
