import { expect, test } from 'vitest'
import { measureJSON, scanJSON } from './json-scan.ts'

test.each([
  ['{bad json', "invalid character 'b' looking for beginning of object key string"],
  ['', 'unexpected end of JSON input'],
  ['{"a":', 'unexpected end of JSON input'],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b"}', `invalid character '"' after object key:value pair`],
  ['[1 2]', "invalid character '2' after array element"],
  ['{} x', "invalid character 'x' after top-level value"],
  ['tru', 'unexpected end of JSON input'],
  ['trux', "invalid character 'x' in literal true (expecting 'e')"],
  ['"a\\x"', "invalid character 'x' in string escape code"],
  ['"a\n"', "invalid character '\\n' in string literal"],
  ['-x', "invalid character 'x' in numeric literal"],
  ['\u0081', "invalid character '\\u0081' looking for beginning of value"],
  ['1.x', "invalid character 'x' after decimal point in numeric literal"],
])('the text %j has the syntax error: %s', (text, error) => {
  expect(scanJSON(text).error).toBe(error)
})

test('scanJSON returns the path of each duplicate key once, and the paths of all keys in order', () => {
  const text = '{"a":{"b":1,"b":2,"b":3},"c":[{"d":"\\"d\\":{","d":1}],"a":{}}'
  const keys = ['a', 'a.b', 'a.b', 'a.b', 'c', 'c[0].d', 'c[0].d', 'a']
  expect(scanJSON(text)).toEqual({ error: undefined, duplicates: ['a.b', 'c[0].d', 'a'], keys })
})

test('measureJSON ignores brackets, quotes and colons inside strings', () => {
  expect(measureJSON('{"a":"x:y\\":{","b":[{"c:":1}]}')).toEqual({ keys: 3, objects: 3, depth: 3 })
})
