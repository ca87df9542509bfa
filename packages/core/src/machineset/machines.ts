import { Machine, type MachineDeployment, MachineSet } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { controllerOf, isControlledByUid, labelSelector, type Selector, TerminalError } from '@capstan/kube'
import { adoptChild } from '../children.ts'
import { MachinesByClusterName } from '../indexes.ts'
import type { MachineSetIO, MachineSetPhase } from './scope.ts'

/**
 * Sets `scope.machines` to the Machines that the set controls and that match its selector. Adopts matching Machines of its Cluster that have no
 * controller.
 */
export const machines: MachineSetPhase = async (scope, io) => {
  const { machineSet } = scope
  const selector = plainSelector(machineSet)
  const controlled: Machine[] = []
  for (const machine of machinesOfCluster(machineSet, io)) {
    if (!selector.matches(machine.metadata.labels)) continue
    if (isControlledByUid(machine, machineSet)) controlled.push(machine)
    else if (!controllerOf(machine)) {
      const adopted = await adoptChild(Machine, machine, machineSet, MachineSet, io)
      if (adopted) controlled.push(adopted)
    }
  }
  scope.machines = controlled
  return proceed()
}

/** Returns all Machines of the set's Cluster from the cache, including those of other sets and of the control plane. */
export const machinesOfCluster = ({ metadata, spec }: MachineSet, { cache }: MachineSetIO): readonly Machine[] =>
  cache.byIndex(MachinesByClusterName, `${metadata.namespace}/${spec.clusterName}`)

/** Lists the Machines of the set from the API server, for decisions that would be wrong with a stale cache. */
export async function liveMachines(machineSet: MachineSet, { client, signal }: MachineSetIO): Promise<Machine[]> {
  const { namespace } = machineSet.metadata
  const { items } = await client.list(Machine, { namespace: namespace!, labelSelector: plainSelector(machineSet).text, signal })
  return items.filter((machine) => isControlledByUid(machine, machineSet))
}

/**
 * Returns `spec.selector` of a set or deployment, which must consist of label equalities. It selects the Machines, and their bootstrap
 * configs and infrastructure machines, which have the same labels.
 * @throws TerminalError when the selector has other requirements. Upstream: metav1.LabelSelectorAsMap
 */
export function plainSelector({ kind, metadata, spec }: MachineSet | MachineDeployment): Selector {
  const fail = (problem: string): never => {
    throw new TerminalError(`failed to convert ${kind} "${metadata.name}" label selector to a map: ${problem}`)
  }
  for (const { operator, values = [] } of spec.selector.matchExpressions ?? []) {
    if (operator === 'In') {
      if (values.length !== 1) fail(`operator "In" without a single value cannot be converted into the old label selector format`)
    } else if (['NotIn', 'Exists', 'DoesNotExist'].includes(operator)) {
      fail(`operator "${operator}" cannot be converted into the old label selector format`)
    } else fail(`"${operator}" is not a valid selector operator`)
  }
  return labelSelector(spec.selector)
}

/** Whether a selector has only label equalities. */
export function hasPlainSelector(object: MachineSet | MachineDeployment): boolean {
  try {
    plainSelector(object)
    return true
  } catch {
    return false
  }
}
