import { type FieldError, invalid, required, timestamp } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { subdomain } from '../checks.ts'
import { ageColumn, column, field, nameColumn, text } from '../columns.ts'
import { validateNodeSelector } from '../pod/spec.ts'
import { immutable } from '../same.ts'
import type {
  Counter,
  CounterSet,
  Device,
  NodeSelector,
  NodeSelectorRequirement,
  ResourcePool,
  ResourceSlice,
  ResourceSliceSpec,
} from '../schemas/types.ts'
import { counterErrors } from './counters.ts'
import { deviceErrors } from './device.ts'
import { setErrors } from './lists.ts'
import { driverErrors, poolErrors, requiredLabelErrors } from './names.ts'

const MaxDevices = 128
/** Limit when a device has taints or consumes counters. */
const MaxAdvancedDevices = 64
const MaxCounterSets = 8

/** Upstream: pkg/registry/resource/resourceslice, v1.36. */
export const resourceslices: BuiltinKind<ResourceSlice> = {
  generation: true,
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Node', (o) => text(o, 'spec', 'nodeName')),
    column('Driver', (o) => text(o, 'spec', 'driver')),
    column('Pool', (o) => text(o, 'spec', 'pool', 'name')),
    ageColumn,
  ],
  selectableFields: { 'spec.nodeName': field('spec', 'nodeName'), 'spec.driver': field('spec', 'driver') },
  unknownFieldSelector: (name) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${name}`,
  default({ spec: { devices = [], sharedCounters = [] } }) {
    const counterSets = [...sharedCounters, ...devices.flatMap(({ consumesCounters = [] }) => consumesCounters)]
    for (const set of counterSets) defaultAmounts(set.counters)
    for (const { capacity } of devices) defaultAmounts(capacity)
  },
  prepare({ spec: { devices = [] } }, _old, { server }) {
    for (const device of devices) {
      dropFeatures(device)
      for (const taint of device.taints ?? []) taint.timeAdded ??= timestamp(server.clock.now())
    }
  },
  warnings: ({ spec: { driver } }) =>
    driver === driver.toLowerCase()
      ? []
      : [`spec.driver: driver names should be lowercase; ${JSON.stringify(driver)} contains uppercase characters`],
  validate({ spec }, old) {
    const { devices, sharedCounters } = spec
    const isAdvanced = (devices ?? []).some(({ taints, consumesCounters }) => taints?.length || consumesCounters?.length)
    const choosesNode = spec.perDeviceNodeSelection === true
    const oldDevices = new Map(old?.spec.devices?.map((device) => [device.name, device]))
    const checkDevice = (valuePath: string, device: Device) =>
      deviceErrors(valuePath, device, oldDevices.get(device.name), choosesNode)
    return [
      ...driverErrors('spec.driver', spec.driver),
      ...resourcePoolErrors('spec.pool', spec.pool),
      ...(old ? changeErrors(spec, old.spec) : []),
      ...nodeErrors(spec),
      ...(sharedCounters && devices ? [invalid('spec', '', 'only one of `sharedCounters` or `devices` is allowed')] : []),
      ...setErrors('spec.devices', devices, isAdvanced ? MaxAdvancedDevices : MaxDevices, checkDevice, ({ name }) => name),
      ...setErrors('spec.sharedCounters', sharedCounters, MaxCounterSets, counterSetErrors, ({ name }) => name),
    ]
  },
}

/** Sets absent amounts to 0. */
function defaultAmounts(amounts: { readonly [name: string]: Counter } = {}): void {
  for (const amount of Object.values(amounts)) amount.value ??= '0'
}

/** Drops fields of disabled features: list attributes, and mappings of devices to allocatable resources of nodes. */
function dropFeatures(device: Device): void {
  delete device.nodeAllocatableResourceMappings
  for (const attribute of Object.values(device.attributes ?? {})) {
    for (const list of ['bools', 'ints', 'strings', 'versions'] as const) delete attribute[list]
  }
}

function resourcePoolErrors(valuePath: string, { name, resourceSliceCount: count, generation }: ResourcePool): FieldError[] {
  return [
    ...poolErrors(`${valuePath}.name`, name),
    ...(count <= 0 ? [invalid(`${valuePath}.resourceSliceCount`, count, 'must be greater than zero')] : []),
    ...(generation < 0 ? [invalid(`${valuePath}.generation`, generation, 'must be greater than or equal to zero')] : []),
  ]
}

const changeErrors = (spec: ResourceSliceSpec, old: ResourceSliceSpec): FieldError[] => [
  ...immutable('spec.pool.name', spec.pool.name, old.pool.name),
  ...immutable('spec.driver', spec.driver, old.driver),
  ...immutable('spec.nodeName', spec.nodeName, old.nodeName),
]

/** Validates the fields that select the nodes of the slice. Exactly one of them is required. */
function nodeErrors({ nodeName, nodeSelector, allNodes, perDeviceNodeSelection }: ResourceSliceSpec): FieldError[] {
  const presentFields = [
    ...(nodeName ? ['`nodeName`'] : []),
    ...(nodeSelector ? ['`nodeSelector`'] : []),
    ...(allNodes ? ['`allNodes`'] : []),
    ...(perDeviceNodeSelection ? ['`perDeviceNodeSelection`'] : []),
  ]
  const text = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'
  const notFalse = (valuePath: string, value: boolean | undefined) =>
    value === false ? [invalid(valuePath, value, 'must be either unset or set to true')] : []
  return [
    ...(nodeName === '' ? [invalid('spec.nodeName', nodeName, 'must be either unset or set to a non-empty string')] : []),
    ...(nodeName ? subdomain('spec.nodeName', nodeName) : []),
    ...(nodeSelector ? nodeSelectorErrors('spec.nodeSelector', nodeSelector) : []),
    ...notFalse('spec.allNodes', allNodes),
    ...notFalse('spec.perDeviceNodeSelection', perDeviceNodeSelection),
    ...(presentFields.length === 0 ? [required('spec', text)] : []),
    ...(presentFields.length > 1
      ? [invalid('spec', `{${presentFields.join(', ')}}`, `${text}, but multiple fields are set`)]
      : []),
  ]
}

function nodeSelectorErrors(valuePath: string, selector: NodeSelector): FieldError[] {
  const terms = selector.nodeSelectorTerms ?? []
  // Upstream prints its Go struct.
  const inGo = (list: readonly NodeSelectorRequirement[] | undefined) =>
    list?.map(({ key, operator, values }) => ({ Key: key, Operator: operator, Values: values ?? null })) ?? null
  const badValue = selector.nodeSelectorTerms?.map(({ matchExpressions, matchFields }) => ({
    MatchExpressions: inGo(matchExpressions),
    MatchFields: inGo(matchFields),
  }))
  return [
    ...validateNodeSelector(valuePath, selector),
    ...(terms.length === 1
      ? []
      : [invalid(`${valuePath}.nodeSelectorTerms`, badValue ?? null, 'must have exactly one node selector term')]),
  ]
}

const counterSetErrors = (valuePath: string, { name, counters }: CounterSet): FieldError[] => [
  ...requiredLabelErrors(`${valuePath}.name`, name),
  ...counterErrors(`${valuePath}.counters`, counters),
]
