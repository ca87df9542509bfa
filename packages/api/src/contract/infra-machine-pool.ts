/**
 * Contract of the infrastructure of a MachinePool. Upstream: core/reconcilers/machinepool and
 * internal/contract/infrastructure_machinepool_template.go, v1.14.
 */
import { failureFields, templateFields } from './common.ts'
import { type ContractField, type ContractVersion, field, readField } from './field.ts'

export const InfraMachinePoolContract = {
  provisioned: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.provisioned' },
    'True while the pool is provisioned. Otherwise core copies only failureReason, failureMessage and the condition Ready.',
    { mandatory: true },
  ),
  ready: field<boolean>(
    'status.ready',
    'Deprecated: true while the pool is provisioned, as in contract v1beta1. Upstream v1.14 reads only this field, for both contract versions.',
  ),
  providerIDList: field<string[]>(
    'spec.providerIDList',
    'Provider IDs of the machines: each equals the spec.providerID of its Node. When an ID is removed from the list, core deletes its Node.',
    { mandatory: true },
  ),
  replicas: field<number>('status.replicas', 'Number of machines.', { mandatory: true }),
  infrastructureMachineKind: field<string>(
    'status.infrastructureMachineKind',
    'Kind of the infrastructure machines of the pool: core creates a Machine for each infrastructure machine. Without this field, core creates no Machines.',
  ),
  providerID: field<string>('spec.providerID', 'Identifies the pool at its provider. Core does not read it.'),
  instances: field<object[]>('status.instances', 'Details of each machine, for people. Core does not read it.'),
  ...failureFields,
}

export const InfraMachinePoolTemplateContract = templateFields

/** Limits of MachinePool.spec.providerIDList. */
const maxProviderIDs = 10_000
const maxProviderIDLength = 512

/**
 * Whether the pool is provisioned: `status.initialization.provisioned` if a pool of contract v1beta2 reports it, otherwise `status.ready`;
 * false if the pool reports neither.
 *
 * @throws TypeError when a field is not a boolean
 */
export function isPoolProvisioned(pool: object, contract: ContractVersion): boolean {
  const { provisioned, ready } = InfraMachinePoolContract
  return booleanOf(pool, provisioned, contract) ?? booleanOf(pool, ready, contract) ?? false
}

/**
 * Returns the provider IDs of the machines; empty when the pool reports no provider IDs.
 *
 * @throws TypeError when the value is not a list of strings, or violates the limits of `MachinePool.spec.providerIDList`
 */
export function providerIDsOf(pool: object, contract: ContractVersion): readonly string[] {
  const path = InfraMachinePoolContract.providerIDList.paths[contract]
  const list: unknown = readField(pool, InfraMachinePoolContract.providerIDList, contract)
  if (list === undefined) return []
  if (!Array.isArray(list)) throw new TypeError(`${path}: expected a list of strings, got ${typeof list}`)
  if (list.length > maxProviderIDs) throw new TypeError(`${path}: expected at most ${maxProviderIDs} entries, got ${list.length}`)
  for (const [index, id] of list.entries()) {
    if (typeof id === 'string' && id.length > 0 && id.length <= maxProviderIDLength) continue
    const got = typeof id === 'string' ? `${id.length} characters` : typeof id
    throw new TypeError(`${path}[${index}]: expected a string of 1 to ${maxProviderIDLength} characters, got ${got}`)
  }
  return list
}

/** Returns the number of machines that the pool reports, or `undefined`. @throws TypeError when it is not a 32-bit integer */
export function poolReplicasOf(pool: object, contract: ContractVersion): number | undefined {
  const replicas: unknown = readField(pool, InfraMachinePoolContract.replicas, contract)
  if (replicas === undefined) return undefined
  if (typeof replicas === 'number' && replicas === (replicas | 0)) return replicas
  const got = typeof replicas === 'number' ? replicas : typeof replicas
  throw new TypeError(`${InfraMachinePoolContract.replicas.paths[contract]}: expected a 32-bit integer, got ${got}`)
}

/**
 * Returns the kind of the infrastructure machines if the pool supports MachinePool Machines, otherwise `undefined`.
 *
 * @throws TypeError when the kind is not a string
 */
export function infrastructureMachineKindOf(pool: object, contract: ContractVersion): string | undefined {
  const kind: unknown = readField(pool, InfraMachinePoolContract.infrastructureMachineKind, contract)
  if (kind === undefined || kind === '') return undefined
  if (typeof kind === 'string') return kind
  throw new TypeError(
    `${InfraMachinePoolContract.infrastructureMachineKind.paths[contract]}: expected a string, got ${typeof kind}`,
  )
}

function booleanOf(pool: object, field: ContractField<boolean>, contract: ContractVersion): boolean | undefined {
  const value: unknown = readField(pool, field, contract)
  if (value === undefined || typeof value === 'boolean') return value
  throw new TypeError(`${field.paths[contract]}: expected a boolean, got ${typeof value}`)
}
