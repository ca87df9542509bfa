import {
  ConditionOrder,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineSet,
  MachineSetFinalizer,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, reconcileObject } from '@capstan/controller'
import { isDeleting, type ObjectKey, orAbsent } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { unread } from '../external/observed.ts'
import { remove } from './delete.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { machines } from './machines.ts'
import { owner } from './owner.ts'
import { remediate } from './remediate.ts'
import { syncReplicas } from './replicas.ts'
import type { MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'
import { OwnedConditions, reportStatus, significantFields } from './status.ts'
import { startUpdates } from './start-updates.ts'
import { syncMachines } from './sync-machines.ts'
import { bootstrapTemplate, infrastructureTemplate } from './templates.ts'

const always: MachineSetPhase[] = [owner, infrastructureTemplate, bootstrapTemplate, machines]
const unlessDeleting: MachineSetPhase[] = [remediate, syncMachines, startUpdates, syncReplicas]
const whenDeleting: MachineSetPhase[] = [remove]

/** The only phase of a set that has the MachineDeploymentNameLabel, if its MachineDeployment does not exist and the set is not being deleted. */
const missingDeployment: MachineSetPhase = async ({ machineSet }) => {
  const { namespace, name } = machineSet.metadata
  throw new Error(`failed to retrieve owner MachineDeployment for MachineSet ${namespace}/${name}: it does not exist`)
}

/** Reconciles one MachineSet. Safe to call at any time, any number of times. */
export const reconcileMachineSet = (key: ObjectKey, io: MachineSetIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: MachineSet,
    related: async (machineSet, context) => ({
      cluster: await clusterOf(machineSet, context),
      machineDeployment: await machineDeploymentOf(machineSet, context),
    }),
    finalizer: MachineSetFinalizer,
    paused: (machineSet, { cluster }) => pausedCondition(cluster, machineSet),
    scope: (machineSet, { cluster, machineDeployment }): MachineSetScope => ({
      machineSet,
      cluster,
      machineDeployment,
      bootstrapTemplate: unread,
      infrastructureTemplate: unread,
      machines: undefined,
      preflightProblems: [],
    }),
    phases(machineSet, { machineDeployment }) {
      if (isDeleting(machineSet)) return [...always, ...whenDeleting]
      return isOfDeployment(machineSet) && !machineDeployment ? [missingDeployment] : [...always, ...unlessDeleting]
    },
    status: (scope, { clock }) => reportStatus(scope, clock.now()),
    significantFields,
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })

const isOfDeployment = ({ metadata }: MachineSet): boolean => metadata.labels?.[MachineDeploymentNameLabel] !== undefined

/** Returns the MachineDeployment that the label of the set names, if there is any. */
async function machineDeploymentOf(
  { metadata }: MachineSet,
  { cache, client, signal }: Pick<MachineSetIO, 'cache' | 'client' | 'signal'>,
): Promise<MachineDeployment | undefined> {
  const name = metadata.labels?.[MachineDeploymentNameLabel]
  // As upstream, an empty label names no MachineDeployment.
  if (!name) return undefined
  const key = { namespace: metadata.namespace!, name }
  return cache.peek(MachineDeployment, key) ?? (await orAbsent(client.get(MachineDeployment, key, { signal })))
}
