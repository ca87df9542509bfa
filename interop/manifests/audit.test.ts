import { expect, test } from 'vitest'
import { type AuditEvent, forbiddenRequests, type Grant, permissionText, readAudit, unusedPermissions } from './audit.ts'

const user = 'system:serviceaccount:one:manager'
const event = (verb: string, objectRef: AuditEvent['objectRef'], code = 200): AuditEvent => ({
  user: { username: user },
  stageTimestamp: '2026-01-01T00:00:00Z',
  verb,
  objectRef: objectRef!,
  requestURI: '/apis/x',
  responseStatus: { code },
})
const grant = (rule: Partial<Grant['rules'][number]>, namespace?: string): Grant => ({
  user,
  role: 'role',
  ...(namespace === undefined ? {} : { namespace }),
  rules: [{ apiGroups: ['g'], resources: ['widgets'], verbs: ['get'], ...rule }],
})
const widgets = { apiGroup: 'g', resource: 'widgets' }

test.each<[string, Grant, AuditEvent[], string[]]>([
  ['an empty audit log', grant({}), [], ['role: get widgets.g']],
  ['a request with the verb on the resource', grant({}), [event('get', widgets)], []],
  ['a request with another verb', grant({}), [event('list', widgets)], ['role: get widgets.g']],
  ['a request for another API group', grant({}), [event('get', { ...widgets, apiGroup: 'h' })], ['role: get widgets.g']],
  [
    'a request for the status subresource',
    grant({}),
    [event('get', { ...widgets, subresource: 'status' })],
    ['role: get widgets.g'],
  ],
  [
    'a permission and a request for the status subresource',
    grant({ resources: ['widgets/status'] }),
    [event('get', { ...widgets, subresource: 'status' })],
    [],
  ],
  [
    'a permission for all resources, and a request for a subresource',
    grant({ resources: ['*'] }),
    [event('get', { ...widgets, subresource: 'status' })],
    [],
  ],
  [
    'a permission for one object, and a request for another one',
    grant({ resourceNames: ['a'] }),
    [event('get', { ...widgets, name: 'b' })],
    ['role: get widgets.g a'],
  ],
  [
    'a permission and a request for the same object',
    grant({ resourceNames: ['a'] }),
    [event('get', { ...widgets, name: 'a' })],
    [],
  ],
  [
    'a binding in one namespace, and a request in another one',
    grant({}, 'one'),
    [event('get', { ...widgets, namespace: 'two' })],
    ['role: get widgets.g'],
  ],
  ['server-side apply that creates an object', grant({ verbs: ['create', 'patch'] }), [event('patch', widgets, 201)], []],
  [
    'server-side apply to an existing object',
    grant({ verbs: ['create', 'patch'] }),
    [event('patch', widgets)],
    ['role: create widgets.g'],
  ],
])('unusedPermissions returns the permissions that no request used: %s', (_, granted, events, texts) => {
  expect(unusedPermissions([granted], events).map(permissionText)).toEqual(texts)
})

test('unusedPermissions ignores requests of other users', () => {
  const other = { ...event('get', widgets), user: { username: 'somebody' } }
  expect(unusedPermissions([grant({})], [other])).toHaveLength(1)
})

test('forbiddenRequests returns each request with status 403 or a negative decision of the authorizer once', () => {
  const decided = { ...event('get', widgets), annotations: { 'authorization.k8s.io/decision': 'forbid' } }
  const log = [event('get', widgets), event('delete', widgets, 403), event('delete', widgets, 403), decided]
  const text = log.map((entry) => JSON.stringify(entry)).join('\n')
  expect(forbiddenRequests(readAudit(`${text}\n`)).map((line) => line.split(' ').slice(1, 3).join(' '))).toEqual([
    'delete widgets',
    'get widgets',
  ])
})
