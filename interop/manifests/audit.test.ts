import { expect, test } from 'vitest'
import { type AuditEvent, forbidden, type Grant, readAudit, rightText, unused } from './audit.ts'

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
  ['a permission without a request', grant({}), [], ['role: get widgets.g']],
  ['a permission with a request', grant({}), [event('get', widgets)], []],
  ['a request of another verb', grant({}), [event('list', widgets)], ['role: get widgets.g']],
  ['a request of another group', grant({}), [event('get', { ...widgets, apiGroup: 'h' })], ['role: get widgets.g']],
  ['a request of the status', grant({}), [event('get', { ...widgets, subresource: 'status' })], ['role: get widgets.g']],
  [
    'a permission for the status',
    grant({ resources: ['widgets/status'] }),
    [event('get', { ...widgets, subresource: 'status' })],
    [],
  ],
  ['a permission for all resources', grant({ resources: ['*'] }), [event('get', { ...widgets, subresource: 'status' })], []],
  ['another name', grant({ resourceNames: ['a'] }), [event('get', { ...widgets, name: 'b' })], ['role: get widgets.g a']],
  ['a request for the named object only', grant({ resourceNames: ['a'] }), [event('get', { ...widgets, name: 'a' })], []],
  ['another namespace', grant({}, 'one'), [event('get', { ...widgets, namespace: 'two' })], ['role: get widgets.g']],
  ['an applied object that is new', grant({ verbs: ['create', 'patch'] }), [event('patch', widgets, 201)], []],
  [
    'an applied object that existed',
    grant({ verbs: ['create', 'patch'] }),
    [event('patch', widgets)],
    ['role: create widgets.g'],
  ],
])('unused lists the permissions of a role that no request used: %s', (_, role, events, texts) => {
  expect(unused([role], events).map(rightText)).toEqual(texts)
})

test('requests of other users do not count as use of a permission', () => {
  const other = { ...event('get', widgets), user: { username: 'somebody' } }
  expect(unused([grant({})], [other])).toHaveLength(1)
})

test('forbidden lists each forbidden request once, recognized by its status code or by the decision of the authorizer', () => {
  const decided = { ...event('get', widgets), annotations: { 'authorization.k8s.io/decision': 'forbid' } }
  const log = [event('get', widgets), event('delete', widgets, 403), event('delete', widgets, 403), decided]
  const text = log.map((entry) => JSON.stringify(entry)).join('\n')
  expect(forbidden(readAudit(`${text}\n`)).map((line) => line.split(' ').slice(1, 3).join(' '))).toEqual([
    'delete widgets',
    'get widgets',
  ])
})
