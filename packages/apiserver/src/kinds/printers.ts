/** What `kubectl get` prints of built-in kinds. Upstream: pkg/printers/internalversion, v1.36. */
import type { UnknownObject } from '@capstan/kube'
import type { PrinterColumn } from '../engine.ts'
import { memberAt, memberText } from '../registry/member.ts'

type Cell = PrinterColumn['cell']

const column = (name: string, cell: Cell, more: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name,
  type: 'string',
  cell,
  ...more,
})
const wide = (name: string, cell: Cell): PrinterColumn => column(name, cell, { priority: 1 })

const nameDescription =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names'

const name = column('Name', ({ metadata }) => metadata.name, { format: 'name', description: nameDescription })
const age = column('Age', ({ metadata }) => metadata.creationTimestamp ?? null, { type: 'date' })

const at = (object: UnknownObject, ...path: string[]): unknown => memberAt(object, path)
const text = (object: UnknownObject, ...path: string[]): string => memberText(object, path)
const orNone = (value: string): string => (value === '' ? '<none>' : value)
const orUnknown = (value: string): string => (value === '' ? '<unknown>' : value)
const list = <T>(object: UnknownObject, ...path: string[]): T[] => (at(object, ...path) as T[] | undefined) ?? []
const count = (object: UnknownObject, ...parts: string[]): number =>
  parts.reduce((sum, part) => sum + Object.keys((object[part] as object | undefined) ?? {}).length, 0)
const number = (object: UnknownObject, ...path: string[]): number => Number(at(object, ...path) ?? 0)

