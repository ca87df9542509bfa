import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Admission } from '@capstan/kube'
import {
  admission,
  ConfigMap,
  createClient,
  invalid,
  MutatingWebhookConfiguration,
  seconds,
  seededRandom,
  VirtualClock,
} from '@capstan/kube'
import { expect, test, vi } from 'vitest'
import { testWebhooks } from './test-webhooks.ts'

const admissions: readonly Admission[] = [
  admission<ConfigMap>({
    kind: ConfigMap,
    default(object) {
      object.data = { color: 'blue', ...object.data }
    },
    validate: (object, { oldObject }) =>
      oldObject !== undefined && oldObject.data?.color !== object.data?.color
        ? [invalid('data.color', object.data?.color ?? '', 'field is immutable')]
        : [],
  }),
]

test('admission functions behind webhooks set defaults and reject changes, until the webhooks are removed', async () => {
  const server = createApiServer({ clock: new VirtualClock(), random: seededRandom(1) })
  await server.ready
  const client = createClient(server.transport())
  const webhooks = await testWebhooks(client, admissions, [])
  await webhooks.configure()
  const key = { namespace: 'default', name: 'a' }
  expect((await client.create(ConfigMap, { metadata: key })).data).toEqual({ color: 'blue' })
  const paint = (color: string) => client.patch(ConfigMap, key, { type: 'merge', body: { data: { color } } })
  await expect(paint('red')).rejects.toThrow('ConfigMap "a" is invalid: data.color: Invalid value: "red": field is immutable')

  await webhooks.close()
  expect((await client.list(MutatingWebhookConfiguration)).items).toEqual([])
  expect((await paint('red')).data).toEqual({ color: 'red' })
  await server.close()
})

test('close stops listening even when the API server rejects every create', async () => {
  const server = createApiServer({ clock: new VirtualClock(), random: seededRandom(1) })
  await server.ready
  const create = () => Promise.reject(new Error('unavailable'))
  const webhooks = await testWebhooks({ ...createClient(server.transport()), create }, admissions, [])
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    const closing = expect(webhooks.close()).rejects.toThrow('the API server has not applied the change')
    await vi.advanceTimersByTimeAsync(seconds(60))
    await closing
  } finally {
    vi.useRealTimers()
  }
  await expect(fetch(webhooks.conversion.url!)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  await server.close()
})
