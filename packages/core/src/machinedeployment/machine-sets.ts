import { Machine, MachineDeployment, MachineDeploymentNameLabel, MachineSet } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { controllerOf, isControlledByUid, keyOf, labelSelector } from '@capstan/kube'
import { adoptChild } from '../children.ts'
import { MachineSetsByClusterName } from '../indexes.ts'
import { plainSelector } from '../machineset/machines.ts'
import type { MachineDeploymentPhase } from './scope.ts'

/**
 * Lists the MachineSets that the MachineDeployment controls. Adopts MachineSets of its Cluster that have no controller and that its selector
 * matches; an empty selector matches none.
 */
export const machineSets: MachineDeploymentPhase = async (scope, io) => {
  const { machineDeployment } = scope
  const namespace = machineDeployment.metadata.namespace!
  const selector = labelSelector(machineDeployment.spec.selector)
  const sets: MachineSet[] = []
  for (const set of io.cache.byIndex(MachineSetsByClusterName, `${namespace}/${machineDeployment.spec.clusterName}`)) {
    if (isControlledByUid(set, machineDeployment)) sets.push(set)
    else if (!controllerOf(set) && selector.requirements.length > 0 && selector.matches(set.metadata.labels)) {
      const adopted = await adoptChild(MachineSet, set, machineDeployment, MachineDeployment, io)
      if (adopted) sets.push(adopted)
    }
  }
  scope.machineSets = sets
  return proceed()
}

/** Lists the Machines that the selector matches. As upstream, these include Machines that no MachineSet controls. */
export const machines: MachineDeploymentPhase = async (scope, { cache }) => {
  const { namespace } = scope.machineDeployment.metadata
  const labelSelector = plainSelector(scope.machineDeployment).text
  scope.machines = (await cache.list(Machine, { namespace: namespace!, labelSelector })).items
  return proceed()
}

/**
 * Sets the label with the name of the MachineDeployment on MachineSets that lack it, such as adopted ones. The controller of MachineSets
 * copies the label to the Machines.
 */
export const labelMachineSets: MachineDeploymentPhase = async (scope, { client, signal }) => {
  const { name } = scope.machineDeployment.metadata
  const labels = { [MachineDeploymentNameLabel]: name }
  const isLabelled = ({ metadata }: MachineSet) => metadata.labels?.[MachineDeploymentNameLabel] === name
  const patch = { type: 'merge', body: { metadata: { labels } } } as const
  const ensureLabel = async (set: MachineSet) => (isLabelled(set) ? set : client.patch(MachineSet, keyOf(set), patch, { signal }))
  scope.machineSets &&= await Promise.all(scope.machineSets.map(ensureLabel))
  return proceed()
}