export const printers: { readonly [resource: string]: readonly PrinterColumn[] } = {
  namespaces: [name, column('Status', (o) => text(o, 'status', 'phase')), age],
  configmaps: [name, column('Data', (o) => count(o, 'data', 'binaryData')), age],
  secrets: [name, column('Type', (o) => text(o, 'type')), column('Data', (o) => count(o, 'data')), age],
  serviceaccounts: [name, column('Secrets', (o) => list(o, 'secrets').length), age],
  'leases.coordination.k8s.io': [name, column('Holder', (o) => text(o, 'spec', 'holderIdentity')), age],
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': [
    name,
    column('Webhooks', (o) => list(o, 'webhooks').length),
    age,
  ],
  'validatingwebhookconfigurations.admissionregistration.k8s.io': [
    name,
    column('Webhooks', (o) => list(o, 'webhooks').length),
    age,
  ],
  events: [
    column('Last Seen', (o) => lastSeen(o), { type: 'date' }),
    column('Type', (o) => text(o, 'type')),
    column('Reason', (o) => text(o, 'reason')),
    column('Object', (o) => `${text(o, 'involvedObject', 'kind').toLowerCase()}/${text(o, 'involvedObject', 'name')}`),
    wide('Subobject', (o) => text(o, 'involvedObject', 'fieldPath')),
    wide('Source', (o) =>
      [text(o, 'source', 'component') || text(o, 'reportingComponent'), text(o, 'source', 'host')].filter(Boolean).join(', '),
    ),
    column('Message', (o) => text(o, 'message').trim()),
    column('First Seen', (o) => firstSeen(o), { type: 'date', priority: 1 }),
    wide('Count', (o) => number(o, 'series', 'count') || number(o, 'count') || 1),
    column('Name', ({ metadata }) => metadata.name, { format: 'name', description: nameDescription, priority: 1 }),
  ],
  nodes: [
    name,
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    age,
    column('Version', (o) => text(o, 'status', 'nodeInfo', 'kubeletVersion')),
    wide('Internal-IP', (o) => nodeAddress(o, 'InternalIP')),
    wide('External-IP', (o) => nodeAddress(o, 'ExternalIP')),
    wide('OS-Image', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'osImage'))),
    wide('Kernel-Version', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'kernelVersion'))),
    wide('Container-Runtime', (o) => orUnknown(text(o, 'status', 'nodeInfo', 'containerRuntimeVersion'))),
  ],
  pods: [
    name,
    column('Ready', podReady),
    column('Status', podStatus),
    column('Restarts', (o) =>
      list<{ restartCount?: number }>(o, 'status', 'containerStatuses').reduce(
        (sum, { restartCount = 0 }) => sum + restartCount,
        0,
      ),
    ),
    age,
    wide('IP', (o) => orNone(text(o, 'status', 'podIP'))),
    wide('Node', (o) => orNone(text(o, 'spec', 'nodeName'))),
    wide('Nominated Node', (o) => orNone(text(o, 'status', 'nominatedNodeName'))),
    wide('Readiness Gates', () => '<none>'),
  ],
  services: [
    name,
    column('Type', (o) => text(o, 'spec', 'type')),
    column('Cluster-IP', (o) => orNone(text(o, 'spec', 'clusterIP'))),
    column('External-IP', (o) => (text(o, 'spec', 'type') === 'ExternalName' ? text(o, 'spec', 'externalName') : '<none>')),
    column('Port(s)', (o) =>
      orNone(
        list<{ port: number; nodePort?: number; protocol?: string }>(o, 'spec', 'ports')
          .map(({ port, nodePort, protocol = 'TCP' }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
          .join(','),
      ),
    ),
    age,
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  'rolebindings.rbac.authorization.k8s.io': bindingColumns(),
  'clusterrolebindings.rbac.authorization.k8s.io': bindingColumns(),
  'deployments.apps': [
    name,
    column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
    column('Up-to-date', (o) => number(o, 'status', 'updatedReplicas')),
    column('Available', (o) => number(o, 'status', 'availableReplicas')),
    age,
    ...containers(),
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector', 'matchLabels'))),
  ],
  'daemonsets.apps': [
    name,
    column('Desired', (o) => number(o, 'status', 'desiredNumberScheduled')),
    column('Current', (o) => number(o, 'status', 'currentNumberScheduled')),
    column('Ready', (o) => number(o, 'status', 'numberReady')),
    column('Up-to-date', (o) => number(o, 'status', 'updatedNumberScheduled')),
    column('Available', (o) => number(o, 'status', 'numberAvailable')),
    column('Node Selector', (o) => pairs(at(o, 'spec', 'template', 'spec', 'nodeSelector'))),
    age,
    ...containers(),
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector', 'matchLabels'))),
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

function podReady(pod: UnknownObject): string {
  const ready = list<{ ready?: boolean }>(pod, 'status', 'containerStatuses').filter((status) => status.ready).length
  return `${ready}/${list(pod, 'spec', 'containers').length}`
}

function podStatus(pod: UnknownObject): string {
  return pod.metadata.deletionTimestamp ? 'Terminating' : text(pod, 'status', 'reason') || text(pod, 'status', 'phase')
}

const lastSeen = (event: UnknownObject): string | null =>
  (at(event, 'series', 'lastObservedTime') ?? at(event, 'lastTimestamp') ?? firstSeen(event)) as string | null
const firstSeen = (event: UnknownObject): string | null =>
  (at(event, 'firstTimestamp') ?? at(event, 'eventTime') ?? null) as string | null

const pairs = (labels: unknown): string =>
  orNone(
    Object.entries((labels as Record<string, string> | undefined) ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(','),
  )

function containers(): PrinterColumn[] {
  const of = (o: UnknownObject, member: string) =>
    list<Record<string, string>>(o, 'spec', 'template', 'spec', 'containers')
      .map((container) => container[member] ?? '')
      .join(',')
  return [wide('Containers', (o) => of(o, 'name')), wide('Images', (o) => of(o, 'image'))]
}

function bindingColumns(): PrinterColumn[] {
  const subjects = (o: UnknownObject, kind: string) =>
    list<{ kind: string; name: string; namespace?: string }>(o, 'subjects')
      .filter((subject) => subject.kind === kind)
      .map(({ name: subject, namespace }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${subject}` : subject))
      .join(', ')
  return [
    name,
    column('Role', (o) => `${text(o, 'roleRef', 'kind')}/${text(o, 'roleRef', 'name')}`),
    age,
    wide('Users', (o) => subjects(o, 'User')),
    wide('Groups', (o) => subjects(o, 'Group')),
    wide('ServiceAccounts', (o) => subjects(o, 'ServiceAccount')),
  ]
}
