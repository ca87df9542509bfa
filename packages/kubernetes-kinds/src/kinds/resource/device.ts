/** Validates a device of a ResourceSlice: its attributes, its capacity, and the nodes that can use it. */
import { type FieldError, forbidden, invalid, required, tooLong } from '@capstan/kube'
import { subdomain } from '../checks.ts'
import { validateNodeSelector } from '../pod/spec.ts'
import { same } from '../same.ts'
import type { Device, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption } from '../schemas/types.ts'
import { bindingErrors } from './binding-conditions.ts'
import { counterErrors } from './counters.ts'
import { listErrors, mapErrors, setErrors } from './lists.ts'
import { labelErrors, MaxQualifiedName, qualifiedNameErrors, requiredLabelErrors } from './names.ts'
import { requestPolicyErrors } from './request-policy.ts'
import { taintErrors } from './taints.ts'

const MaxMembers = 32
const MaxTaints = 16
const MaxConsumptions = 2
const MaxText = 64

/** Validates a device. `old`: the stored device of the same name; `choosesNode`: whether each device of the slice selects its own nodes. */
export function deviceErrors(field: string, device: Device, old: Device | undefined, choosesNode: boolean): FieldError[] {
  const { attributes = {}, capacity = {}, taints, consumesCounters } = device
  const members = Object.keys(attributes).length + Object.keys(capacity).length
  const tooMany = `the total number of attributes and capacities must not exceed ${MaxMembers}`
  const isShared = device.allowMultipleAllocations === true
  return [
    ...labelErrors(`${field}.name`, device.name),
    ...(members > MaxMembers ? [invalid(field, members, tooMany)] : []),
    ...mapErrors(`${field}.attributes`, attributes, mapLimits, qualifiedNameErrors, attributeErrors),
    ...mapErrors(`${field}.capacity`, capacity, mapLimits, qualifiedNameErrors, (entryPath, entry) =>
      capacityErrors(entryPath, entry, isShared),
    ),
    ...(old && same(taints, old.taints) ? [] : listErrors(`${field}.taints`, taints, MaxTaints, taintErrors)),
    ...setErrors(
      `${field}.consumesCounters`,
      consumesCounters,
      MaxConsumptions,
      consumptionErrors,
      ({ counterSet }) => counterSet,
    ),
    ...(choosesNode ? nodeErrors(field, device) : noNodeErrors(field, device)),
    ...bindingErrors(field, device),
  ]
}

/** Longer names are shortened in the paths of errors. `deviceErrors` limits the number of entries. */
const mapLimits = { shownKey: MaxQualifiedName }

/** Requires exactly one value. Lists of values, a feature that upstream disables by default, were dropped before validation. */
function attributeErrors(field: string, attribute: DeviceAttribute): FieldError[] {
  const { int = null, bool = null, string = null, version = null } = attribute
  const valueCount = [int, bool, string, version].filter((value) => value !== null).length
  const text = 'exactly one value must be specified'
  // Upstream prints its Go struct.
  const goStruct = {
    IntValue: int,
    BoolValue: bool,
    StringValue: string,
    VersionValue: version,
    IntValues: null,
    BoolValues: null,
    StringValues: null,
    VersionValues: null,
  }
  return [
    ...textErrors(`${field}.string`, string ?? ''),
    ...(version === null ? [] : versionErrors(`${field}.version`, version)),
    ...(valueCount === 1 ? [] : [invalid(field, valueCount === 0 ? '' : goStruct, text)]),
  ]
}

const textErrors = (field: string, text: string): FieldError[] =>
  Buffer.byteLength(text) > MaxText ? [tooLong(field, MaxText)] : []

const number = String.raw`(0|[1-9]\d*)`
const part = String.raw`(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)`
const semver = new RegExp(`^${number}\\.${number}\\.${number}(-${part}(\\.${part})*)?(\\+[0-9a-zA-Z-]+(\\.[0-9a-zA-Z-]+)*)?$`)

const versionErrors = (field: string, version: string): FieldError[] => [
  ...(semver.test(version) ? [] : [invalid(field, version, 'must be a string compatible with semver.org spec 2.0.0')]),
  ...textErrors(field, version),
]

function capacityErrors(field: string, { value, requestPolicy: policy }: DeviceCapacity, isShared: boolean): FieldError[] {
  if (!policy) return []
  const policyPath = `${field}.requestPolicy`
  return isShared
    ? requestPolicyErrors(policyPath, policy, value)
    : [forbidden(policyPath, 'allowMultipleAllocations must be true')]
}

const consumptionErrors = (field: string, { counterSet, counters }: DeviceCounterConsumption): FieldError[] => [
  ...requiredLabelErrors(`${field}.counterSet`, counterSet),
  ...counterErrors(`${field}.counters`, counters),
]

function nodeErrors(field: string, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  const presentFields = [
    ...(nodeName ? ['`nodeName`'] : []),
    ...(nodeSelector ? ['`nodeSelector`'] : []),
    ...(allNodes ? ['`allNodes`'] : []),
  ]
  const text =
    'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  return [
    ...(nodeName === '' ? [invalid(`${field}.nodeName`, nodeName, 'must not be empty')] : []),
    ...(nodeName ? subdomain(`${field}.nodeName`, nodeName) : []),
    ...(nodeSelector ? validateNodeSelector(`${field}.nodeSelector`, nodeSelector) : []),
    ...(allNodes === false ? [invalid(`${field}.allNodes`, allNodes, 'must be either unset or set to true')] : []),
    ...(presentFields.length === 0 ? [required(field, text)] : []),
    ...(presentFields.length > 1 ? [invalid(field, `{${presentFields.join(', ')}}`, text)] : []),
  ]
}

function noNodeErrors(field: string, { nodeName, nodeSelector, allNodes }: Device): FieldError[] {
  const text =
    '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec'
  return [nodeName, nodeSelector, allNodes].some((member) => member !== undefined) ? [invalid(field, null, text)] : []
}
