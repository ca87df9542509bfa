/**
 * Reconciles LocalClusters: sets the endpoint and failure domains that core copies to the Cluster; a deletion removes the
 * workload API server.
 */
import {
  type APIEndpoint,
  type Cluster,
  ClusterNameLabel,
  ConditionOrder,
  ManagedByAnnotation,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, reconcileObject, requeue, wait } from '@capstan/controller'
import { addFinalizer, isDeleting, type NewCondition, type ObjectKey, removeFinalizer } from '@capstan/kube'
import { LocalCluster, LocalClusterConditions as Conditions, LocalClusterFinalizer } from '../../kinds/local-cluster.ts'
import { byCluster, owningCluster } from '../../owner.ts'
import { type PhaseReport, reportConditions } from '../../report-conditions.ts'
import { retryOutcome, failureAt, timeText, progress, reportTerminal } from '../../simulation.ts'
import { LocalMachine } from '../../kinds/local-machine.ts'
import type { Workloads } from '../../workload/workloads.ts'

export interface LocalClusterDependencies {
  readonly workloads: Pick<Workloads, 'remove'>
  /** Address of the listener of all workload API servers. */
  readonly endpoint: { readonly host: string; readonly port: number }
}

/** Index of LocalMachines by the Cluster that their label names, as `namespace/name`. */
export const machinesByCluster = byCluster(LocalMachine)

interface Scope {
  readonly object: LocalCluster
  readonly cluster: Cluster | undefined
  conditions: readonly NewCondition[]
}

/** Reconciles one LocalCluster. May be called at any time, and any number of times. */
export const reconcileLocalCluster = (
  key: ObjectKey,
  io: ReconcileContext,
  dependencies: LocalClusterDependencies,
): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: LocalCluster,
    related: (object) => owningCluster(io.cache, object),
    skip(object, cluster) {
      if (object.metadata.annotations?.[ManagedByAnnotation] !== undefined) return proceed()
      // Deletion continues without the Cluster, because the finalizer must be removed.
      return cluster || isDeleting(object) ? undefined : wait('Cluster to own this LocalCluster')
    },
    paused: (object, cluster) => pausedCondition(cluster, object),
    scope: (object, cluster): Scope => ({ object, cluster, conditions: [] }),
    phases: (object) => [
      async (scope) => {
        const { outcome, conditions } = isDeleting(object)
          ? await remove(object, scope.cluster, io, dependencies)
          : provision(object, scope.cluster!, io.clock.now(), dependencies.endpoint)
        scope.conditions = conditions
        return outcome
      },
    ],
    status({ object, cluster, conditions }) {
      reportConditions(object, conditions, cluster, io)
      return proceed()
    },
    conditions: Object.keys(Conditions),
    order: ConditionOrder,
    observesGeneration: false,
  })

/**
 * Writes to the draft the state that the simulated infrastructure has at the time `now`. `fallback` is the endpoint if neither the
 * LocalCluster nor the Cluster has one, unless `spec.withoutEndpoint` is set.
 */
export function provision(
  object: LocalCluster,
  cluster: Cluster,
  now: number,
  fallback: { readonly host: string; readonly port: number },
): PhaseReport {
  const notDeleting = Conditions.Deleting.false('NotDeleting')
  addFinalizer(object, LocalClusterFinalizer)
  const status = (object.status ??= {})
  const spec = (object.spec ??= {})
  if (!status.initialization?.provisioned) {
    status.timeline ??= {}
    status.timeline.provisioningStarted ??= timeText(now)
    const simulated = spec.simulated
    const step = progress(Date.parse(status.timeline.provisioningStarted), now, {
      delay: simulated?.provisioningDelay,
      failure: failureAt(simulated?.failure, 'provisioning'),
    })
    if (step.state === 'running') {
      const ready = Conditions.Ready.false('Provisioning', 'Infrastructure is being provisioned')
      return { outcome: requeue(step.until - now, 'infrastructure to be provisioned'), conditions: [ready, notDeleting] }
    }
    if (step.state === 'failed') {
      reportTerminal(status, simulated?.failure)
      const ready = Conditions.Ready.false('ProvisioningFailed', step.message)
      return { outcome: retryOutcome(step.retryAt, now, 'failed provisioning'), conditions: [ready, notDeleting] }
    }
    const configuredEndpoint = [spec.controlPlaneEndpoint, cluster.spec.controlPlaneEndpoint].find(isValid)
    if (configuredEndpoint || !spec.withoutEndpoint) spec.controlPlaneEndpoint = configuredEndpoint ?? fallback
    status.initialization = { provisioned: true }
  }
  // Failure domains may change after provisioning; `provisioned` is never reset.
  status.failureDomains = spec.failureDomains ?? ['a', 'b', 'c'].map((name) => ({ name, controlPlane: true }))
  return { outcome: proceed(), conditions: [Conditions.Ready.true('Ready'), notDeleting] }
}

/**
 * Removes the workload API server, and then the finalizer, when no LocalMachine of the cluster exists and the simulated deletion of the
 * infrastructure has succeeded.
 */
async function remove(
  object: LocalCluster,
  cluster: Cluster | undefined,
  io: ReconcileContext,
  { workloads }: LocalClusterDependencies,
): Promise<PhaseReport> {
  const key = { namespace: object.metadata.namespace!, name: cluster?.metadata.name ?? clusterNameOf(object) }
  const remaining = io.cache.byIndex(machinesByCluster, `${key.namespace}/${key.name}`)
  const deleting = (reason: Parameters<typeof Conditions.Deleting.true>[0], message: string) => [
    Conditions.Ready.false('Deleting', message),
    Conditions.Deleting.true(reason, message),
  ]
  if (remaining.length > 0) {
    const message = `LocalMachines still exist: ${remaining.map(({ metadata }) => metadata.name).join(', ')}`
    return { outcome: wait(message), conditions: deleting('WaitingForMachineDeletion', message) }
  }
  const now = io.clock.now()
  const simulated = object.spec?.simulated
  const step = progress(Date.parse(object.metadata.deletionTimestamp!), now, {
    delay: simulated?.deletionDelay,
    failure: failureAt(simulated?.failure, 'deletion'),
  })
  if (step.state === 'running') {
    const message = 'Infrastructure is being deleted'
    return { outcome: requeue(step.until - now, message), conditions: deleting('Deleting', message) }
  }
  if (step.state === 'failed') {
    return { outcome: retryOutcome(step.retryAt, now, 'failed deletion'), conditions: deleting('DeletionFailed', step.message) }
  }
  await workloads.remove(key)
  removeFinalizer(object, LocalClusterFinalizer)
  return { outcome: proceed(), conditions: [] }
}

const isValid = (endpoint: APIEndpoint | undefined): endpoint is { host: string; port: number } =>
  !!endpoint?.host && !!endpoint.port

const clusterNameOf = ({ metadata }: LocalCluster): string => metadata.labels?.[ClusterNameLabel] ?? metadata.name
