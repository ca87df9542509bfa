/** Text from untrusted sources is parsed, or rejected with an expected error, in bounded time. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDuration } from './duration.ts'
import { scanJSON } from './json-scan.ts'
import { parseKubeconfig, resolveKubeconfig } from './node/kubeconfig.ts'
import { parseQuantity, quantityText } from './quantity.ts'
import { parseResourcePath } from './request.ts'
import { parseFieldSelector, parseLabelSelector } from './selector.ts'

const runFactor = Number(process.env.CAPSTAN_FUZZ ?? 1)
const textOf = (...parts: string[]) =>
  fc.oneof(
    fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((list) => list.join('')),
    fc.string({ maxLength: 12 }),
  )

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: aGVsbG8=, tls-server-name: a, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t, client-certificate-data: aGVsbG8=, client-key-data: aGVsbG8=, exec: {command: x}}}]
contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]
`
const mutatedKubeconfig = fc
  .array(
    fc.record({
      at: fc.nat(kubeconfig.length),
      cut: fc.nat(12),
      put: fc.constantFrom('', 'null', '[]', '{}', ': ', '\n', '- ', '"', '&a ', '*a', '1', '~', 'name'),
    }),
    { maxLength: 4 },
  )
  .map((edits) => edits.reduce((text, { at, cut, put }) => text.slice(0, at) + put + text.slice(at + cut), kubeconfig))

const readers: { readonly [title: string]: readonly [fc.Arbitrary<string>, (text: string) => unknown] } = {
  durations: [textOf('1', '0', '.', '-', '+', 'h', 'm', 's', 'ms', 'us', 'µs', 'ns', '9'.repeat(30), ' '), parseDuration],
  quantities: [
    textOf('1', '0', '.', '-', '+', 'e', 'E', 'Ki', 'Mi', 'm', 'n', 'u', 'k', '9'.repeat(30), ' '),
    (text) => quantityText(parseQuantity(text)),
  ],
  'label selectors': [
    textOf('a', '=', '==', '!=', '!', ',', '(', ')', ' in ', ' notin ', '<', '>', '1', ' ', 'a/b', '-', '.'),
    parseLabelSelector,
  ],
  'field selectors': [textOf('a', '=', '==', '!=', ',', '\\', '\\,', '\\=', ' ', '.'), parseFieldSelector],
  paths: [textOf('/', 'api', 'apis', 'v1', 'watch', 'namespaces', 'a', '%', '%2f', '%00', '..', 'status'), parseResourcePath],
  'JSON texts': [textOf('{', '}', '[', ']', '"', ':', ',', '\\', 'u00', 'null', 'true', '1', '-', '.', 'e', ' ', '\n'), scanJSON],
}

describe.each(Object.entries(readers))('%s', (_, [texts, read]) => {
  test('of at most 12 parts or characters are parsed, or rejected with an expected error', () => {
    fc.assert(
      fc.property(texts, (text) => {
        try {
          read(text)
        } catch (err) {
          expect((err as Error).name).toMatch(/^(?:Error|StatusError|SyntaxError)$/)
        }
      }),
      { seed: 1, numRuns: 500 * runFactor },
    )
  })

  test('of about 50,000 characters are parsed, or rejected with an expected error, in bounded time', () => {
    fc.assert(
      fc.property(texts, (text) => {
        try {
          read(text.repeat(Math.ceil(50_000 / (text.length || 1))))
        } catch (err) {
          expect((err as Error).name).toMatch(/^(?:Error|StatusError|SyntaxError|RangeError)$/)
        }
      }),
      { seed: 1, numRuns: 20 * runFactor },
    )
  })
})

test('a mutated kubeconfig is resolved, or rejected with an error about the kubeconfig', async () => {
  await fc.assert(
    fc.asyncProperty(mutatedKubeconfig, async (text) => {
      try {
        await resolveKubeconfig(parseKubeconfig(text))
      } catch (err) {
        expect((err as Error).message).not.toMatch(/undefined|is not a function|Cannot read properties|not iterable/)
        expect((err as Error).message).toMatch(/kubeconfig/i)
      }
    }),
    { seed: 1, numRuns: 300 * runFactor },
  )
})
