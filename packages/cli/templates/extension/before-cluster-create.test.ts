import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BeforeClusterCreate } from '@capstan/api'
import { callHook, fixture } from '@capstan/extension'
import { extension } from './extension.ts'

test('a Cluster is blocked until it has the label that the setting requiredLabel names', async () => {
  const { cluster } = fixture(BeforeClusterCreate)
  const callWithLabels = (labels: { [name: string]: string }) =>
    callHook(extension, BeforeClusterCreate, {
      cluster: { ...cluster, metadata: { ...cluster.metadata, labels } },
      settings: { requiredLabel: 'team' },
    })
  const waiting = await callWithLabels({})
  assert.equal(waiting.retryAfterSeconds, 10)
  assert.equal(waiting.message, 'waiting for the label team')
  assert.equal((await callWithLabels({ team: 'blue' })).retryAfterSeconds, 0)
})
