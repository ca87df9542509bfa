/** LocalControlPlane: certificates, kubeconfig and Machines of one control plane. The phases are in `bringUp` and `remove.ts`. */
import { isPaused, pausedCondition } from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import { addFinalizer, draft, isDeleting, keyOf, type ObjectKey } from '@capstan/kube'
import {
  LocalControlPlane,
  LocalControlPlaneConditions as Conditions,
  LocalControlPlaneFinalizer,
} from '../kinds/local-control-plane.ts'
import { commit } from '../commit.ts'
import { owningCluster } from '../owner.ts'
import { recordVersion } from '../workload/basics.ts'
import type { Workloads } from '../workload/workloads.ts'
import { ensureCertificates } from './certificates.ts'
import type { InPlaceUpdates } from './in-place.ts'
import { initialize } from './initialize.ts'
import { ensureKubeconfig } from './kubeconfig.ts'
import { syncMachine } from './machines.ts'
import { observeMachines, observeTemplate } from './observe.ts'
import { remove } from './remove.ts'
import type { ControlPlaneScope } from './scope.ts'
import { controlPlaneConditions, controlPlaneCounters } from './status.ts'
import { takeStep } from './step.ts'

export interface LocalControlPlaneDependencies {
  readonly workloads: Pick<Workloads, 'clientFor'>
  /** Extensions that update Machines in place; absent: Machines are replaced. */
  readonly updates?: InPlaceUpdates | undefined
}

/** Brings one LocalControlPlane towards its spec. Safe to run at any moment, any number of times. */
export async function reconcileLocalControlPlane(
  key: ObjectKey,
  io: ReconcileContext,
  of: LocalControlPlaneDependencies,
): Promise<Outcome> {
  const found = io.cache.peek(LocalControlPlane, key)
  if (!found) return proceed()
  const cluster = owningCluster(io.cache, found)
  if (!cluster) return wait('Cluster to own this LocalControlPlane')
  if (isPaused(cluster, found)) {
    const computed = [pausedCondition(cluster, found)]
    await commit(io, LocalControlPlane, { before: found, after: draft(found), computed, owned: Conditions })
    return wait('reconciliation to be unpaused')
  }
  const before = await ensureFinalizer(found, io)

  const scope: ControlPlaneScope = {
    controlPlane: draft(before),
    cluster,
    machines: [],
    workers: [],
    certificates: { state: 'unread' },
    template: { state: 'unread' },
    initializationIssue: undefined,
    step: undefined,
    failed: false,
    deletion: 'none',
  }
  let outcome: Outcome = proceed()
  let failure: unknown
  try {
    outcome = isDeleting(before) ? await remove(scope, io) : await bringUp(scope, io, of)
  } catch (err) {
    failure = err
    scope.failed = true
    if (isDeleting(before)) scope.deletion = 'failed'
  }

  // Status is written even when a phase failed: it is how a user learns that one did.
  const { controlPlane } = scope
  controlPlane.status = {
    ...controlPlane.status,
    ...controlPlaneCounters(scope),
    ...(failure === undefined && before.metadata.generation ? { observedGeneration: before.metadata.generation } : {}),
  }
  const computed = [...controlPlaneConditions(scope), pausedCondition(cluster, before)]
  await commit(io, LocalControlPlane, { before, after: controlPlane, computed, owned: Conditions })
  if (failure !== undefined) throw failure
  return outcome
}

/** Nothing is made before the finalizer is stored that will see to its end. */
async function ensureFinalizer(found: LocalControlPlane, io: ReconcileContext): Promise<LocalControlPlane> {
  const object = draft(found)
  if (!addFinalizer(object, LocalControlPlaneFinalizer)) return found
  return commitChanges(io.client, LocalControlPlane, found, object, { conditions: [], signal: io.signal })
}

/** Certificates, kubeconfig, then one step towards the Machines that are wanted. */
async function bringUp(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  { workloads, updates }: LocalControlPlaneDependencies,
): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  observeMachines(scope, io)
  await observeTemplate(scope, io)
  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    return wait('Cluster status.initialization.infrastructureProvisioned to be true')
  }
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  const { host, port } = cluster.spec.controlPlaneEndpoint ?? {}
  if (!host || !port) return wait('Cluster spec.controlPlaneEndpoint to be set')
  if (scope.certificates.state === 'available') await ensureKubeconfig(controlPlane, cluster, scope.certificates.authority, io)

  const evaluated: ControlPlaneScope['machines'][number][] = []
  for (const { machine } of scope.machines) evaluated.push(await syncMachine(scope, machine, io))
  scope.machines = evaluated

  const workload = workloads.clientFor(keyOf(cluster))
  const initialized = await initialize(scope, io, workload)
  if (workload && scope.machines.some(({ outdated }) => outdated.length > 0))
    await recordVersion(workload, controlPlane.spec.version)
  const taken = await takeStep(scope, io, updates)
  return mergeOutcomes([taken, nextLook(scope, initialized, io.clock.now())])
}

/** What brings this control plane back when no event does. */
function nextLook({ controlPlane, step, template }: ControlPlaneScope, initialized: Outcome, now: number): Outcome {
  if (template.state === 'missing') return wait('machine template to exist')
  if (initialized.kind !== 'proceed') return initialized
  if (step?.kind === 'hold') return wait(step.messages.join('; '))
  const after = Date.parse(controlPlane.spec.rollout?.after ?? '')
  return after >= now ? requeue(after - now + 1, 'spec.rollout.after') : proceed()
}
