import { ConditionOrder, MachinePool, MachinePoolFinalizer, pausedCondition } from '@capstan/api'
import { type Outcome, proceed, reconcileObject } from '@capstan/controller'
import { isDeleting, type ObjectKey } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { unread } from '../external/observed.ts'
import { bootstrap } from './bootstrap.ts'
import { remove } from './delete.ts'
import { infrastructure, providerIDs } from './infrastructure.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { createMachines, listMachines, reportUpToDate } from './machines.ts'
import { lacksProviderIDs, nodes } from './nodes.ts'
import { owner } from './owner.ts'
import type { MachinePoolIO, MachinePoolPhase, MachinePoolScope } from './scope.ts'
import { OwnedConditions, reportStatus } from './status.ts'

const always: MachinePoolPhase[] = [owner]
const unlessDeleting: MachinePoolPhase[] = [
  bootstrap,
  infrastructure,
  createMachines,
  providerIDs,
  listMachines,
  nodes,
  reportUpToDate,
]
const whenDeleting: MachinePoolPhase[] = [remove]

/** Reconciles one MachinePool with the objects that it refers to. Safe to call at any time, any number of times. */
export const reconcileMachinePool = (key: ObjectKey, io: MachinePoolIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: MachinePool,
    related: clusterOf,
    finalizer: MachinePoolFinalizer,
    paused: (machinePool, cluster) => pausedCondition(cluster, machinePool),
    scope: (machinePool, cluster): MachinePoolScope => ({
      machinePool,
      cluster,
      bootstrap: unread,
      infrastructure: unread,
      workload: undefined,
      machines: undefined,
      nodes: undefined,
    }),
    phases: (machinePool) => [...always, ...(isDeleting(machinePool) ? whenDeleting : unlessDeleting)],
    status(scope, { clock }) {
      reportStatus(scope, clock.now())
      return proceed()
    },
    // As upstream, observedGeneration of a MachinePool that is not being deleted stays unchanged in three cases: a referenced object is
    // missing; the workload cluster is disconnected; the infrastructure machine pool is being deleted, so that `workload` is not set, and
    // `lacksProviderIDs` is false.
    observesGeneration: ({ bootstrap, infrastructure, workload, machinePool }) =>
      bootstrap.state !== 'missing' &&
      infrastructure.state !== 'missing' &&
      (workload !== undefined ||
        infrastructure.state !== 'found' ||
        isDeleting(machinePool) ||
        (isDeleting(infrastructure.external.object) && lacksProviderIDs(machinePool))),
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })
