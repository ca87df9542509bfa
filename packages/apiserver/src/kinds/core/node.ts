import { Node, type UnknownObject } from '@capstan/kube'
import { type BuiltinKind, declaredIn } from '../builtin-kind.ts'
import { ageColumn, at, column, list, nameColumn, orNone, orUnknown, text, wide } from '../columns.ts'

export const nodes: BuiltinKind<Node> = {
  ...declaredIn(Node),
  fields: { 'spec.unschedulable': (node) => String(at(node, 'spec', 'unschedulable') === true) },
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
    wide('Kernel-Version', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'kernelVersion'))),
    wide('Container-Runtime', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'containerRuntimeVersion'))),
  ],
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

const nodeAddress = (node: UnknownObject, wanted: string): string =>
  orNone(list<{ type: string; address: string }>(node, 'status', 'addresses').find(({ type }) => type === wanted)?.address ?? '')
