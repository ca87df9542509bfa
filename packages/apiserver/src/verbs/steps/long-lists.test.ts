import { ConfigMap, scanJSON, StatusError } from '@capstan/kube'
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

test('200,000 invalid finalizers are rejected, and the response lists 10,000 of 400,000 errors', async () => {
  const { client } = await testServer()
  const metadata = { name: 'a', namespace: 'default', finalizers: many(200_000, () => '-') }
  const { status } = await rejection(client.create(ConfigMap, { metadata }, { dryRun: true }))
  expect([status.code, status.reason, status.details?.causes?.length]).toEqual([422, 'Invalid', 10_000])
  expect(status.message).toMatch(/, and 390000 more errors\]$/)
})

test('200,000 unknown fields are rejected under strict field validation, and the response names 100 of them', async () => {
  const { client } = await testServer()
  const unknown = Object.fromEntries(many(200_000, (index) => [`f${index}`, 1]))
  const object = { metadata: { name: 'a', namespace: 'default' }, ...unknown }
  const { status } = await rejection(client.create(ConfigMap, object, { dryRun: true, fieldValidation: 'Strict' }))
  expect([status.code, status.reason]).toEqual([400, 'BadRequest'])
  // Upstream's decoder records at most a hundred of these errors.
  expect(status.message?.match(/unknown field/g)).toHaveLength(100)
})

test('of 150 unknown fields that a body contains twice, the response names 100', async () => {
  const { server } = await testServer()
  const fields = many(150, (index) => `"f${index}":1,"f${index}":1`).join(',')
  const { keys } = scanJSON(`{${fields}}`)
  const body = { metadata: { name: 'a' }, ...Object.fromEntries(many(150, (index) => [`f${index}`, 1])) }
  const { status } = await rejection(
    server.engine.execute(
      {
        verb: 'create',
        group: '',
        version: 'v1',
        plural: 'configmaps',
        namespace: 'default',
        body,
        duplicates: ['duplicate field "f0"'],
        fieldPaths: keys,
        options: { fieldValidation: 'Strict' },
      },
      { name: 'admin', groups: ['system:masters'], agent: 'test' },
    ),
  )
  expect(status.message?.match(/unknown field/g)).toHaveLength(100)
})
