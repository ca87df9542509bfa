import { Cluster, ClusterClass, ClusterFinalizer, isPaused } from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, runPhases } from '@capstan/controller'
import { draft, isDeleting, type ObjectKey } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { ensureFinalizer } from '../finalizer.ts'
import { anticipateGeneration } from '../generation.ts'
import { phaseErrors } from '../phase-errors.ts'
import { reportPaused } from '../report-paused.ts'
import { controlPlane, standAloneControlPlane } from './control-plane.ts'
import { internalError, remove } from './delete.ts'
import { descendants } from './descendants.ts'
import { infrastructure } from './infrastructure.ts'
import { kubeconfig } from './kubeconfig.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import type { ClusterIO, ClusterPhase, ClusterScope } from './scope.ts'
import { OwnedConditions, reportStatus } from './status.ts'

const always: ClusterPhase[] = [infrastructure, controlPlane, descendants]
const whenLiving: ClusterPhase[] = [standAloneControlPlane, kubeconfig]
const whenDeleting: ClusterPhase[] = [remove]

/** Brings one Cluster, and what it refers to, towards its spec. Safe to run at any moment, any number of times. */
export async function reconcileCluster(key: ObjectKey, io: ClusterIO): Promise<Outcome> {
  const cached = io.cache.peek(Cluster, key)
  if (!cached) return proceed()
  if (isPaused(cached, cached)) return reportPaused(io, Cluster, cached, cached)
  const before = await ensureFinalizer(io.client, Cluster, cached, ClusterFinalizer)

  const cluster = draft(before)
  const scope: ClusterScope = {
    cluster,
    infrastructure: unread,
    controlPlane: unread,
    descendants: undefined,
    deletion: internalError,
  }
  const phases = [...always, ...(isDeleting(cluster) ? whenDeleting : whenLiving)]
  const { outcome, errors } = await runPhases(phases, scope, io)

  anticipateGeneration(before, cluster)
  // Status is written even when a phase failed: it is how a user learns that one did.
  const later = reportStatus(scope, {
    now: io.clock.now(),
    health: io.clusters.health(key),
    gracePeriod: io.settings.remoteConnectionGracePeriod,
    classGates: classOf(cluster, io)?.spec.availabilityGates,
  })
  const status = cluster.status!
  if (status.phase && status.phase !== before.status?.phase) {
    io.events.event(before, 'Normal', status.phase, `Cluster ${key.name} is ${status.phase}`)
  }
  if (errors.length === 0 && cluster.metadata.generation) status.observedGeneration = cluster.metadata.generation
  await commitChanges(io.client, Cluster, before, cluster, {
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    signal: io.signal,
  })
  if (errors.length > 0) throw phaseErrors(Cluster, key, errors)
  return mergeOutcomes([outcome, later])
}

function classOf({ metadata, spec }: Cluster, io: ClusterIO): ClusterClass | undefined {
  if (!spec.topology) return undefined
  const { name, namespace = metadata.namespace! } = spec.topology.classRef
  return io.cache.peek(ClusterClass, { namespace, name })
}
