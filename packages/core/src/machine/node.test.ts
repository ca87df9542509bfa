import { Node, silent } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { aCluster, aMachine } from '@capstan/testing'
import { expect, test } from 'vitest'
import { node } from './node.ts'
import type { MachineIO, MachineScope } from './scope.ts'

test('a taint that another client has added since the Node was read is not overwritten', async () => {
  const { client } = await testServer()
  const uninitialized = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' } as const
  const maintenance = { key: 'example.com/maintenance', effect: 'NoSchedule' } as const
  const read = await client.create(Node, {
    metadata: { name: 'n' },
    spec: { providerID: 'dev:///m', taints: [uninitialized] },
  })
  await client.patch(Node, { name: 'n' }, { type: 'merge', body: { spec: { taints: [uninitialized, maintenance] } } })

  const scope = {
    machine: aMachine({ spec: { providerID: 'dev:///m' } }),
    cluster: aCluster(),
    infrastructure: { state: 'unread' },
    node: { state: 'unread' },
  } as unknown as MachineScope
  const io = {
    clusters: { connection: () => ({ client, nodesByProviderID: () => [read] }) },
    settings: { syncLabels: [], syncAnnotations: [] },
    events: { event: () => {} },
    log: silent,
    signal: new AbortController().signal,
  } as unknown as MachineIO
  await expect(node(scope, io)).rejects.toMatchObject({ reason: 'Conflict' })
  expect((await client.get(Node, { name: 'n' })).spec?.taints).toEqual([uninitialized, maintenance])
})
