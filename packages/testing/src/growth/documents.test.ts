/**
 * Tests the number of steps to process responses of webhooks and hooks, CEL rules, table columns, and the OpenAPI document: O(n log n) for an
 * input of size n. YAML, such as kubeconfigs, is not measured: its parser finds the end of each line with `indexOf`, and `countSteps` counts
 * each of these calls as a scan from the beginning of the text.
 */
import { GeneratePatches } from '@capstan/api'
import { atOnce, customResourceDefinition } from '@capstan/kube'
import { compileRules } from '@capstan/kube/cel'
import { testServer, Widget } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'
import { hooksOf } from '../../../apiserver/src/admission/hook.ts'
import { applyingPatch, decodeResponse } from '../../../apiserver/src/admission/review.ts'
import { openAPIParts } from '../../../apiserver/src/http/openapi/openapi.ts'
import { swaggerHead, swaggerJSON, swaggerOf } from '../../../apiserver/src/http/openapi/swagger.ts'
import { jsonPath } from '../../../apiserver/src/http/table/json-path.ts'
import { decodeWire } from '../../../extension/src/wire/wire.ts'
import { measureGrowth, growthProblems } from './growth.ts'
import { many, named } from './work.ts'

const { server } = await testServer({ customResources: [customResourceDefinition(Widget)] })
const widgets = server.engine.resources.list().find(({ plural }) => plural === 'widgets')!
const [mutating] = hooksOf('mutating', [
  { metadata: { name: 'a' }, webhooks: [{ name: 'a', admissionReviewVersions: ['v1'] } as never] },
])

const decodeReview = (response: object) =>
  decodeResponse(mutating!, 'uid', {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'uid', allowed: true, ...response },
  })

function decodeHookResponse(text: string): unknown {
  const fields = decodeWire(text, GeneratePatches.response, 'GeneratePatchesResponse', 'response')
  expect(fields.items).toBeDefined()
  return fields
}

function swagger(size: number): unknown {
  const versions = many(size, (index) => ({ ...widgets, version: `v${index + 1}` }))
  const parts = swaggerOf(
    openAPIParts(versions, () => new Map()),
    swaggerHead('v1.36.0'),
    swaggerJSON,
  )
  for (;;) {
    const { done, value } = parts.next()
    if (done) return [...value]
  }
}

const rulesOf = (rule: string) => {
  const schema = { type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } } as const
  const rules = compileRules({ ...schema, 'x-kubernetes-validations': [{ rule }] } as never, true)
  expect(rules[0]!.error).toBeUndefined()
  return rules
}

test.each<[string, (size: number) => unknown]>([
  [
    'the response of a webhook with many operations',
    (size) => {
      const operations = many(size, (index) => ({ op: 'add', path: `/spec/n${index}`, value: 1 }))
      const { patch } = decodeReview({
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
      })
      return atOnce(applyingPatch({ metadata: {}, spec: {} }, patch!))
    },
  ],
  [
    'the response of a webhook with many warnings',
    (size) => decodeReview({ warnings: many(size, (index) => `warning ${index}`) }),
  ],
  ['the response of a hook with many items', (size) => decodeHookResponse(JSON.stringify({ items: named(size) }))],
  [
    'the response of a hook with a long text',
    (size) => decodeHookResponse(JSON.stringify({ message: 'é\\u0000'.repeat(size), items: [] })),
  ],
  [
    'the response of a hook with many unknown fields',
    (size) => decodeHookResponse(JSON.stringify({ ...Object.fromEntries(named(size).map(({ name }) => [name, 1])), items: [] })),
  ],
  ['a CEL rule of many terms', (size) => rulesOf(many(size, (index) => `size(self.list) != ${index}`).join(' && '))],
  ['a CEL rule with a long list', (size) => rulesOf(`size(self.list) in [${many(size, (index) => index).join(', ')}]`)],
  ['a column of a long list', (size) => jsonPath('.spec.list[*].value')({ spec: { list: named(size, { value: 'a' }) } })],
  [
    'a column that filters a long list',
    (size) => jsonPath('.spec.list[?(@.name=="n7")].value')({ spec: { list: named(size, { value: 'a' }) } }),
  ],
  ['a column that searches a whole object', (size) => jsonPath('..value')({ spec: { list: named(size, { value: 'a' }) } })],
  ['the path of a column with many steps', (size) => jsonPath('.a'.repeat(size))({ a: {} })],
  ['the OpenAPI document of a kind with many versions', swagger],
])('%s takes O(n log n) steps', async (name, work) => {
  expect(growthProblems([await measureGrowth(name, work)])).toEqual([])
})
