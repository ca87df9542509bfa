import { parseResourcePath } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { attributesOfPath } from './request-attributes.ts'

const user = { name: 'jane', uid: '', groups: [], extra: {} }
const nameOf = (method: string, path: string, query: string) =>
  attributesOfPath(user, method, parseResourcePath(path)!, new URLSearchParams(query)).name

const collection = '/api/v1/namespaces/default/configmaps'

describe('a field selector for metadata.name', () => {
  test.each([
    ['a list', 'GET', collection, ''],
    ['a watch', 'GET', collection, 'watch=true&'],
  ])('names the object of %s', (_, method, path, query) =>
    expect(nameOf(method, path, `${query}fieldSelector=metadata.name%3Da`)).toBe('a'),
  )

  test.each([
    ['a create', 'POST', collection],
    ['a deletion of a collection', 'DELETE', collection],
    ['a patch without a name', 'PATCH', collection],
    ['a watch by the deprecated path', 'GET', '/api/v1/watch/namespaces/default/configmaps'],
  ])('does not name the object of %s', (_, method, path) =>
    expect(nameOf(method, path, 'fieldSelector=metadata.name%3Da')).toBeUndefined(),
  )

  test('does not change the name in the path', () =>
    expect(nameOf('GET', `${collection}/b`, 'fieldSelector=metadata.name%3Da')).toBe('b'))
})

test.each(['metadata.name!=a', 'metadata.namespace=a', 'metadata.name==a%2Fb', 'nonsense'])(
  'a field selector that does not require a valid name names no object: %s',
  (selector) => expect(nameOf('GET', collection, `fieldSelector=${selector}`)).toBeUndefined(),
)
