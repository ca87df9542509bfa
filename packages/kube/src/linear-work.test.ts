/**
 * Processing a long text or list takes time in proportion to its length: with quadratic work, the tests would exceed their time limit.
 * Other tests check the limits of error responses, and that the operations of a JSON patch run in pieces.
 */
import { describe, expect, test } from 'vitest'
import { conversions } from './cel/library/standard.ts'
import { strings } from './cel/library/strings.ts'
import { durationOf } from './cel/library/time.ts'
import { url } from './cel/library/url.ts'
import { invalid, invalidObject } from './errors.ts'
import { conflictsText } from './managed-fields/updater.ts'
import { fieldElement } from './managed-fields/path-element.ts'
import { applyingJsonPatch } from './patch/json-patch.ts'
import { parseQuantity } from './quantity.ts'
import { formatCheck } from './structural/format.ts'

const digits = '1'.repeat(1_000_000)

describe('a long text', () => {
  test.each<[string, () => unknown]>([
    ['of digits and a letter is no quantity', () => parseQuantity(`${digits}x`)],
    ['of a one, zeros and an exponent is no quantity', () => parseQuantity(`1${'0'.repeat(1_000_000)}e0`)],
    ['of digits is no duration', () => durationOf(digits)],
    ['of digits and a letter is no double', () => call(conversions, 'double(string): double', `${digits}x`)],
  ])('%s', (_, parse) => {
    expect(parse).toThrow()
  })

  test('of blanks around a control character is not the name of an e-mail address; blanks around other names are allowed', () => {
    expect(formatCheck('email')!(`${' '.repeat(100_000)}\x01${' '.repeat(100_000)}<a@b>`)).toBe(false)
    expect(formatCheck('email')!('  Name  <a@b>')).toBe(true)
  })

  test('of blanks around letters is trimmed', () => {
    expect(call(strings, 'string.trim(): string', `${' '.repeat(1_000_000)}a\u3000b${' '.repeat(1_000_000)}`)).toBe('a\u3000b')
    expect(call(strings, 'string.trim(): string', `${' '.repeat(1000)}a`.repeat(1000))).toHaveLength(1_000_000)
  })

  test('of query parameters is parsed as part of a URL', () => {
    const parsed = call(url, 'url(string): URL', `https://a/?${'a=1&'.repeat(200_000)}`)
    expect(call(url, 'URL.getQuery(): map<string, list<string>>', parsed)).toBeDefined()
  })
})

test('an error response stays bounded when each of many errors contains the same long list', () => {
  const list = Array.from({ length: 20_000 }, (_, index) => `item ${index}`)
  const errors = list.map((_, index) => invalid('spec.list', list, `problem ${index}`))
  const { message, details } = invalidObject({ group: '', kind: 'Pod' }, 'a', errors).status
  expect(message!.length).toBeLessThan(11_000_000)
  expect(message).toMatch(/and \d+ more errors\]$/)
  expect(details!.causes!.length).toBeGreaterThan(1)
})

test('the first field error is returned completely, even if it is longer than the limit for all other field errors', () => {
  const errors = [invalid('data', 'x'.repeat(11_000_000), 'too long')]
  expect(invalidObject({ group: '', kind: 'ConfigMap' }, 'a', errors).message).toMatch(/: too long$/)
})

test('the message for 100,000 conflicts of one manager lists each conflict', () => {
  const conflicts = Array.from({ length: 100_000 }, (_, index) => ({ manager: 'm', path: [fieldElement(`f${index}`)] }))
  expect(conflictsText(conflicts, (manager) => manager).split('\n')).toHaveLength(100_001)
})

test('operations of a JSON patch are applied in pieces', () => {
  const work = applyingJsonPatch({ list: [1, 2] }, [
    { op: 'add', path: '/list/0', value: 0 },
    { op: 'remove', path: '/list/1' },
  ])
  let pieces = 1
  let piece = work.next()
  for (; !piece.done; piece = work.next()) pieces++
  expect([pieces, piece.value]).toEqual([3, { list: [0, 2] }])
})

function call(library: object, signature: string, ...args: readonly unknown[]): unknown {
  return (library as Record<string, (...args: readonly unknown[]) => unknown>)[signature]!(...args)
}
