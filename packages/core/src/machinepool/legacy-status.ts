/**
 * Reports a MachinePool's status in the v1beta1 form, under `status.deprecated.v1beta1`. Pure, except for the draft that it changes.
 * Upstream: machinepool_controller_phases.go and machinepool_controller_noderef.go, v1.14.
 */
import { BootstrapConfigContract, type MachinePool } from '@capstan/api'
import { isDeleting, legacyFalse, legacyTrue, mirrorProviderReady, type NewLegacyCondition } from '@capstan/kube'
import { externalOf, invalidOf, isReached } from '../external/observed.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import type { MachinePoolScope } from './scope.ts'

/** Legacy conditions that this controller owns. */
export const OwnedLegacyConditions = ['Ready', 'BootstrapReady', 'InfrastructureReady', 'ReplicasReady']

export function reportLegacyStatus(scope: MachinePoolScope, now: number): void {
  const computed = [...bootstrapReady(scope), ...infrastructureReady(scope), ...replicasReady(scope)]
  reportLegacyConditions(scope.machinePool, computed, {
    now,
    ready: { of: ['BootstrapReady', 'InfrastructureReady', 'ReplicasReady'] },
  })
}

interface NodeCounts {
  readonly readyReplicas: number
  readonly availableReplicas: number
  readonly unavailableReplicas: number
}

/** Writes counts of Nodes on the draft; omits a count of 0, as upstream. */
export function reportNodeCounts(machinePool: MachinePool, counts: NodeCounts): void {
  const nonZeroCounts = Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
  const {
    readyReplicas: _ready,
    availableReplicas: _available,
    unavailableReplicas: _unavailable,
    ...otherFields
  } = machinePool.status?.deprecated?.v1beta1 ?? {}
  const status = (machinePool.status ??= {})
  status.deprecated = { ...status.deprecated, v1beta1: { ...otherFields, ...nonZeroCounts } }
}

function bootstrapReady({ machinePool, bootstrap }: MachinePoolScope): NewLegacyCondition[] {
  const type = 'BootstrapReady'
  const { dataSecretName } = machinePool.spec.template.spec.bootstrap
  if (bootstrap.state === 'none' && dataSecretName !== undefined) return [legacyTrue(type)]
  const external = externalOf(bootstrap)
  if (!external || isDeleting(external.object)) return []
  const invalid = invalidOf(bootstrap)
  // Upstream only logs this problem. The message of the condition names the field that breaks the contract.
  if (invalid !== undefined) return [legacyFalse(type, 'IncorrectExternalRef', 'Error', invalid)]
  const isCreated = isReached(external, BootstrapConfigContract.dataSecretCreated)
  if (isCreated === undefined) return []
  const fallback = isCreated ? legacyTrue(type) : legacyFalse(type, 'WaitingForDataSecret', 'Info')
  return [mirrorProviderReady(external.object, type, fallback)]
}

function infrastructureReady({ machinePool, infrastructure }: MachinePoolScope): NewLegacyCondition[] {
  const type = 'InfrastructureReady'
  const invalid = invalidOf(infrastructure)
  // Upstream only logs this problem. The message of the condition names the field that breaks the contract.
  if (invalid !== undefined) return [legacyFalse(type, 'IncorrectExternalRef', 'Error', invalid)]
  if (infrastructure.state === 'missing') {
    const { kind, name } = machinePool.spec.template.spec.infrastructureRef
    const message = `could not find infra reference of kind ${kind} with name ${name}`
    return [legacyFalse(type, 'IncorrectExternalRef', 'Error', message)]
  }
  const external = externalOf(infrastructure)
  if (!external || isDeleting(external.object)) return []
  const fallback = machinePool.status?.initialization?.infrastructureProvisioned
    ? legacyTrue(type)
    : legacyFalse(type, 'WaitingForInfrastructure', 'Info')
  return [mirrorProviderReady(external.object, type, fallback)]
}

/** Maximum number of repeated provider IDs that a message names. */
const MaxIDs = 3

function replicasReady({ machinePool, nodes, hasNoMachines }: MachinePoolScope): NewLegacyCondition[] {
  const type = 'ReplicasReady'
  if (hasNoMachines) return [legacyTrue(type)]
  if (!nodes) return []
  const replicas = machinePool.status?.replicas ?? 0
  if (replicas === nodes.ready && nodes.nodes.length === nodes.ready) return [legacyTrue(type)]
  const { repeated } = nodes
  const suffix = repeated.length > MaxIDs ? `, ... (${repeated.length - MaxIDs} more)` : ''
  const message =
    repeated.length === 0 ? '' : `spec.providerIDList has IDs more than once: ${repeated.slice(0, MaxIDs).join(', ')}${suffix}`
  return [legacyFalse(type, 'WaitingForReplicasReady', 'Info', message)]
}
