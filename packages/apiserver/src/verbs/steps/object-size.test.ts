import { StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { aWidget, rejection, testServer, Widget, at } from '@capstan/kubernetes-kinds/test-server'
import { MaxObjectBytes, rejectTooLarge } from './object-size.ts'

const emptyLength = JSON.stringify({ a: '' }).length

test.each([
  ['of exactly the maximum size is accepted', { a: 'x'.repeat(MaxObjectBytes - emptyLength) }, true],
  ['that is one byte larger than the maximum is rejected', { a: 'x'.repeat(MaxObjectBytes - emptyLength + 1) }, false],
  ['with few characters that take too many bytes is rejected', { a: '\u0001'.repeat(MaxObjectBytes / 6) }, false],
  ['with too many small values is rejected', { a: Array.from({ length: 400_000 }, () => 1234) }, false],
  ['with many small values within the maximum size is accepted', { a: Array.from({ length: 300_000 }, () => 1234) }, true],
])('an object %s', (_, object, fits) => {
  if (fits) expect(() => rejectTooLarge(object)).not.toThrow()
  else expect(() => rejectTooLarge(object)).toThrow(new StatusError('', 'etcdserver: request is too large'))
})

test('a create or a patch that exceeds the size limit is rejected, and the stored object is unchanged', async () => {
  const { client } = await testServer()
  const large = { free: { a: 'x'.repeat(1_600_000) } }
  expect(await rejection(client.create(Widget, aWidget('a', large)))).toBe('500 : etcdserver: request is too large')
  await client.create(Widget, aWidget('a', { free: { a: 'x'.repeat(1_000_000) } }))
  const grown = client.patch(Widget, at('a'), { type: 'merge', body: { spec: { free: { b: 'x'.repeat(600_000) } } } })
  expect(await rejection(grown)).toBe('500 : etcdserver: request is too large')
  expect((await client.get(Widget, at('a'))).spec.free).not.toHaveProperty('b')
})
