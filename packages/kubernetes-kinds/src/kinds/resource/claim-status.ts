/**
 * Validates the status of a ResourceClaim: allocated devices, the consumers of the claim, and the status that drivers report. Drops the status
 * of devices that are no longer allocated.
 */
import { type FieldError, forbidden, invalid, required, tooLong } from '@capstan/kube'
import { bitsOf, type Block, parseBlock } from '../addresses.ts'
import { requiredOneOf } from '../checks.ts'
import { validateNodeSelector } from '../pod/spec.ts'
import { sameKey } from '../same.ts'
import type {
  AllocatedDeviceStatus,
  AllocationResult,
  DeviceAllocationConfiguration,
  DeviceRequestAllocationResult,
  NetworkDeviceData,
  ResourceClaimConsumerReference,
  ResourceClaimStatus,
  ResourceV1ResourceClaim as ResourceClaim,
} from '../schemas/types.ts'
import { bindingErrors } from './binding-conditions.ts'
import { conditionErrors } from './conditions.ts'
import { MaxConfigurations, rawObjectErrors } from './device-configuration.ts'
import { claimConfigurationErrors, referenceErrors, type RequestNames, requestNames } from './device-requests.ts'
import { immutableStruct } from './immutable-struct.ts'
import { listErrors, setErrors } from './lists.ts'
import { driverErrors, labelErrors, poolErrors, uidErrors } from './names.ts'

const MaxConsumers = 256
const MaxResults = 32
const MaxConditions = 8
const MaxAddresses = 16
const MaxInterfaceName = 256
const MaxHardwareAddress = 128

/** Identifies a device, or a share of a device. */
type DeviceId = Pick<AllocatedDeviceStatus, 'driver' | 'pool' | 'device' | 'shareID'>

const idOf = ({ driver, pool, device, shareID = '' }: DeviceId) => ({
  Driver: driver,
  Pool: pool,
  Device: device,
  ShareID: shareID,
})
const textOf = (id: DeviceId): string => JSON.stringify(idOf(id))

const devicesOf = ({ allocation }: ResourceClaimStatus): ReadonlySet<string> =>
  new Set((allocation?.devices.results ?? []).map(textOf))

/** Drops the status of devices that are no longer allocated, because the client that releases them may not know this status. */
export function dropFreedDevices(status: ResourceClaimStatus, old: ResourceClaimStatus): void {
  const [allocatedBefore, allocatedNow] = [devicesOf(old), devicesOf(status)]
  const keptDevices = (status.devices ?? []).filter(
    (device) => !allocatedBefore.has(textOf(device)) || allocatedNow.has(textOf(device)),
  )
  if (keptDevices.length > 0) status.devices = keptDevices
  else delete status.devices
}

export function claimStatusErrors({ metadata, spec, status }: ResourceClaim, { status: old }: ResourceClaim): FieldError[] {
  const { allocation } = status
  const allocatedDevices = devicesOf(status)
  return [
    ...setErrors('status.reservedFor', status.reservedFor, MaxConsumers, consumerErrors, ({ uid }) => uid),
    ...setErrors(
      'status.devices',
      status.devices,
      undefined,
      (valuePath, device) => deviceErrors(valuePath, device, allocatedDevices),
      idOf,
    ),
    ...reservationErrors(status, old, metadata.deletionTimestamp !== undefined),
    ...(allocation && old.allocation
      ? immutableStruct('status.allocation', 'resource/v1.AllocationResult', allocation, old.allocation)
      : []),
    ...(allocation && !old.allocation ? allocationErrors('status.allocation', allocation, requestNames(spec.devices)) : []),
  ]
}

const consumerErrors = (field: string, consumer: ResourceClaimConsumerReference): FieldError[] =>
  (['resource', 'name', 'uid'] as const).flatMap((member) => (consumer[member] ? [] : [required(`${field}.${member}`)]))

/** Requires an allocation if there are consumers. While the claim is being deleted, no consumers can be added. */
function reservationErrors(
  { allocation, reservedFor = [] }: ResourceClaimStatus,
  { reservedFor: old = [] }: ResourceClaimStatus,
  isDeleted: boolean,
): FieldError[] {
  if (reservedFor.length === 0) return []
  if (!allocation) return [forbidden('status.reservedFor', 'may not be specified when `allocated` is not set')]
  const oldKeys = new Set(old.map(sameKey))
  const isNew = (consumer: ResourceClaimConsumerReference) => !oldKeys.has(sameKey(consumer))
  const text = 'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set'
  return isDeleted && reservedFor.some(isNew) ? [forbidden('status.reservedFor', text)] : []
}

