import type { Node } from '@capstan/kube'
import { draft } from '@capstan/kube'
import { expect, test } from 'vitest'
import { type Kubelet, newNode, nodeStatus } from './node.ts'

const kubelet = (fields: Partial<Kubelet> = {}): Kubelet => ({
  nodeName: 'm1',
  providerID: 'local:////default/m1',
  version: 'v1.36.0',
  role: 'worker',
  addresses: [{ type: 'Hostname', address: 'm1' }],
  ...fields,
})
const now = Date.UTC(2026, 0, 1)
const later = now + 60_000
const registered = (fields: Partial<Kubelet> = {}) =>
  draft({ ...newNode(kubelet(fields), undefined, now), apiVersion: 'v1', kind: 'Node' }) as Node
const ready = (status: Node['status']) => status?.conditions?.find(({ type }) => type === 'Ready')

test.each([
  ['worker', [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }], undefined],
  ['control-plane', [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }], ''],
] as const)(
  'the Node of a %s that boots from data of another provider has the taint of its role, and only a control plane has the role label',
  (role, taints, label) => {
    const node = registered({ role })
    expect(node.spec?.taints).toEqual(taints)
    expect(node.metadata.labels?.['node-role.kubernetes.io/control-plane']).toBe(label)
  },
)

test('a kubelet without changes does not report its status again', () => {
  expect(nodeStatus(registered(), kubelet(), later)).toBeUndefined()
})

test('a failing kubelet reports NotReady once, and does not change other conditions', () => {
  const node = registered()
  const status = nodeStatus(node, kubelet({ failureMessage: 'disk full' }), later)
  expect(ready(status)).toMatchObject({ status: 'False', message: 'disk full', lastTransitionTime: '2026-01-01T00:01:00Z' })
  const otherConditions = (given: Node['status']) => given?.conditions?.filter(({ type }) => type !== 'Ready')
  expect(otherConditions(status)).toEqual(otherConditions(node.status))
  expect(nodeStatus({ ...node, status: status! }, kubelet({ failureMessage: 'disk full' }), later + 1000)).toBeUndefined()
})

test('a status report preserves conditions of other writers', () => {
  const node = registered()
  node.status!.conditions!.push({ type: 'NetworkUnavailable', status: 'False' })
  const status = nodeStatus(node, kubelet({ version: 'v1.36.1' }), later)
  expect(status?.nodeInfo?.kubeletVersion).toBe('v1.36.1')
  expect(status?.conditions?.map(({ type }) => type)).toContain('NetworkUnavailable')
})
