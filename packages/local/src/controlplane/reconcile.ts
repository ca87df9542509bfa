/**
 * Reconciles LocalControlPlanes: certificates, kubeconfig and Machines. `provision` and `remove.ts` reconcile control planes with Machines;
 * `hosted.ts` reconciles hosted control planes, which have none.
 */
import { ConditionOrder, isPaused, pausedCondition } from '@capstan/api'
import { mergeOutcomes, type Outcome, proceed, type ReconcileContext, reconcileObject, requeue, wait } from '@capstan/controller'
import { isDeleting, keyOf, type ObjectKey } from '@capstan/kube'
import {
  LocalControlPlane,
  LocalControlPlaneConditions as Conditions,
  LocalControlPlaneFinalizer,
} from '../kinds/local-control-plane.ts'
import { owningCluster } from '../owner.ts'
import { reportConditions, significantFields } from '../report-conditions.ts'
import { recordVersion } from '../workload/basics.ts'
import type { Workloads } from '../workload/workloads.ts'
import { ensureCertificates } from './certificates.ts'
import { type Endpoint, endpointOf } from './endpoint.ts'
import { reconcileHosted, restoreHosted, removeHosted } from './hosted.ts'
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
  readonly workloads: Pick<Workloads, 'clientFor' | 'join' | 'leave' | 'trust'>
  /** Address of the listener of all workload API servers. A hosted control plane uses it if neither its spec nor the Cluster has an endpoint. */
  readonly endpoint: Endpoint
  /** Extensions that update Machines in place. If absent, Machines are replaced. */
  readonly updates?: InPlaceUpdates | undefined
}

/** Reconciles one LocalControlPlane. May be called at any time, and any number of times. */
export async function reconcileLocalControlPlane(
  key: ObjectKey,
  io: ReconcileContext,
  dependencies: LocalControlPlaneDependencies,
): Promise<Outcome> {
  const cached = io.cache.peek(LocalControlPlane, key)
  const owner = cached && owningCluster(io.cache, cached)
  // `reconcileObject` runs no phases for a paused object, but the API server of a hosted control plane must run again after a restart of
  // the provider.
  if (owner && isPaused(owner, cached)) await restoreHosted(cached, owner, io, dependencies.workloads)
  return reconcileObject(key, io, {
    kind: LocalControlPlane,
    related: (controlPlane) => owningCluster(io.cache, controlPlane),
    skip: (_, cluster) => (cluster ? undefined : wait('Cluster to own this LocalControlPlane')),
    finalizer: LocalControlPlaneFinalizer,
    paused: (controlPlane, cluster) => pausedCondition(cluster, controlPlane),
    scope: (controlPlane, cluster): ControlPlaneScope => ({
      controlPlane,
      cluster: cluster!,
      machines: [],
      workers: [],
      certificates: { state: 'unread' },
      template: { state: 'unread' },
      initializationIssue: undefined,
      step: undefined,
      failed: false,
      deletion: 'none',
    }),
    phases: (controlPlane) => [
      (scope) => {
        if (controlPlane.spec.hosted) {
          return isDeleting(controlPlane)
            ? removeHosted(scope, io, dependencies.workloads)
            : reconcileHosted(scope, io, dependencies.workloads, dependencies.endpoint)
        }
        return isDeleting(controlPlane) ? remove(scope, io) : provision(scope, io, dependencies)
      },
    ],
    status(scope, _, { errors }) {
      const { controlPlane, cluster } = scope
      scope.failed = errors.length > 0
      if (scope.failed && isDeleting(controlPlane)) scope.deletion = 'failed'
      controlPlane.status = { ...controlPlane.status, ...controlPlaneCounters(scope) }
      reportConditions(controlPlane, controlPlaneConditions(scope), cluster, io)
      return proceed()
    },
    significantFields,
    conditions: Object.keys(Conditions),
    order: ConditionOrder,
  })
}

/**
 * Creates certificates and kubeconfig, updates the Machine fields that propagate without a rollout, reports the initialization, and performs
 * one step towards the desired Machines.
 */
async function provision(
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
  const endpoint = endpointOf(controlPlane, cluster)
  if (!endpoint) return wait('Cluster spec.controlPlaneEndpoint to be set')
  if (scope.certificates.state === 'available') {
    workloads.trust(keyOf(cluster), scope.certificates.authority)
    await ensureKubeconfig(controlPlane, cluster, scope.certificates.authority, endpoint, io)
  }

  const synced: ControlPlaneScope['machines'][number][] = []
  for (const { machine } of scope.machines) synced.push(await syncMachine(scope, machine, io))
  scope.machines = synced

  const workload = workloads.clientFor(keyOf(cluster))
  const initialized = await initialize(scope, io, workload)
  if (workload && scope.machines.some(({ outdated }) => outdated.length > 0))
    await recordVersion(workload, controlPlane.spec.version)
  const stepOutcome = await takeStep(scope, io, updates)
  return mergeOutcomes([stepOutcome, nextRequeue(scope, initialized, io.clock.now())])
}

/** Returns a wait or a requeue for the change that the control plane waits for; `proceed` if it waits for no change. */
function nextRequeue({ controlPlane, step, template }: ControlPlaneScope, initialized: Outcome, now: number): Outcome {
  if (template.state === 'missing') return wait('machine template to exist')
  if (initialized.kind !== 'proceed') return initialized
  if (step?.kind === 'wait') return wait(step.messages.join('; '))
  const rolloutAfter = Date.parse(controlPlane.spec.rollout?.after ?? '')
  return rolloutAfter >= now ? requeue(rolloutAfter - now + 1, 'spec.rollout.after') : proceed()
}
