import { expect, test } from 'vitest'
import { createClient, type Transport } from './client.ts'
import { ConfigMap } from './kinds/config-map.ts'

test.each(['get', 'delete', 'patch', 'update'] as const)(
  '%s rejects an empty name, which would address all objects',
  async (verb) => {
    const sent: unknown[] = []
    const send = async (request: unknown) => void sent.push(request)
    const client = createClient({ send } as Partial<Transport> as Transport)
    const key = { namespace: 'default', name: '' }
    const requests = {
      get: () => client.get(ConfigMap, key),
      delete: () => client.delete(ConfigMap, key),
      patch: () => client.patch(ConfigMap, key, { type: 'merge', body: {} }),
      update: () => client.update(ConfigMap, { metadata: key } as ConfigMap),
    }
    await expect(requests[verb]()).rejects.toThrow('resource name may not be empty')
    expect(sent).toEqual([])
  },
)
