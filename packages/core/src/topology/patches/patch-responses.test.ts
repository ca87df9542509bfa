import { minutes, seconds } from '@capstan/kube'
import { expect, test } from 'vitest'
import { PatchResponses } from './patch-responses.ts'

/** Returns functions that record a response at a given time. */
function someResponses() {
  let now = 0
  const responses = new PatchResponses({ elapsed: () => now })
  const record = (at: number, response: unknown, request: object = {}, patch = 'net') => {
    now = at
    responses.record(patch, request, response)
  }
  /** Records a response, and returns whether it was accepted. */
  const accepts = (...call: Parameters<typeof record>): boolean => {
    try {
      record(...call)
      return true
    } catch {
      return false
    }
  }
  return { record, accepts }
}

test('five changed responses to the same request are accepted in ten minutes, a sixth is rejected', () => {
  const { record, accepts } = someResponses()
  expect([0, 1, 2, 3, 4, 5, 6, 7].map((n) => accepts(seconds(n), n))).toEqual([true, true, true, true, true, true, false, false])
  expect(() => record(seconds(8), 8)).toThrow(
    'the extension responded to the same request with other patches more than 5 times in 10 minutes; the topology is not changed until two responses in sequence are equal, or the request changes',
  )
})

test('after too many changes, responses are rejected until one equals the response before it, however late', () => {
  const { accepts } = someResponses()
  for (const n of [0, 1, 2, 3, 4, 5, 6]) accepts(seconds(n), n)
  expect(['a', 'b', 'b', 'c'].map((response, n) => accepts(minutes(60 + 20 * n), response))).toEqual([false, false, true, true])
})

test('responses that change every two minutes are accepted without limit', () => {
  const { accepts } = someResponses()
  expect(Array.from({ length: 50 }, (_, n) => accepts(minutes(2 * n), n))).not.toContain(false)
})

test('responses to different requests may differ; requests that differ only in the names of generated templates count as the same request', () => {
  const request = (replicas: number, template: string) => ({
    variables: [{ name: 'builtin', value: { replicas, infrastructureRef: { name: template } } }],
  })
  const calls = [0, 1, 2, 3, 4, 5, 6]
  const { accepts } = someResponses()
  expect(calls.map((n) => accepts(seconds(n), n, request(n, 'a')))).not.toContain(false)
  expect(calls.map((n) => accepts(seconds(n), n, request(1, `template-${n}`), 'other'))).toContain(false)
})

test('the responses of each patch are counted separately', () => {
  const { accepts } = someResponses()
  const accepted = [0, 1, 2, 3, 4, 5, 6].map((n) => [accepts(seconds(n), n, {}, 'a'), accepts(seconds(n), 'same', {}, 'b')])
  expect(accepted.at(-1)).toEqual([false, true])
})
