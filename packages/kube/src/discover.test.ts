import { expect, test } from 'vitest'
import { type ApiRequest, createClient } from './client.ts'
import { kindFinder } from './discover.ts'
import { StatusError } from './errors.ts'
import { urlOf } from './request.ts'

test('kindFinder requests discovery once for each version, and again for a kind that is not in the earlier response', async () => {
  const requestedPaths: string[] = []
  const lists: { [version: string]: object[] } = {
    v1: [
      { name: 'pods', kind: 'Pod', namespaced: true },
      { name: 'pods/eviction', kind: 'Eviction', namespaced: true },
      { name: 'nodes', kind: 'Node', namespaced: false },
    ],
  }
  const find = kindFinder(
    createClient({
      close: () => {},
      watch: () => Promise.reject(new Error('not watched')),
      async send(request: ApiRequest) {
        requestedPaths.push(urlOf(request))
        const resources = lists[request.group === '' ? request.version : `${request.group}/${request.version}`]
        if (!resources) throw new StatusError('NotFound', 'the server could not find the requested resource')
        return { resources }
      },
    }),
  )
  expect(await find({ apiVersion: 'v1', kind: 'Pod' })).toMatchObject({ plural: 'pods', scope: 'Namespaced' })
  expect(await find({ apiVersion: 'v1', kind: 'Node' })).toMatchObject({ plural: 'nodes', scope: 'Cluster' })
  expect(requestedPaths).toEqual(['/api/v1'])

  const foo = { apiVersion: 'example.com/v1', kind: 'Foo' }
  await expect(find(foo)).rejects.toThrow('no matches for kind "Foo" in version "example.com/v1"')
  lists['example.com/v1'] = [{ name: 'foos', kind: 'Foo', namespaced: true }]
  expect(await find(foo)).toMatchObject({ group: 'example.com', version: 'v1', plural: 'foos' })
  await expect(find({ apiVersion: 'v1', kind: 'Eviction' })).rejects.toThrow('no matches for kind "Eviction" in version "v1"')
  expect(requestedPaths).toEqual(['/api/v1', '/apis/example.com/v1', '/apis/example.com/v1', '/api/v1'])
})
