import { expect, test } from 'vitest'
import { requestUriProblem } from './request-uri.ts'

// The expected values are those of Go's url.ParseRequestURI.
test.each([
  ['https://example.com', undefined],
  ['https://example.com/path?a=b#f', undefined],
  ['https://', undefined],
  ['https://user@example.com:1', undefined],
  ['/path', undefined],
  ['example.com', 'invalid URI for request'],
  ['x', 'invalid URI for request'],
  ['://x', 'missing protocol scheme'],
  ['https://example.com:port', 'invalid port ":port" after host'],
  ['/%zz', 'invalid URL escape "%zz"'],
  ['/a%2', 'invalid URL escape "%2"'],
  ['/a\nb', 'net/url: invalid control character in URL'],
  ['https://[::1', "missing ']' in host"],
])('requestUriProblem of %j is %s', (text, problem) => {
  expect(requestUriProblem(text)).toBe(problem && `parse ${JSON.stringify(text)}: ${problem}`)
})
