import type { Webhook } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import {
  type Hook,
  hooksOf,
  matchedVersion,
  matchesRule,
  mayConcern,
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

const hookOf = (more: Partial<Webhook> = {}): Hook =>
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
          ...more,
        },
      ],
    },
  ])[0]!

describe('a rule', () => {
  test.each<[what: string, rule: object, target: Partial<Target>, matches: boolean]>([
    ['means what it names', {}, {}, true],
    ['does not mean another operation', {}, { operation: 'UPDATE' }, false],
    ['may mean every operation', { operations: ['*'] }, { operation: 'DELETE' }, true],
    ['does not mean another group', {}, { group: 'apps' }, false],
    ['may mean every group', { apiGroups: ['*'] }, { group: 'apps' }, true],
    ['may mean the core group', { apiGroups: [''] }, { group: '' }, true],
    ['does not mean another version', {}, { version: 'v2' }, false],
    ['may mean every version', { apiVersions: ['*'] }, { version: 'v2' }, true],
    ['does not mean subresources unless it says so', {}, { subresource: 'status' }, false],
    ['of a subresource means just that', { resources: ['widgets/status'] }, { subresource: 'status' }, true],
    ['of a subresource does not mean the resource', { resources: ['widgets/status'] }, {}, false],
    ['of all subresources means the resource, too', { resources: ['widgets/*'] }, {}, true],
    ['of all subresources means each', { resources: ['widgets/*'] }, { subresource: 'scale' }, true],
    ['of all resources does not mean subresources', { resources: ['*'] }, { subresource: 'scale' }, false],
    ['of all resources means each', { resources: ['*'] }, { plural: 'gadgets' }, true],
    ['of a subresource everywhere means it', { resources: ['*/scale'] }, { plural: 'gadgets', subresource: 'scale' }, true],
    ['of everything means everything', { resources: ['*/*'] }, { plural: 'gadgets', subresource: 'scale' }, true],
    ['for namespaces means what is in one', { scope: 'Namespaced' }, {}, true],
    ['for namespaces does not mean what is in none', { scope: 'Namespaced' }, { namespace: undefined }, false],
    ['for the cluster does not mean what is in a namespace', { scope: 'Cluster' }, {}, false],
    ['for the cluster means what is in none', { scope: 'Cluster' }, { namespace: undefined }, true],
    [
      'for the cluster means namespaces',
      { scope: 'Cluster', resources: ['namespaces'] },
      { plural: 'namespaces', namespace: 'n' },
      true,
    ],
    [
      'for namespaces does not mean namespaces',
      { scope: 'Namespaced', resources: ['*'] },
      { plural: 'namespaces', namespace: 'n' },
      false,
    ],
  ])('%s', (_, change, other, matches) => {
    expect(matchesRule({ ...rule, ...change }, { ...target, ...other })).toBe(matches)
  })
})

describe('of several versions of a resource', () => {
  const v1 = { group: 'shop.example.com', version: 'v1', plural: 'widgets' }
  const v2 = { ...v1, version: 'v2' }
  const asked = { ...target, version: 'v2' }
  test.each<[what: string, more: Partial<Webhook>, version: string | undefined]>([
    ['the one that was asked is taken when a rule names it', { rules: [rule, { ...rule, apiVersions: ['v2'] }] }, 'v2'],
    ['another one is as good', {}, 'v1'],
    ['another one is none for an exact webhook', { matchPolicy: 'Exact' }, undefined],
    ['none is taken when no rule is about the write', { rules: [{ ...rule, operations: ['DELETE'] }] }, undefined],
  ])('%s', (_, more, version) => {
    expect(matchedVersion(hookOf(more), asked, v2, () => [v1])?.version).toBe(version)
  })
})

test.each<[what: string, resources: string[], apiGroups: string[], concerns: boolean]>([
  ['its resource', ['widgets'], ['shop.example.com'], true],
  ['a subresource of it', ['widgets/status'], ['*'], true],
  ['any resource', ['*'], ['shop.example.com'], true],
  ['another resource', ['gadgets'], ['*'], false],
  ['another group', ['widgets'], ['apps'], false],
])('a webhook with rules for %s may be concerned: %j in %j', (_, resources, apiGroups, concerns) => {
  expect(mayConcern(hookOf({ rules: [{ ...rule, resources, apiGroups }] }), target)).toBe(concerns)
})

describe('selectors', () => {
  const labelled = (labels: Record<string, string>) => ({ metadata: { labels } }) as never
  const picky = hookOf({ objectSelector: { matchLabels: { a: 'b' } }, namespaceSelector: { matchLabels: { a: 'b' } } })

  test.each<[what: string, object: unknown, old: unknown, selected: boolean]>([
    ['the object has the labels', labelled({ a: 'b' }), undefined, true],
    ['only the old object has them', labelled({}), labelled({ a: 'b' }), true],
    ['neither has them', labelled({ a: 'c' }), labelled({}), false],
    ['it is being deleted', undefined, labelled({ a: 'b' }), true],
  ])('an object counts as selected or not when %s', (_, object, old, selected) => {
    expect(selectsObject(picky, object as never, old as never)).toBe(selected)
  })

  test.each<[what: string, target: Partial<Target>, labels: Record<string, string>, selected: boolean]>([
    ['in a namespace with the labels', {}, { a: 'b' }, true],
    ['in a namespace without them', {}, {}, false],
    ['in no namespace', { namespace: undefined }, {}, true],
    ['a namespace itself, without them', { plural: 'namespaces', namespace: 'n' }, {}, false],
  ])('%s', (_, other, labels, selected) => {
    expect(selectsNamespace(picky, { ...target, ...other }, () => labels)).toBe(selected)
  })

  test('without selectors no namespace is looked up', () => {
    const look = () => {
      throw new Error('looked')
    }
    expect(selectsNamespace(hookOf(), target, look)).toBe(true)
  })
})
