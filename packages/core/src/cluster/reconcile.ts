import { Cluster, ClusterClass, ClusterFinalizer, ConditionOrder, pausedCondition } from '@capstan/api'
import { type Outcome, reconcileObject } from '@capstan/controller'
import { isDeleting, type ObjectKey } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { controlPlane, standAloneControlPlane } from './control-plane.ts'
import { internalError, remove } from './delete.ts'
import { descendants } from './descendants.ts'
import { infrastructure } from './infrastructure.ts'
import { kubeconfig } from './kubeconfig.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { retryHooks } from './retry-hooks.ts'
import type { ClusterIO, ClusterPhase, ClusterScope } from './scope.ts'
import { OwnedConditions, reportStatus, significantFields } from './status.ts'

const always: ClusterPhase[] = [infrastructure, controlPlane, descendants, retryHooks]
const unlessDeleting: ClusterPhase[] = [standAloneControlPlane, kubeconfig]
const whenDeleting: ClusterPhase[] = [remove]

/** Reconciles one Cluster with the objects that it refers to. Safe to call at any time, any number of times. */
export const reconcileCluster = (key: ObjectKey, io: ClusterIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: Cluster,
    related: () => undefined,
    finalizer: ClusterFinalizer,
    paused: (cluster) => pausedCondition(cluster, cluster),
    scope: (cluster): ClusterScope => ({
      cluster,
      infrastructure: unread,
      controlPlane: unread,
      descendants: undefined,
      deletion: internalError,
    }),
    phases: (cluster) => [...always, ...(isDeleting(cluster) ? whenDeleting : unlessDeleting)],
    status(scope, { clock, clusters, events, settings, log }, { before }) {
      const statusOutcome = reportStatus(scope, {
        now: clock.now(),
        health: clusters.health(key),
        gracePeriod: settings.remoteConnectionGracePeriod,
        classGates: classOf(scope.cluster, io)?.spec.availabilityGates,
        log,
      })
      const phase = scope.cluster.status?.phase
      if (phase && phase !== before.status?.phase) {
        events.event(before, 'Normal', phase, `Cluster ${key.name} is ${phase}`)
      }
      return statusOutcome
    },
    significantFields,
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })

function classOf({ metadata, spec }: Cluster, io: ClusterIO): ClusterClass | undefined {
  if (!spec.topology) return undefined
  const { name, namespace = metadata.namespace! } = spec.topology.classRef
  return io.cache.peek(ClusterClass, { namespace, name })
}
