/**
 * Tests expressions that CEL's own conformance suite does not cover, or for which it requires another result. The expected results are those of
 * Kubernetes v1.36.
 */
import { expect, test } from 'vitest'
import { expression } from './expression.ts'
import { listOf, type Type } from './type.ts'
import { CelList, Duration, Uint } from './value.ts'

const evaluate = (source: string): unknown => {
  const result = expression(source, []).run(() => [], 1e7)
  return result.kind === 'value' ? result.value : result
}

test.each([
  ['string(1000000.0)', '1e+06'],
  ['string(123456789.5)', '1.234567895e+08'],
  ['string(123456.0)', '123456'],
  ['string(0.0001)', '0.0001'],
  ['string(0.00001)', '1e-05'],
  ['string(1e21)', '1e+21'],
  ["'%s'.format([1000000.0])", '1e+06'],
  ["'%.2f'.format([0.125])", '0.12'],
  ["'%.2f'.format([0.375])", '0.38'],
  ["'%.1f'.format([0.0625])", '0.1'],
  ["'%.0f'.format([2.5])", '2'],
  ["'%.3f'.format([-0.0005])", '-0.001'],
  ["'%.2f'.format([-0.001])", '-0.00'],
  ["'%.2f'.format([-0.0])", '0.00'],
  ["'%f'.format([1234567.891])", '1,234,567.891000'],
  ["'%.2f'.format([-1234.565])", '-1,234.57'],
  ["'%f'.format([1e22])", '10,000,000,000,000,000,000,000.000000'],
  ["'%.120f'.format([0.1])", '0.1000000000000000055511151231257827021181583404541015625'.padEnd(122, '0')],
  ["duration('61.5s').getMilliseconds()", 61_500n],
  ['optional.ofNonZeroValue(timestamp(0)).hasValue()', true],
  ["optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", false],
  ["optional.ofNonZeroValue(duration('0s')).hasValue()", false],
  ["isURL('https://example.com#f')", false],
  ["isURL('//h h/x')", true],
  ["url('https://example.com/a b?x=1#f').getEscapedPath()", '/a%20b'],
  ["url('https://example.com/?x=1&x=a+b#f').getQuery() == {'x': ['1', 'a b']}", true],
  ["url('https://h?a=%zz&b=1;c=2&=3').getQuery() == {'': ['3']}", true],
  ["url('HTTPS://u:p@[fe80::1%25eth0]:8443').getHostname()", 'fe80::1%eth0'],
  [`${'['.repeat(80)}1${']'.repeat(80)}.flatten(79) == [1]`, true],
])('%s is %s', (source, expected) => expect(evaluate(source)).toBe(expected))

test.each<[Type['kind'] & ('int' | 'uint' | 'double' | 'duration' | 'dyn'), unknown]>([
  ['int', 0n],
  ['uint', new Uint(0n)],
  ['double', 0],
  ['duration', new Duration(0n)],
  ['dyn', 0n],
])('the sum of an empty list with items of type %s is zero', (kind, zero) => {
  const sum = expression('l.sum()', [{ name: 'l', type: listOf({ kind } as Type) }])
  expect(sum.run(() => [new CelList([])], 1000)).toMatchObject({ kind: 'value', value: zero })
})

test.each([
  ['[9223372036854775807, 1, -1].sum()', 'integer overflow'],
  ['[18446744073709551615u, 1u].sum()', 'unsigned integer overflow'],
  ['uint(-0.5)', 'unsigned integer overflow'],
  ['uint(1e20)', 'unsigned integer overflow'],
  ['int(1e19)', 'integer overflow'],
  ["duration('9223372036854775808' + 'ns')", "type conversion error from 'string' to 'google.protobuf.Duration'"],
])('%s fails with the error %s', (source, message) => expect(evaluate(source)).toMatchObject({ kind: 'error', message }))

test.each([
  ['https://h:x', 'parse "https://h:x": invalid port ":x" after host'],
  ['a', 'parse "a": invalid URI for request'],
  ['https://h/#%zz', 'parse "https://h/#%zz": invalid URL escape "%zz"'],
  ['//h h/x', 'parse "//h h/x": invalid character " " in host name'],
])('url(%j) fails with the error of Go: %s', (text, problem) => {
  const message = `URL parse error during conversion from string: ${problem}`
  expect(evaluate(`url('${text}')`)).toMatchObject({ kind: 'error', message })
})
