import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hours, isReason, type KubeObject } from '@capstan/kube'
import { type TestEnv, testEnv } from '@capstan/testing'
import { greeter, Greeting } from './greeter.js'

void test('the controller greets for an hour of virtual time, and the API server rejects an empty name', async () => {
  const env: TestEnv = await testEnv({ kinds: [Greeting], controllers: [greeter] })
  const started = Date.now()
  const greeting = await env.client.create(Greeting, {
    metadata: { namespace: 'default', name: 'hello' },
    spec: { name: 'world', everySeconds: 60 },
  })
  const plain: KubeObject = greeting
  assert.equal(plain.metadata.name, 'hello')
  await env.advance(hours(1))
  const { status } = await env.client.get(Greeting, { namespace: 'default', name: 'hello' })
  assert.deepEqual(status, { text: 'Hello world', times: 60 })
  assert.ok(Date.now() - started < 60_000, 'an hour of virtual time must take less than a minute')

  // The API server enforces the declared schema, with upstream's error text.
  const rejected = env.client.create(Greeting, {
    metadata: { namespace: 'default', name: 'empty' },
    spec: { name: '', everySeconds: 1 },
  })
  await assert.rejects(
    rejected,
    (err) => isReason(err, 'Invalid') && /spec\.name in body should be at least 1 chars long/.test(String(err)),
  )
  await env.close()
})
