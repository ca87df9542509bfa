import { expect, test } from 'vitest'
import type { ApiRequest, Verb } from './client.ts'
import { parseResourcePath, urlOf, verbOf } from './request.ts'

const machines = { group: 'cluster.x-k8s.io', version: 'v1beta2', plural: 'machines' }
const configMaps = { group: '', version: 'v1', plural: 'configmaps' }

test.each<[ApiRequest, string]>([
  [{ verb: 'get', ...configMaps, namespace: 'n', name: 'a' }, '/api/v1/namespaces/n/configmaps/a'],
  [{ verb: 'list', ...machines }, '/apis/cluster.x-k8s.io/v1beta2/machines'],
  [
    { verb: 'list', ...machines, namespace: 'n', options: { labelSelector: 'a in (b,c)', limit: 5 } },
    '/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines?labelSelector=a+in+%28b%2Cc%29&limit=5',
  ],
  [
    { verb: 'watch', ...configMaps, options: { resourceVersion: '7', allowWatchBookmarks: true } },
    '/api/v1/configmaps?resourceVersion=7&allowWatchBookmarks=true&watch=true',
  ],
  [
    { verb: 'patch', ...machines, namespace: 'n', name: 'a', subresource: 'status', options: { dryRun: true, force: true } },
    '/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/a/status?force=true&dryRun=All',
  ],
  [{ verb: 'get', group: 'rbac', version: 'v1', plural: 'roles', name: 'system:a/b' }, '/apis/rbac/v1/roles/system%3Aa%2Fb'],
  [{ verb: 'get', group: '', version: 'v1', plural: '' }, '/api/v1'],
  [{ verb: 'get', group: '', version: '', plural: '' }, '/'],
])('%j has the URL %s', (request, url) => {
  expect(urlOf(request)).toBe(url)
})

test.each<[string, object | undefined]>([
  ['/api/v1/namespaces/n/configmaps/a', { ...configMaps, namespace: 'n', name: 'a' }],
  ['/api/v1/namespaces/n/configmaps', { ...configMaps, namespace: 'n' }],
  ['/api/v1/configmaps/', configMaps],
  ['/api/v1/namespaces', { ...configMaps, plural: 'namespaces' }],
  ['/api/v1/namespaces/n', { ...configMaps, plural: 'namespaces', name: 'n' }],
  ['/api/v1/namespaces/n/status', { ...configMaps, plural: 'namespaces', name: 'n', subresource: 'status' }],
  ['/api/v1/namespaces/n/finalize', { ...configMaps, plural: 'namespaces', name: 'n', subresource: 'finalize' }],
  ['/apis/cluster.x-k8s.io/v1beta2/machines', machines],
  [
    '/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/a/scale',
    { ...machines, namespace: 'n', name: 'a', subresource: 'scale' },
  ],
  ['/apis/rbac/v1/roles/system%3Aa%2Fb', { group: 'rbac', version: 'v1', plural: 'roles', name: 'system:a/b' }],
  ['/api/v1/watch/namespaces/n/configmaps/a', { ...configMaps, namespace: 'n', name: 'a', watch: true }],
  ['/api/v1/watch/configmaps', { ...configMaps, watch: true }],
  ['/api/v1', undefined],
  ['/apis/cluster.x-k8s.io', undefined],
  ['/apis/cluster.x-k8s.io/v1beta2', undefined],
  ['/api/v1/namespaces/n//a', undefined],
  ['/api/v1/configmaps/%zz', undefined],
  ['/healthz', undefined],
])('the path %s is parsed as %j', (path, meaning) => {
  expect(parseResourcePath(path)).toEqual(meaning)
})

test.each<[string, string, string, Verb | undefined]>([
  ['GET', '/api/v1/configmaps', '', 'list'],
  ['GET', '/api/v1/configmaps', 'watch=1', 'watch'],
  ['GET', '/api/v1/configmaps', 'watch=abc', 'watch'],
  ['GET', '/api/v1/configmaps', 'watch=false', 'list'],
  ['GET', '/api/v1/namespaces/n/configmaps/a', 'watch=true', 'get'],
  ['GET', '/api/v1/watch/namespaces/n/configmaps/a', '', 'watch'],
  ['POST', '/api/v1/namespaces/n/configmaps', '', 'create'],
  ['POST', '/api/v1/namespaces/n/configmaps/a', '', undefined],
  ['POST', '/api/v1/namespaces/n/serviceaccounts/a/token', '', 'create'],
  ['PUT', '/api/v1/namespaces/n/configmaps/a', '', 'update'],
  ['PUT', '/api/v1/namespaces/n/configmaps', '', undefined],
  ['PATCH', '/api/v1/namespaces/n/configmaps/a', '', 'patch'],
  ['DELETE', '/api/v1/namespaces/n/configmaps/a', '', 'delete'],
  ['DELETE', '/api/v1/namespaces/n/configmaps', '', 'deletecollection'],
  ['HEAD', '/api/v1/namespaces/n/configmaps/a', '', undefined],
])('the verb of %s %s?%s is %s', (method, path, query, verb) => {
  expect(verbOf(method, parseResourcePath(path)!, new URLSearchParams(query))).toBe(verb)
})
