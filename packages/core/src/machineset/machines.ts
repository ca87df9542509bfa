import { Machine, MachineSet } from '@capstan/api'
import { type Index, proceed } from '@capstan/controller'
import { controllerOf, controllerReference, isControlledBy, labelSelector, type Selector, TerminalError } from '@capstan/kube'
import { adoptChild } from '../children.ts'
import type { MachineSetIO, MachineSetPhase } from './scope.ts'

/** Finds the Machines of the set by its selector, and takes in those that nobody controls. */
export const machines: MachineSetPhase = async (scope, io) => {
  const { machineSet } = scope
  const selector = plainSelector(machineSet)
  const found: Machine[] = []
  for (const machine of machinesOfCluster(machineSet, io)) {
    if (!selector.matches(machine.metadata.labels)) continue
    if (isControlledBy(machine, machineSet, MachineSet)) found.push(machine)
    else if (!controllerOf(machine)) {
      const owners = [...(machine.metadata.ownerReferences ?? []), controllerReference(machineSet, MachineSet)]
      const adopted = await adoptChild(Machine, machine, machineSet, owners, io)
      if (adopted) found.push(adopted)
    }
  }
  scope.machines = found
  return proceed()
}

/** All Machines of the set's Cluster, those of other sets among them. */
export const machinesOfCluster = ({ metadata, spec }: MachineSet, { cache }: MachineSetIO): readonly Machine[] =>
  cache.byIndex(byCluster, `${metadata.namespace}/${spec.clusterName}`)

/** The Machines of the set as the server has them, for what must not be decided from a cache that is behind. */
export async function liveMachines(machineSet: MachineSet, { client, signal }: MachineSetIO): Promise<Machine[]> {
  const { namespace } = machineSet.metadata
  const { items } = await client.list(Machine, { namespace: namespace!, labelSelector: plainSelector(machineSet).text, signal })
  return items.filter((machine) => isControlledBy(machine, machineSet, MachineSet))
}

/** The labels of a Cluster's Machines differ little; this narrows better than any of them. */
const byCluster: Index<Machine> = {
  name: 'Machine by Cluster',
  kind: Machine,
  values: ({ metadata, spec }) => [`${metadata.namespace}/${spec.clusterName}`],
}

/** @throws TerminalError when the set selects by more than plain labels */
function plainSelector({ metadata, spec }: MachineSet): Selector {
  const { matchExpressions = [] } = spec.selector
  if (matchExpressions.length > 0) {
    throw new TerminalError(`failed to convert MachineSet "${metadata.name}" label selector to a map: it has matchExpressions`)
  }
  return labelSelector(spec.selector)
}
