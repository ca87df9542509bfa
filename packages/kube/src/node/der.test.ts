import { expect, test } from 'vitest'
import { elements, octets, sequence, utf8 } from './der.ts'

test('an element has the same tag and content after it is encoded and decoded', () => {
  const long = Buffer.alloc(300, 1)
  const decoded = elements(Buffer.concat([sequence(utf8('a')), octets(long)]))
  expect(decoded.map(({ tag }) => tag)).toEqual([0x30, 0x04])
  expect(decoded[0]!.content).toEqual(utf8('a'))
  expect(decoded[1]!.content).toEqual(long)
})

test.each([
  ['a missing length', [0x30], 'invalid length'],
  ['a length of five bytes', [0x30, 0x85, 0, 0, 0, 0, 0], 'invalid length'],
  ['an indefinite length, which BER allows and DER does not', [0x30, 0x80, ...Buffer.alloc(128)], 'invalid length'],
  ['less content than its length', [0x30, 0x02, 0], 'an element is longer than the bytes'],
])('rejects an element with %s', (_, bytes, problem) => {
  expect(() => elements(Buffer.from(bytes))).toThrow(`malformed DER: ${problem}`)
})
