import { ConfigMap, createClient, type Transport, type WatchEvent } from '@capstan/kube'
import { expect, test } from 'vitest'
import { untilObject } from './until-object.ts'

const key = { namespace: 'default', name: 'demo' }

/** A client whose watches yield these values of `data.state`, one list for each watch, and then end. */
function clientOf(...watches: string[][]) {
  const transport: Transport = {
    send: () => Promise.reject(new Error('unexpected request')),
    async watch() {
      const states = watches.shift()
      if (!states) throw new Error('another watch')
      return eventsOf(states)
    },
    close() {},
  }
  return createClient(transport)
}

async function* eventsOf(states: readonly string[]): AsyncGenerator<WatchEvent> {
  for (const state of states) {
    const metadata = { ...key, uid: 'demo', resourceVersion: '1', creationTimestamp: '' }
    yield { type: 'MODIFIED', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { state } } as ConfigMap }
  }
}

const untilDone = (client: ReturnType<typeof clientOf>, signal = new AbortController().signal) =>
  untilObject(client, ConfigMap, key, ({ data }) => data?.state === 'done', signal)

test('resolves when the object reaches the state, without another watch', async () => {
  await expect(untilDone(clientOf(['new', 'done', 'new']))).resolves.toBeUndefined()
})

test('watches again after the server ended a watch, and rejects when a watch cannot be started', async () => {
  await expect(untilDone(clientOf(['new'], [], ['done']))).resolves.toBeUndefined()
  await expect(untilDone(clientOf(['new'], []))).rejects.toThrow('another watch')
})

test('rejects with the reason of an aborted signal', async () => {
  await expect(untilDone(clientOf(['done']), AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
})