const allocationErrors = (field: string, { devices, nodeSelector }: AllocationResult, names: RequestNames): FieldError[] => [
  ...listErrors(`${field}.devices.results`, devices.results, MaxResults, (valuePath, result) =>
    resultErrors(valuePath, result, names),
  ),
  // The list contains the configurations of device classes and of the claim, so its limit is twice as high.
  ...listErrors(`${field}.devices.config`, devices.config, 2 * MaxConfigurations, (valuePath, config) =>
    configErrors(valuePath, config, names),
  ),
  ...(nodeSelector ? validateNodeSelector(`${field}.nodeSelector`, nodeSelector) : []),
]

const resultErrors = (field: string, result: DeviceRequestAllocationResult, names: RequestNames): FieldError[] => [
  ...referenceErrors(`${field}.request`, result.request, names),
  ...driverErrors(`${field}.driver`, result.driver),
  ...poolErrors(`${field}.pool`, result.pool),
  ...labelErrors(`${field}.device`, result.device),
  ...bindingErrors(field, result),
  ...(result.shareID === undefined ? [] : uidErrors(`${field}.shareID`, result.shareID)),
]

const configErrors = (field: string, config: DeviceAllocationConfiguration, names: RequestNames): FieldError[] => [
  ...requiredOneOf(`${field}.source`, config.source, ['FromClaim', 'FromClass']),
  ...claimConfigurationErrors(field, config, names),
]

function deviceErrors(field: string, device: AllocatedDeviceStatus, allocatedDevices: ReadonlySet<string>): FieldError[] {
  const { shareID, conditions, data, networkData } = device
  return [
    ...driverErrors(`${field}.driver`, device.driver),
    ...poolErrors(`${field}.pool`, device.pool),
    ...labelErrors(`${field}.device`, device.device),
    ...(shareID === undefined ? [] : uidErrors(`${field}.shareID`, shareID)),
    ...(allocatedDevices.has(textOf(device)) ? [] : [invalid(field, idOf(device), 'must be an allocated device in the claim')]),
    ...conditionErrors(`${field}.conditions`, conditions, MaxConditions),
    ...(data === undefined ? [] : rawObjectErrors(`${field}.data`, data)),
    ...(networkData ? networkErrors(`${field}.networkData`, networkData) : []),
  ]
}

const networkErrors = (field: string, { interfaceName = '', hardwareAddress = '', ips }: NetworkDeviceData): FieldError[] => [
  ...(Buffer.byteLength(interfaceName) > MaxInterfaceName ? [tooLong(`${field}.interfaceName`, MaxInterfaceName)] : []),
  ...(Buffer.byteLength(hardwareAddress) > MaxHardwareAddress ? [tooLong(`${field}.hardwareAddress`, MaxHardwareAddress)] : []),
  ...setErrors(`${field}.ips`, ips, MaxAddresses, interfaceAddressErrors, (address) => address),
]

/** Upstream: IsValidInterfaceAddress. */
function interfaceAddressErrors(field: string, text: string): FieldError[] {
  // As upstream, an address with leading zeros is valid, but not canonical.
  const block = parseBlock(text.replaceAll(/(^|\.)0+(?=\d)/g, '$1'))
  if (!block) return [invalid(field, text, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)')]
  const canonical = canonicalBlock(block)
  return text === canonical ? [] : [invalid(field, text, `must be in canonical form (${JSON.stringify(canonical)})`)]
}

function canonicalBlock({ address, bits, family }: Block): string {
  if (family === 'ipv4') return `${address}/${bits}`
  const value = bitsOf(address)
  // As upstream, the canonical form of an IPv4-mapped IPv6 address is IPv4: that of ::ffff:192.168.0.1/120 is 192.168.0.1/24.
  if (value >> 32n === 0xffffn) {
    const parts = [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn)
    return `${parts.join('.')}/${bits > 32 ? bits - 96 : bits}`
  }
  return `${new URL(`http://[${address}]`).hostname.slice(1, -1)}/${bits}`
}
