import { expect, test } from 'vitest'
import { warningHeaders } from './warning-headers.ts'

const long = (char: string, length: number) => char.repeat(length)
const header = (text: string) => `299 - "${text}"`

test('each text is sent once, in order and escaped; an empty text is not sent', () => {
  expect(warningHeaders(['b', 'a', 'b', '', 'say "a\\b"'])).toEqual([header('b'), header('a'), '299 - "say \\"a\\\\b\\""'])
  expect(warningHeaders([])).toEqual([])
})

test('texts are sent unchanged when their total length equals the maximum', () => {
  const texts = [long('a', 4000), long('b', 96)]
  expect(warningHeaders(texts)).toEqual(texts.map(header))
})

test('texts are truncated when their total length exceeds the maximum', () => {
  expect(warningHeaders([long('a', 4000), 'b', long('c', 96), 'd'])).toEqual(
    [long('a', 256), 'b', long('c', 96), 'd'].map(header),
  )
  expect(warningHeaders([long('😀', 4097)])).toEqual([Buffer.from(header(long('😀', 256))).toString('latin1')])
})

test('of very many texts, only the first texts are sent', () => {
  const texts = Array.from({ length: 40 }, (_, index) => `${index} ${long('x', 1000)}`)
  const headers = warningHeaders(texts)
  expect(headers).toEqual(texts.slice(0, 16).map((text) => header(text.slice(0, 256))))
  const small = Array.from({ length: 100 }, (_, index) => String(index).padStart(100, 'x'))
  expect(warningHeaders(small)).toEqual(small.slice(0, 41).map(header))
})
