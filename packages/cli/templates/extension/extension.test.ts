import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callHook, fixture } from '@capstan/extension'
import { lifecycleOf } from '@capstan/testing'
import { extension } from './extension.ts'

// Core calls handlers repeatedly for the same state, so each handler must return the same response every time.
for (const { hook, name } of extension.handlers) {
  test(`${name} returns the same response to a valid ${hook.name}Request twice`, async () => {
    const call = (): Promise<{ status?: string }> => callHook(extension, hook, fixture(hook), { handler: name })
    const answer = await call()
    assert.equal(answer.status, 'Success')
    assert.deepEqual(await call(), answer)
  })
}

test('a Cluster is created, scaled, upgraded and deleted with the extension', async () => {
  const { stuck, trace } = await lifecycleOf(extension)
  assert.equal(stuck, undefined, trace)
})
