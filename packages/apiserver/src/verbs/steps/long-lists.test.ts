import { ConfigMap, StatusError } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))

async function rejection(work: Promise<unknown>): Promise<StatusError> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(StatusError)
  return error as StatusError
}

test('200,000 invalid finalizers are rejected as invalid', async () => {
  const { client } = await testServer()
  const metadata = { name: 'a', namespace: 'default', finalizers: many(200_000, () => '-') }
  const { status } = await rejection(client.create(ConfigMap, { metadata }, { dryRun: true }))
  expect([status.code, status.reason]).toEqual([422, 'Invalid'])
})

test('200,000 unknown fields are rejected under strict field validation', async () => {
  const { client } = await testServer()
  const unknown = Object.fromEntries(many(200_000, (index) => [`f${index}`, 1]))
  const object = { metadata: { name: 'a', namespace: 'default' }, ...unknown }
  const { status } = await rejection(client.create(ConfigMap, object, { dryRun: true, fieldValidation: 'Strict' }))
  expect([status.code, status.reason]).toEqual([400, 'BadRequest'])
})
