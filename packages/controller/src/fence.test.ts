import type { ApiRequest, Transport } from '@capstan/kube'
import { expect, test } from 'vitest'
import { fence } from './fence.ts'

const request = (verb: ApiRequest['verb']): ApiRequest => ({ verb, group: '', version: 'v1', plural: 'configmaps' })

/** Returns a transport whose requests stay open until the test ends them. */
function aTransport() {
  const ends: (() => void)[] = []
  const transport: Transport = {
    send: () => new Promise((resolve) => ends.push(() => resolve({}))),
    watch: () => Promise.reject(new Error('no watch')),
    close: () => {},
  }
  return { transport, ends }
}

test('a closed fence rejects writes, and forwards reads', async () => {
  const { transport, ends } = aTransport()
  const closed = fence(transport, () => false)
  await expect(closed.transport.send(request('update'))).rejects.toThrow('Cannot update configmaps: this manager does not lead')
  const read = closed.transport.send(request('list'))
  expect(ends).toHaveLength(1)
  ends[0]!()
  expect(await read).toEqual({})
})

test('a write that waits before it is sent is rejected if the fence has closed meanwhile', async () => {
  const sent: ApiRequest[] = []
  const delayed: Transport = {
    async send(request) {
      await Promise.resolve()
      request.beforeSend?.()
      sent.push(request)
    },
    watch: () => Promise.reject(new Error('no watch')),
    close: () => {},
  }
  let isOpen = true
  const fenced = fence(delayed, () => isOpen)
  await fenced.transport.send(request('update'))
  const write = fenced.transport.send(request('update'))
  isOpen = false
  await expect(write).rejects.toThrow('Cannot update configmaps: this manager does not lead')
  expect(sent).toHaveLength(1)
})

test('waitUntilIdle() resolves when the writes in progress have ended', async () => {
  const { transport, ends } = aTransport()
  const open = fence(transport, () => true)
  const writes = [open.transport.send(request('create')), open.transport.send(request('delete'))]
  let isIdle = false
  const idle = open.waitUntilIdle().then(() => {
    isIdle = true
  })
  ends[0]!()
  await writes[0]
  await new Promise((resolve) => setImmediate(resolve))
  expect(isIdle).toBe(false)
  ends[1]!()
  await idle
  await Promise.all(writes)
  await open.waitUntilIdle()
})
