import { Machine, MachineDeployment, MachineDeploymentNameLabel, MachineSet } from '@capstan/api'
import { proceed, type ReconcileContext } from '@capstan/controller'
import { controllerOf, controllerReference, isControlledBy, isDeleting, keyOf, labelSelector, messageOf } from '@capstan/kube'
import { byCluster } from '../machineset/preflight.ts'
import type { MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'

/** Finds the sets of the deployment and their Machines, and takes in sets that nobody controls. */
export const machineSets: MachineDeploymentPhase = async (scope, io) => {
  const { machineDeployment } = scope
  const namespace = machineDeployment.metadata.namespace!
  const selector = labelSelector(machineDeployment.spec.selector)
  const sets: MachineSet[] = []
  for (const set of io.cache.byIndex(byCluster, `${namespace}/${machineDeployment.spec.clusterName}`)) {
    if (isControlledBy(set, machineDeployment, MachineDeployment)) sets.push(set)
    else if (!controllerOf(set) && selector.requirements.length > 0 && selector.matches(set.metadata.labels)) {
      const adopted = await adopt(set, scope, io)
      if (adopted) sets.push(adopted)
    }
  }
  const labels = `${MachineDeploymentNameLabel}=${machineDeployment.metadata.name}`
  const machines = await io.cache.list(Machine, { namespace, labelSelector: labels })
  scope.machines = machines.items.filter((machine) => sets.some((set) => isControlledBy(machine, set, MachineSet)))
  scope.machineSets = sets
  return proceed()
}

async function adopt(
  set: MachineSet,
  { machineDeployment }: MachineDeploymentScope,
  { client, events, signal }: ReconcileContext,
): Promise<MachineSet | undefined> {
  if (isDeleting(machineDeployment) || isDeleting(set)) return undefined
  const { ownerReferences = [], resourceVersion, name } = set.metadata
  const owners = ownerReferences.filter(({ kind }) => kind !== 'Cluster')
  const metadata = { ownerReferences: [...owners, controllerReference(machineDeployment, MachineDeployment)], resourceVersion }
  try {
    const adopted = await client.patch(MachineSet, keyOf(set), { type: 'merge', body: { metadata } }, { signal })
    events.event(machineDeployment, 'Normal', 'SuccessfulAdopt', `Adopted MachineSet "${name}"`)
    return adopted
  } catch (err) {
    events.event(machineDeployment, 'Warning', 'FailedAdopt', `Failed to adopt MachineSet "${name}": ${messageOf(err)}`)
    throw err
  }
}
