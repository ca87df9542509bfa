/** Contract of the infrastructure of a Machine. Upstream: internal/contract/infrastructure_machine.go, v1.14. */
import type { MachineAddress } from '../core/v1beta2/machine.ts'
import { failureFields, templateFields } from './common.ts'
import { type ContractVersion, field, readField, readText } from './field.ts'

export const InfraMachineContract = {
  provisioned: field<boolean>(
    { v1beta1: 'status.ready', v1beta2: 'status.initialization.provisioned' },
    'True once the host is provisioned. Until then core copies only failureReason, failureMessage and the condition Ready.',
    { mandatory: true },
  ),
  providerID: field<string>('spec.providerID', 'Identifies the host at its provider; equals the spec.providerID of its Node.', {
    mandatory: true,
  }),
  specFailureDomain: field<string>(
    'spec.failureDomain',
    'Deprecated: failure domain of the host. Core writes it into the Machine spec.',
  ),
  failureDomain: field<string>('status.failureDomain', 'Failure domain of the host.'),
  addresses: field<MachineAddress[]>('status.addresses', 'Addresses of the host.'),
  interruptible: field<boolean>(
    'status.interruptible',
    'True when the infrastructure may remove the host at any time, as with spot instances.',
  ),
  ...failureFields,
}

export const InfraMachineTemplateContract = {
  ...templateFields,
  capacity: field<{ [resource: string]: string }>(
    'status.capacity',
    'Capacity of the hosts of the template, for the cluster autoscaler.',
  ),
}

/** Limits of `Machine.spec.providerID`, and of the failure domains in spec and status of a Machine. */
const maxProviderIDLength = 512
const maxFailureDomainLength = 256

/**
 * Returns the provider ID; `undefined` or empty before it is set.
 *
 * @throws TypeError when it is not a string, when it is too long for a Machine, or when `spec` is a list or a scalar
 */
export const providerIDOf = (infraMachine: object, contract: ContractVersion): string | undefined =>
  readText(infraMachine, InfraMachineContract.providerID, contract, maxProviderIDLength)

/**
 * Returns the failure domains in spec and status, each `undefined` if it is absent or null.
 *
 * @throws TypeError when one of them is not a string or is too long for a Machine, or when `spec` or `status` is a list or a scalar
 */
export function failureDomainsOfMachine(infraMachine: object, contract: ContractVersion) {
  const { specFailureDomain, failureDomain } = InfraMachineContract
  return {
    inSpec: readText(infraMachine, specFailureDomain, contract, maxFailureDomainLength),
    inStatus: readText(infraMachine, failureDomain, contract, maxFailureDomainLength),
  }
}

/** Limits of `Machine.status.addresses`. */
const maxAddresses = 256
const maxAddressLength = 256
const addressTypes: readonly unknown[] = ['Hostname', 'ExternalIP', 'InternalIP', 'ExternalDNS', 'InternalDNS']

/**
 * Returns the addresses of the infrastructure machine; `undefined` when `status.addresses` is absent or null.
 *
 * @throws TypeError when `status` is a list or a scalar, when the addresses are not a list, or when they violate the schema of
 * `Machine.status.addresses`: the API server would reject the whole status of the Machine
 */
export function addressesOf(infraMachine: object, contract: ContractVersion): MachineAddress[] | undefined {
  const path = InfraMachineContract.addresses.paths[contract]
  const list: unknown = readField(infraMachine, InfraMachineContract.addresses, contract)
  if (list === undefined) return undefined
  if (!Array.isArray(list)) throw new TypeError(`${path}: expected a list, got ${typeof list}`)
  if (list.length > maxAddresses) throw new TypeError(`${path}: expected at most ${maxAddresses} entries, got ${list.length}`)
  for (const [index, entry] of list.entries()) {
    const { type, address } = (entry ?? {}) as { type?: unknown; address?: unknown }
    if (!addressTypes.includes(type)) throw new TypeError(`${path}[${index}].type: expected one of ${addressTypes.join(', ')}`)
    if (typeof address === 'string' && address.length > 0 && address.length <= maxAddressLength) continue
    const got = typeof address === 'string' ? `${address.length} characters` : typeof address
    throw new TypeError(`${path}[${index}].address: expected a string of 1 to ${maxAddressLength} characters, got ${got}`)
  }
  return list
}
