import {
  appendAll,
  duplicate,
  equal,
  type FieldError,
  forbidden,
  invalid,
  valueKey,
  labelKeyProblems,
  labelValueProblems,
  repeats,
  type UnknownObject,
} from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems, requiredOneOf } from '../checks.ts'
import { ageColumn, at, column, list, nameColumn, orNone, orUnknown, text, wide } from '../columns.ts'
import { resourceAmount } from '../pod/resources.ts'
import { TaintEffects } from '../pod/spec.ts'
import type { Node, Taint } from '../schemas/types.ts'
import { blockErrors } from '../addresses.ts'

export const nodes: BuiltinKind<Node> = {
  selectableFields: { 'spec.unschedulable': (node) => String(at(node, 'spec', 'unschedulable') === true) },
  statusOnCreate: true,
  columns: [
    nameColumn,
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    ageColumn,
    column('Version', (o) => text(o, 'status', 'nodeInfo', 'kubeletVersion')),
    wide('Internal-IP', (o) => nodeAddress(o, 'InternalIP')),
    wide('External-IP', (o) => nodeAddress(o, 'ExternalIP')),
    wide('OS-Image', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'osImage'))),
    wide('Kernel-Version', kernel),
    wide('Container-Runtime', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'containerRuntimeVersion'))),
  ],
  default({ spec, status }) {
    if (status.capacity) status.allocatable ??= { ...status.capacity }
    // podCIDR and the first of podCIDRs must be equal. Clients may know only podCIDR, so it takes precedence.
    if (spec.podCIDR && spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR]
    else if (spec.podCIDRs?.length) spec.podCIDR = spec.podCIDRs[0]!
  },
  warnings: ({ spec: { configSource, externalID } }) => [
    ...(configSource ? ['spec.configSource: the feature is removed'] : []),
    ...(externalID ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes'] : []),
  ],
  validate(node, old) {
    const { spec, status } = node
    const errors = [
      ...amounts('status.capacity', status.capacity),
      ...amounts('status.allocatable', status.allocatable),
      // Upstream reports this path instead of `spec.taints`.
      ...taintErrors('metadata.taints', spec.taints ?? []),
    ]
    if (!old) {
      for (const [index, range] of (spec.podCIDRs ?? []).entries())
        appendAll(errors, blockErrors(`spec.podCIDRs[${index}]`, range, true))
      return errors
    }
    const repeated = repeats((status.addresses ?? []).map(valueKey))
    for (const [index, address] of (status.addresses ?? []).entries()) {
      if (repeated[index]) errors.push(duplicate(`status.addresses[${index}]`, address))
    }
    if (old.spec.podCIDRs?.length && !equal(spec.podCIDRs ?? [], old.spec.podCIDRs)) {
      errors.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
    }
    if (old.spec.providerID && spec.providerID !== old.spec.providerID) {
      errors.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
    }
    if (spec.externalID !== old.spec.externalID) errors.push(forbidden('spec.externalID', 'may not be updated'))
    return errors
  },
}

const amounts = (field: string, list: { readonly [name: string]: string | number } = {}): FieldError[] =>
  Object.entries(list).flatMap(([name, amount]) => resourceAmount(`${field}.${name}`, name, amount))

function taintErrors(field: string, taints: readonly Taint[]): FieldError[] {
  const seenTaints = new Set<string>()
  return taints.flatMap((taint, index) => {
    const { key, value = '', effect } = taint
    const taintPath = `${field}[${index}]`
    const errors = problems(`${taintPath}.key`, key, labelKeyProblems(key))
    const texts = labelValueProblems(value)
    if (texts.length > 0) errors.push(invalid(`${taintPath}.value`, value, texts.join(';')))
    appendAll(errors, requiredOneOf(`${taintPath}.effect`, effect, TaintEffects))
    if (seenTaints.has(`${effect} ${key}`)) {
      // Upstream prints the Go struct of the taint, with the names of its Go fields.
      const error = duplicate(taintPath, { Key: key, Value: value, Effect: effect, TimeAdded: taint.timeAdded ?? null })
      errors.push({ ...error, text: `${error.text}: taints must be unique by key and effect pair` })
    }
    seenTaints.add(`${effect} ${key}`)
    return errors
  })
}

interface ConditionLike {
  type: string
  status: string
}

function nodeStatus(node: UnknownObject): string {
  const ready = list<ConditionLike>(node, 'status', 'conditions').find(({ type }) => type === 'Ready')
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (at(node, 'spec', 'unschedulable') === true) words.push('SchedulingDisabled')
  return words.join(',')
}

function nodeRoles({ metadata }: UnknownObject): string {
  const roles = new Set<string>()
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (key.startsWith('node-role.kubernetes.io/')) roles.add(key.slice('node-role.kubernetes.io/'.length))
    else if (key === 'kubernetes.io/role' && value !== '') roles.add(value)
  }
  return orNone([...roles].filter(Boolean).sort().join(','))
}

const nodeAddress = (node: UnknownObject, addressType: string): string =>
  orNone(
    list<{ type: string; address: string }>(node, 'status', 'addresses').find(({ type }) => type === addressType)?.address ?? '',
  )

function kernel(node: UnknownObject): string {
  const version = orUnknown(text(node, 'status', 'nodeInfo', 'kernelVersion'))
  const architecture = text(node, 'status', 'nodeInfo', 'architecture')
  return architecture === '' ? version : `${version} (${architecture})`
}
