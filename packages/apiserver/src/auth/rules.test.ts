import type { PolicyRule } from '@capstan/kube'
import { expect, test } from 'vitest'
import { allows, appliesTo, missingPermissions, permissionsText } from './rules.ts'

const rule = (apiGroups: string, resources: string, verbs: string, resourceNames?: string): PolicyRule => ({
  apiGroups: apiGroups.split(' '),
  resources: resources.split(' '),
  verbs: verbs.split(' '),
  ...(resourceNames === undefined ? {} : { resourceNames: resourceNames.split(' ') }),
})
const urls = (verbs: string, ...nonResourceURLs: string[]): PolicyRule => ({ verbs: verbs.split(' '), nonResourceURLs })

/** Parses `verb resource[/subresource][.group][ name]` or `verb /path`. */
function action(text: string): Parameters<typeof allows>[1] {
  const [verb = '', target = '', name] = text.split(' ')
  if (target.startsWith('/')) return { kind: 'path', verb, path: target }
  const [, resource = '', subresource, group = ''] = /^([a-z]+)(?:\/([a-z]+))?(?:\.(.*))?$/.exec(target) ?? []
  return { kind: 'resource', verb, group, resource, subresource, name }
}

test.each<[PolicyRule, string, boolean]>([
  [rule('', 'pods', 'get'), 'get pods', true],
  [rule('', 'pods', 'get'), 'list pods', false],
  [rule('', 'pods', '*'), 'bind pods', true],
  [rule('', 'pods', 'get'), 'get pods.apps', false],
  [rule('apps', 'deployments', 'get'), 'get deployments.apps', true],
  [rule('*', 'deployments', 'get'), 'get deployments.apps', true],
  [rule('', 'pods', 'get'), 'get pods/log', false],
  [rule('', 'pods/log', 'get'), 'get pods/log', true],
  [rule('', 'pods/log', 'get'), 'get pods', false],
  [rule('', '*/scale', 'get'), 'get deployments/scale', true],
  [rule('', '*/scale', 'get'), 'get deployments/status', false],
  [rule('', '*/scale', 'get'), 'get deployments', false],
  [rule('', 'pods/*', 'get'), 'get pods/log', false],
  [rule('', '*', 'get'), 'get pods/log', true],
  [rule('', 'secrets', 'get', 'a b'), 'get secrets b', true],
  [rule('', 'secrets', 'get', 'a b'), 'get secrets c', false],
  [rule('', 'secrets', 'get', 'a b'), 'get secrets', false],
  [rule('*', '*', '*'), 'get /metrics', false],
  [urls('get', '/metrics'), 'get /metrics', true],
  [urls('get', '/metrics'), 'post /metrics', false],
  [urls('get', '/metrics'), 'get /metrics/slis', false],
  [urls('get', '/apis/*'), 'get /apis/apps', true],
  [urls('get', '/apis/*'), 'get /apis', false],
  [urls('*', '*'), 'delete /anything', true],
  [urls('*', '*'), 'get pods', false],
])('the rule %j allows "%s": %s', (rule, request, allowed) => {
  expect(allows(rule, action(request))).toBe(allowed)
})

const bob = { name: 'bob', groups: ['devs'] }
const robot = { name: 'system:serviceaccount:build:robot', groups: [] }

test.each([
  ['applies to the user that it names', { kind: 'User', name: 'bob' }, bob, '', true],
  ['does not apply to another user', { kind: 'User', name: 'eve' }, bob, '', false],
  ['of kind Group applies to the members of the group', { kind: 'Group', name: 'devs' }, bob, '', true],
  ['of kind Group does not apply to a user with the name of the group', { kind: 'Group', name: 'bob' }, bob, '', false],
  [
    'of kind ServiceAccount applies to the service account that it names',
    { kind: 'ServiceAccount', name: 'robot', namespace: 'build' },
    robot,
    '',
    true,
  ],
  [
    'of kind ServiceAccount without a namespace applies to a service account in the namespace of the binding',
    { kind: 'ServiceAccount', name: 'robot' },
    robot,
    'build',
    true,
  ],
  [
    'of kind ServiceAccount without a namespace does not apply to a service account in another namespace than the binding',
    { kind: 'ServiceAccount', name: 'robot' },
    robot,
    'other',
    false,
  ],
  [
    'of kind ServiceAccount without a namespace does not apply if the binding is cluster-scoped',
    { kind: 'ServiceAccount', name: 'robot' },
    robot,
    '',
    false,
  ],
  ['of an unknown kind does not apply', { kind: 'Robot', name: 'bob' }, bob, '', false],
])('a subject %s', (_, subject, user, namespace, applies) => {
  expect(appliesTo(subject, user, namespace)).toBe(applies)
})

test.each<[string, PolicyRule[], PolicyRule[], string]>([
  ['the user has no rules', [], [rule('', 'pods', 'get list')], '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'],
  ['the user has all permissions', [rule('*', '*', '*')], [rule('apps', 'deployments deployments/scale', '*')], ''],
  [
    'two rules of the user together grant all permissions',
    [rule('', 'pods', 'get'), rule('', 'pods', 'list')],
    [rule('', 'pods', 'get list')],
    '',
  ],
  [
    'a verb is missing',
    [rule('', 'pods', 'get')],
    [rule('', 'pods', 'get *')],
    '{APIGroups:[""], Resources:["pods"], Verbs:["*"]}',
  ],
  [
    'the rule of the user names only one of two objects',
    [rule('', 'secrets', 'get', 'a')],
    [rule('', 'secrets', 'get', 'a b')],
    '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
  ],
  [
    'the rule of the user names an object, and the requested rule names none',
    [rule('', 'secrets', 'get', 'a')],
    [rule('', 'secrets', 'get')],
    '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
  ],
  [
    'the rule of the user grants the requested subresource of all resources',
    [rule('', '*/scale', 'get')],
    [rule('', 'deployments/scale', 'get')],
    '',
  ],
  ['the rule of the user covers all requested paths', [urls('get', '/apis/*')], [urls('get', '/apis/apps', '/apis/*')], ''],
  ['a path is missing', [urls('get', '/apis')], [urls('get', '/api', '/apis')], '{NonResourceURLs:["/api"], Verbs:["get"]}'],
  [
    'several resources are requested',
    [],
    [rule(' apps', 'b a', 'get')],
    [
      '{APIGroups:[""], Resources:["a"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["b"], Verbs:["get"]}',
      '{APIGroups:["apps"], Resources:["a"], Verbs:["get"]}',
      '{APIGroups:["apps"], Resources:["b"], Verbs:["get"]}',
    ].join('\n'),
  ],
])('returns the missing permissions when %s', (_, held, wanted, text) => {
  expect(permissionsText(missingPermissions(held, wanted))).toBe(text)
})

test('rejects rules with too many combinations to compare, unless the user has all permissions', () => {
  const many = (prefix: string) => Array.from({ length: 300 }, (_, index) => `${prefix}${index}`)
  const wanted = [{ apiGroups: many('g'), resources: many('r'), verbs: many('v') }]
  expect(() => missingPermissions([rule('', 'pods', 'get')], wanted)).toThrow('the rules contain 27000000 permissions')
  expect(missingPermissions([rule('*', '*', '*')], wanted)).toEqual([])
})
