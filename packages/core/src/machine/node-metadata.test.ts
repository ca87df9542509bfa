import type { Machine } from '@capstan/api'
import type { Node, ObjectMeta } from '@capstan/kube'
import { aCluster, aMachine, aMachineDeployment, aMachineSet, aNode } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { nodePatch, type NodePatchInput } from './node-metadata.ts'

const input = (machine: Machine, overrides: Partial<NodePatchInput> = {}): NodePatchInput => ({
  machine,
  cluster: aCluster(),
  machineSet: undefined,
  machineDeployment: undefined,
  isInterruptible: false,
  settings: { syncLabels: [/^team\.example\.com\//], syncAnnotations: [] },
  ...overrides,
})

/** Returns the Node after the patch. */
function applyPatch(node: Node, input: NodePatchInput): Node {
  const patch = nodePatch(node, input)
  if (!patch) return node
  const merge = (current: Record<string, string> = {}, changes: Record<string, string | null> = {}) =>
    Object.fromEntries(Object.entries({ ...current, ...changes }).filter(([, value]) => value !== null)) as Record<string, string>
  const { labels, annotations } = patch.body.metadata as { labels?: Record<string, string>; annotations?: Record<string, string> }
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: merge(node.metadata.labels, labels),
      annotations: merge(node.metadata.annotations, annotations),
    },
    spec: { ...node.spec, ...(patch.body.spec ? { taints: patch.body.spec.taints ?? [] } : {}) },
  }
}

const labelled = (labels: ObjectMeta['labels'], annotations: ObjectMeta['annotations'] = {}) =>
  aMachine({ metadata: { labels: labels!, annotations } })

describe('labels', () => {
  test('of some domains are copied to the Node, labels of other domains are not', () => {
    const machine = labelled({
      'node-role.kubernetes.io/worker': '',
      'x.node-role.kubernetes.io/worker': '',
      'node-restriction.kubernetes.io/a': '1',
      'sub.node-restriction.kubernetes.io/b': '2',
      'pool.node.cluster.x-k8s.io/c': '3',
      'team.example.com/d': '4',
      'example.com/e': '5',
      'node-role.kubernetes.io': '6',
      'sub.node.cluster.x-k8s.io': '7',
      'sub.node-role.kubernetes.io': '8',
      f: '9',
    })
    expect(applyPatch(aNode(), input(machine)).metadata.labels).toEqual({
      'node-role.kubernetes.io/worker': '',
      'node-restriction.kubernetes.io/a': '1',
      'sub.node-restriction.kubernetes.io/b': '2',
      'pool.node.cluster.x-k8s.io/c': '3',
      'team.example.com/d': '4',
      'node-role.kubernetes.io': '6',
      'sub.node.cluster.x-k8s.io': '7',
    })
  })

  test('that the Machine loses are removed from the Node; labels of other writers stay', () => {
    const labelledNode = applyPatch(
      aNode({ metadata: { labels: { 'node.cluster.x-k8s.io/theirs': '' } } }),
      input(labelled({ 'node.cluster.x-k8s.io/ours': '' })),
    )
    expect(Object.keys(labelledNode.metadata.labels!).sort()).toEqual([
      'node.cluster.x-k8s.io/ours',
      'node.cluster.x-k8s.io/theirs',
    ])
    expect(applyPatch(labelledNode, input(labelled({}))).metadata.labels).toEqual({ 'node.cluster.x-k8s.io/theirs': '' })
  })

  test('mark the Node of an interruptible Machine', () => {
    expect(nodePatch(aNode(), input(aMachine(), { isInterruptible: true }))?.becomesInterruptible).toBe(true)
    const node = applyPatch(aNode(), input(aMachine(), { isInterruptible: true }))
    expect(node.metadata.labels).toEqual({ 'cluster.x-k8s.io/interruptible': '' })
    expect(nodePatch(node, input(aMachine(), { isInterruptible: true }))).toBeUndefined()
  })
})

