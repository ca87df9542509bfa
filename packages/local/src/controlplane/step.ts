import { ClusterTopologyUpgradeStepAnnotation, DeleteMachineAnnotation, Machine } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { isDeleting, keyOf } from '@capstan/kube'
import { createMachine } from './machines.ts'
import { type PlannedMachine, planStep } from './plan.ts'
import type { ControlPlaneScope } from './scope.ts'
import { isHealthy } from './status.ts'

/** Plans the next step, and takes it. */
export async function takeStep(scope: ControlPlaneScope, io: ReconcileContext): Promise<void> {
  const { controlPlane, cluster, machines, template } = scope
  const { spec } = controlPlane
  const domains = cluster.status?.failureDomains ?? []
  const step = planStep({
    replicas: spec.replicas ?? 1,
    maxSurge: spec.rollout?.strategy?.rollingUpdate?.maxSurge === 0 ? 0 : 1,
    machines: machines.map(plannedMachine),
    failureDomains: domains.filter((domain) => domain.controlPlane).map((domain) => domain.name),
    certificatesAvailable: scope.certificates.state === 'available',
    pendingVersion: pendingVersion(scope),
  })
  scope.step = step
  switch (step.kind) {
    case 'rest':
      return
    case 'hold':
      io.log.debug('Waiting before the next step', { reasons: step.messages })
      return
    case 'create': {
      // Certificates come first: a machine cannot boot without them. The condition says what is missing.
      if (scope.certificates.state !== 'available' || template.state !== 'found') return
      io.log.info('Creating control plane Machine', { reason: step.reason, failureDomain: step.failureDomain })
      try {
        const machine = await createMachine(scope, template.object, step.failureDomain, io)
        scope.machines = [...machines, { machine, outdated: [] }]
      } catch (err) {
        const reason = machines.length === 0 ? 'FailedInitialization' : 'FailedScaleUp'
        io.events.event(
          controlPlane,
          'Warning',
          reason,
          `Failed to create control plane Machine for cluster ${cluster.metadata.namespace}/${cluster.metadata.name} control plane: ${(err as Error).message}`,
        )
        throw err
      }
      return
    }
    case 'delete': {
      const chosen = machines.find(({ machine }) => machine.metadata.name === step.machine)!
      io.log.info('Deleting control plane Machine', { Machine: step.machine, reason: step.reason })
      await io.client.delete(Machine, keyOf(chosen.machine), { preconditions: { uid: chosen.machine.metadata.uid } })
    }
  }
}

const plannedMachine = ({ machine, outdated }: ControlPlaneScope['machines'][number]): PlannedMachine => ({
  name: machine.metadata.name,
  created: machine.metadata.creationTimestamp,
  failureDomain: machine.status?.failureDomain ?? machine.spec.failureDomain,
  deleting: isDeleting(machine),
  healthy: isHealthy(machine),
  outdated,
  deleteFirst: machine.metadata.annotations?.[DeleteMachineAnnotation] !== undefined,
})

/** The version of the topology while it has not come down to this control plane: no step may be taken in between. */
function pendingVersion({ controlPlane, cluster }: ControlPlaneScope): string | undefined {
  const wanted = cluster.spec.topology?.version
  const { version } = controlPlane.spec
  if (wanted === undefined || wanted === version) return undefined
  return cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation] === version ? undefined : wanted
}
