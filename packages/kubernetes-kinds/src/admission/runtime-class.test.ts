import { Pod, unknownKind } from '@capstan/kube'
import { expect, test } from 'vitest'
import { rejection, testServer } from '../test-server.ts'

const RuntimeClass = unknownKind({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  plural: 'runtimeclasses',
  scope: 'Cluster',
})

async function scenario() {
  const { client } = await testServer()
  await client.create(RuntimeClass, {
    metadata: { name: 'sandbox' },
    handler: 'sandbox',
    overhead: { podFixed: { cpu: '250m' } },
    scheduling: {
      nodeSelector: { runtime: 'sandbox' },
      tolerations: [{ key: 'sandbox', operator: 'Exists', effect: 'NoSchedule' }],
    },
  })
  return (spec: object) =>
    client.create(Pod, {
      metadata: { namespace: 'default', generateName: 'a-' },
      spec: { containers: [{ name: 'main', image: 'nginx' }], ...spec },
    } as never)
}

const forbiddenBecause = (text: string) => expect.stringContaining(`is forbidden: ${text}`)

test('a pod gets the overhead and the scheduling of its RuntimeClass', async () => {
  const create = await scenario()
  const tolerations = [
    { key: 'mine', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
    { key: 'sandbox', operator: 'Equal', value: 'x', effect: 'NoSchedule' },
  ]
  const { spec } = await create({ runtimeClassName: 'sandbox', nodeSelector: { disk: 'fast' }, tolerations })
  expect(spec).toMatchObject({ overhead: { cpu: '250m' }, nodeSelector: { disk: 'fast', runtime: 'sandbox' } })
  const ownTolerations = (spec as { tolerations?: { key: string }[] }).tolerations!.filter(({ key }) => !key.startsWith('node.'))
  // The toleration of the class covers more than the toleration of the pod.
  expect(ownTolerations).toEqual([tolerations[0], { key: 'sandbox', operator: 'Exists', effect: 'NoSchedule' }])
})

test('a pod is rejected if its RuntimeClass does not exist, if it contradicts its RuntimeClass, or if it has an overhead without a RuntimeClass', async () => {
  const create = await scenario()
  expect(await rejection(create({ runtimeClassName: 'none' }))).toEqual(
    forbiddenBecause('pod rejected: RuntimeClass "none" not found'),
  )
  expect(await rejection(create({ runtimeClassName: 'sandbox', nodeSelector: { runtime: 'x' } }))).toEqual(
    forbiddenBecause('conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; pod.spec.nodeSelector[runtime] = x'),
  )
  expect(await rejection(create({ runtimeClassName: 'sandbox', overhead: { cpu: '1' } }))).toEqual(
    forbiddenBecause("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
  )
  expect(await rejection(create({ overhead: { cpu: '1' } }))).toEqual(
    forbiddenBecause('pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'),
  )
  expect(await rejection(create({}))).toBe('accepted')
})