test('annotations name the Machine, its Cluster and its owner, and record which labels, annotations and taints were copied', () => {
  const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', name: 'ms', uid: 'u', controller: true }
  const machine = aMachine({
    metadata: { ownerReferences: [owner], annotations: { 'node.cluster.x-k8s.io/note': 'x', other: 'y' } },
  })
  expect(applyPatch(aNode(), input(machine)).metadata.annotations).toEqual({
    'cluster.x-k8s.io/cluster-name': 'demo',
    'cluster.x-k8s.io/cluster-namespace': 'default',
    'cluster.x-k8s.io/machine': 'm1',
    'cluster.x-k8s.io/owner-kind': 'MachineSet',
    'cluster.x-k8s.io/owner-name': 'ms',
    'node.cluster.x-k8s.io/note': 'x',
    'cluster.x-k8s.io/labels-from-machine': '',
    'cluster.x-k8s.io/annotations-from-machine': 'node.cluster.x-k8s.io/note',
    'cluster.x-k8s.io/taints-from-machine': '',
  })
})

describe('taints', () => {
  const uninitialized = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' } as const
  const foreignTaint = { key: 'theirs', effect: 'NoExecute' } as const
  const tainted = (...taints: NonNullable<Machine['spec']['taints']>) => aMachine({ spec: { taints } })
  const always = { key: 'a', effect: 'NoSchedule', value: '1', propagation: 'Always' } as const
  const once = { key: 'o', effect: 'NoSchedule', propagation: 'OnInitialization' } as const
  const texts = (node: Node) => node.spec?.taints?.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`))

  test('with propagation OnInitialization are added once, those with Always for as long as the Machine has them', () => {
    const first = applyPatch(aNode({ spec: { taints: [uninitialized, foreignTaint] } }), input(tainted(always, once)))
    expect(texts(first)).toEqual(['theirs', 'a=1', 'o'])
    expect(nodePatch(first, input(tainted(always, once)))).toBeUndefined()

    const removedByHand = { ...first, spec: { ...first.spec, taints: [foreignTaint] } }
    expect(texts(applyPatch(removedByHand, input(tainted(always, once))))).toEqual(['theirs', 'a=1'])
    expect(texts(applyPatch(first, input(tainted({ ...always, value: '2' }, once))))).toEqual(['theirs', 'a=2', 'o'])
    expect(texts(applyPatch(first, input(tainted(once))))).toEqual(['theirs', 'o'])
  })

  test('are added in the order of the Machine', () => {
    expect(texts(applyPatch(aNode(), input(tainted(once, always))))).toEqual(['o', 'a=1'])
  })

  const revision = (n: string | undefined) =>
    n === undefined ? {} : { metadata: { annotations: { 'machinedeployment.clusters.x-k8s.io/revision': n } } }
  const inputOfRevisions = (set: string | undefined, deployment: string | undefined) =>
    input(aMachine(), { machineSet: aMachineSet(revision(set)), machineDeployment: aMachineDeployment(revision(deployment)) })

  test('mark Nodes that a rollout will replace', () => {
    const outdated = applyPatch(aNode(), inputOfRevisions('9', '10'))
    expect(texts(outdated)).toEqual(['node.cluster.x-k8s.io/outdated-revision'])
    expect(nodePatch(outdated, inputOfRevisions('9', '10'))).toBeUndefined()
    expect(texts(applyPatch(outdated, inputOfRevisions('10', '10')))).toEqual([])
  })

  test('cannot be computed while a revision is not a number', () => {
    expect(() => nodePatch(aNode(), inputOfRevisions('x', '1'))).toThrow(
      'failed to check if Node node-1 is outdated: strconv.ParseInt: parsing "x": invalid syntax',
    )
  })

  test('mark Nodes of a MachineSet without revision, such as an adopted one, if the MachineDeployment has a revision', () => {
    expect(texts(applyPatch(aNode(), inputOfRevisions(undefined, '1')))).toEqual(['node.cluster.x-k8s.io/outdated-revision'])
    expect(texts(applyPatch(aNode(), inputOfRevisions(undefined, undefined)))).toBeUndefined()
    expect(texts(applyPatch(aNode(), inputOfRevisions('1', undefined)))).toBeUndefined()
  })

  test('of other writers keep their place after the taint for an outdated revision', () => {
    const outdated = applyPatch(aNode(), inputOfRevisions('1', '2'))
    const node = { ...outdated, spec: { ...outdated.spec, taints: [...outdated.spec!.taints!, foreignTaint] } }
    expect(nodePatch(node, inputOfRevisions('1', '2'))).toBeUndefined()
  })
})
