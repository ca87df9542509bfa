import {
  ConditionOrder,
  Machine,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineFinalizer,
  MachineSet,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, reconcileObject } from '@capstan/controller'
import { controllerOf, isDeleting, keyOf, type ObjectKey } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { unread } from '../external/observed.ts'
import { bootstrap } from './bootstrap.ts'
import { certificateExpiry } from './certificate-expiry.ts'
import { remove } from './delete.ts'
import { inPlaceUpdate } from './in-place-update.ts'
import { infrastructure } from './infrastructure.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { node } from './node.ts'
import { owner } from './owner.ts'
import type { MachineIO, MachinePhase, MachineScope } from './scope.ts'
import { ownedConditions, reportStatus, significantFields } from './status.ts'

const always: MachinePhase[] = [owner, bootstrap, infrastructure, node, certificateExpiry]
const whenDeleting: MachinePhase[] = [remove]
const unlessDeleting: MachinePhase[] = [inPlaceUpdate]

/** Reconciles one Machine with the objects that it owns. Safe to call at any time, any number of times. */
export const reconcileMachine = (key: ObjectKey, io: MachineIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: Machine,
    related: clusterOf,
    finalizer: MachineFinalizer,
    paused: (machine, cluster) => pausedCondition(cluster, machine),
    scope: (machine, cluster): MachineScope => ({
      machine,
      cluster,
      ...ownersOf(machine, io),
      bootstrap: unread,
      infrastructure: unread,
      node: { state: 'unread' },
      deletion: { reason: 'Deleting', message: 'Deletion started' },
      steps: {},
    }),
    phases: (machine) => [...always, ...(isDeleting(machine) ? whenDeleting : unlessDeleting)],
    status(scope, { clock, clusters, settings, log }) {
      const health = clusters.health(keyOf(scope.cluster))
      return reportStatus(scope, { now: clock.now(), health, gracePeriod: settings.remoteConditionsGracePeriod, log })
    },
    significantFields,
    // As upstream, observedGeneration stays unchanged in two cases. First, there is no connection to the workload cluster although the
    // Machine has a providerID or the control plane is initialized. Second, a Node that was found earlier is missing, and the Machine is not
    // being deleted.
    observesGeneration: ({ node, machine }) =>
      node.state !== 'disconnected' && !(node.state === 'missing' && machine.status?.nodeRef && !isDeleting(machine)),
    conditions: ownedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })

function ownersOf(machine: Machine, io: MachineIO): Pick<MachineScope, 'machineSet' | 'machineDeployment'> {
  const { namespace } = machine.metadata
  const controller = controllerOf(machine)
  const machineSet =
    controller?.kind === MachineSet.kind ? io.cache.peek(MachineSet, { namespace: namespace!, name: controller.name }) : undefined
  // As upstream, finds the MachineDeployment by the label of the MachineSet: after a restore from a backup, the MachineSet may have no owner
  // reference for a while.
  const deployment = machineSet?.metadata.labels?.[MachineDeploymentNameLabel]
  const machineDeployment = deployment ? io.cache.peek(MachineDeployment, { namespace: namespace!, name: deployment }) : undefined
  return { machineSet, machineDeployment }
}
