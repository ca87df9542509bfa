import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callHook, fixture } from '@capstan/extension'
import { lifecycleOf } from '@capstan/testing'
import { extension } from './extension.ts'

// Core asks again and again about the same state: each handler has an answer every time, and the same one.
for (const { hook, name } of extension.handlers) {
  test(`${name} answers a valid ${hook.name}Request, twice the same`, async () => {
    const call = (): Promise<{ status?: string }> => callHook(extension, hook, fixture(hook), { handler: name })
    const answer = await call()
    assert.equal(answer.status, 'Success')
    assert.deepEqual(await call(), answer)
  })
}

test('a Cluster is created, scaled, upgraded and deleted with it', async () => {
  const { stuck, trace } = await lifecycleOf(extension)
  assert.equal(stuck, undefined, trace)
})
