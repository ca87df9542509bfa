import type { Webhook } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import {
  type Hook,
  hooksOf,
  matchedVersion,
  matchesRule,
  mayMatch,
  selectsNamespace,
  selectsObject,
  type Target,
} from './hook.ts'

const target: Target = {
  operation: 'CREATE',
  group: 'shop.example.com',
  version: 'v1',
  plural: 'widgets',
  subresource: undefined,
  namespace: 'default',
}
const rule = { operations: ['CREATE'], apiGroups: ['shop.example.com'], apiVersions: ['v1'], resources: ['widgets'], scope: '*' }

const hookOf = (fields: Partial<Webhook> = {}): Hook =>
  hooksOf('mutating', [
    {
      metadata: { name: 'x' },
      webhooks: [
        {
          name: 'a.example.com',
          clientConfig: { url: 'https://h/' },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          rules: [rule],
          ...fields,
        },
      ],
    },
  ])[0]!

describe('a webhook rule', () => {
  test.each<[title: string, rule: object, target: Partial<Target>, matches: boolean]>([
    ['matches the named operation, group, version and resource', {}, {}, true],
    ['does not match another operation', {}, { operation: 'UPDATE' }, false],
    ['with operation * matches every operation', { operations: ['*'] }, { operation: 'DELETE' }, true],
    ['does not match another group', {}, { group: 'apps' }, false],
    ['with group * matches every group', { apiGroups: ['*'] }, { group: 'apps' }, true],
    ['with an empty group matches the core group', { apiGroups: [''] }, { group: '' }, true],
    ['does not match another version', {}, { version: 'v2' }, false],
    ['with version * matches every version', { apiVersions: ['*'] }, { version: 'v2' }, true],
    ['for a resource does not match its subresources', {}, { subresource: 'status' }, false],
    ['for a subresource matches that subresource', { resources: ['widgets/status'] }, { subresource: 'status' }, true],
    ['for a subresource does not match the resource', { resources: ['widgets/status'] }, {}, false],
    ['for all subresources matches the resource, too', { resources: ['widgets/*'] }, {}, true],
    ['for all subresources matches each subresource', { resources: ['widgets/*'] }, { subresource: 'scale' }, true],
    ['for all resources does not match subresources', { resources: ['*'] }, { subresource: 'scale' }, false],
    ['for all resources matches each resource', { resources: ['*'] }, { plural: 'gadgets' }, true],
    [
      'for */scale matches the subresource scale of every resource',
      { resources: ['*/scale'] },
      { plural: 'gadgets', subresource: 'scale' },
      true,
    ],
    [
      'for all resources and subresources matches each of them',
      { resources: ['*/*'] },
      { plural: 'gadgets', subresource: 'scale' },
      true,
    ],
    ['with scope Namespaced matches namespaced objects', { scope: 'Namespaced' }, {}, true],
    ['with scope Namespaced does not match cluster-scoped objects', { scope: 'Namespaced' }, { namespace: undefined }, false],
    ['with scope Cluster does not match namespaced objects', { scope: 'Cluster' }, {}, false],
    ['with scope Cluster matches cluster-scoped objects', { scope: 'Cluster' }, { namespace: undefined }, true],
    [
      'with scope Cluster matches namespaces',
      { scope: 'Cluster', resources: ['namespaces'] },
      { plural: 'namespaces', namespace: 'n' },
      true,
    ],
    [
      'with scope Namespaced does not match namespaces',
      { scope: 'Namespaced', resources: ['*'] },
      { plural: 'namespaces', namespace: 'n' },
      false,
    ],
  ])('%s', (_, ruleChange, targetChange, matches) => {
    expect(matchesRule({ ...rule, ...ruleChange }, { ...target, ...targetChange })).toBe(matches)
  })
})

describe('the version of a resource that a webhook receives', () => {
  const v1 = { group: 'shop.example.com', version: 'v1', plural: 'widgets' }
  const v2 = { ...v1, version: 'v2' }
  const requested = { ...target, version: 'v2' }
  test.each<[title: string, fields: Partial<Webhook>, version: string | undefined]>([
    ['is the requested version when a rule names it', { rules: [rule, { ...rule, apiVersions: ['v2'] }] }, 'v2'],
    ['is another version when a rule names only that version', {}, 'v1'],
    ['is undefined when a rule names only another version, and matchPolicy is Exact', { matchPolicy: 'Exact' }, undefined],
    ['is undefined when no rule matches the write', { rules: [{ ...rule, operations: ['DELETE'] }] }, undefined],
  ])('%s', (_, fields, version) => {
    expect(matchedVersion(hookOf(fields), requested, v2, () => [v1])?.version).toBe(version)
  })
})

test.each<[title: string, resources: string[], apiGroups: string[], expected: boolean]>([
  ['the resource', ['widgets'], ['shop.example.com'], true],
  ['a subresource of the resource', ['widgets/status'], ['*'], true],
  ['any resource', ['*'], ['shop.example.com'], true],
  ['another resource', ['gadgets'], ['*'], false],
  ['another group', ['widgets'], ['apps'], false],
])('mayMatch for a webhook with rules for %s (%j in groups %j) returns %s', (_, resources, apiGroups, expected) => {
  expect(mayMatch(hookOf({ rules: [{ ...rule, resources, apiGroups }] }), target)).toBe(expected)
})

describe('selectors', () => {
  const labelled = (labels: Record<string, string>) => ({ metadata: { labels } }) as never
  const selecting = hookOf({ objectSelector: { matchLabels: { a: 'b' } }, namespaceSelector: { matchLabels: { a: 'b' } } })

  test.each<[title: string, object: unknown, old: unknown, selected: boolean]>([
    ['selects a write whose new object has the labels', labelled({ a: 'b' }), undefined, true],
    ['selects a write whose old object alone has the labels', labelled({}), labelled({ a: 'b' }), true],
    ['does not select a write of objects without the labels', labelled({ a: 'c' }), labelled({}), false],
    ['selects the deletion of an object with the labels', undefined, labelled({ a: 'b' }), true],
  ])('an objectSelector %s', (_, object, old, selected) => {
    expect(selectsObject(selecting, object as never, old as never)).toBe(selected)
  })

  test.each<[title: string, target: Partial<Target>, labels: Record<string, string>, selected: boolean]>([
    ['selects objects in a namespace with the labels', {}, { a: 'b' }, true],
    ['does not select objects in a namespace without the labels', {}, {}, false],
    ['selects cluster-scoped objects other than Namespaces', { namespace: undefined }, {}, true],
    ['does not select a Namespace without the labels', { plural: 'namespaces', namespace: 'n' }, {}, false],
  ])('a namespaceSelector %s', (_, targetChange, labels, selected) => {
    expect(selectsNamespace(selecting, { ...target, ...targetChange }, () => labels)).toBe(selected)
  })

  test('without a namespaceSelector, the namespace is not looked up', () => {
    const labelsOf = () => {
      throw new Error('looked up')
    }
    expect(selectsNamespace(hookOf(), target, labelsOf)).toBe(true)
  })
})
