/** Regression tests for requests that `fuzz.test.ts` found: each must be rejected without an internal error. */
import { type Logger, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ApiServer, createApiServer } from '@capstan/kubernetes-kinds'
import type { HttpHandler } from './exchange.ts'
import { createHandler } from './handler.ts'

let server: ApiServer
let handler: HttpHandler
const internalErrors: unknown[] = []
const log: Logger = { ...silent, error: (text) => internalErrors.push(text) }
beforeAll(async () => {
  const clock = new VirtualClock()
  server = createApiServer({ clock, random: seededRandom(1), authorization: ['RBAC'], log })
  await server.ready
  handler = createHandler({ engine: server.engine, clock, log })
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'kept' } }
  await send('POST', roles, role)
})
afterAll(() => server.close())

const maps = '/api/v1/namespaces/default/configmaps'
const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const webhookConfigurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const pods = '/api/v1/namespaces/default/pods'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const deployments = '/apis/apps/v1/namespaces/default/deployments'
const services = '/api/v1/namespaces/default/services'

async function send(method: string, url: string, body: unknown, type = 'application/json') {
  const { signal } = new AbortController()
  const headers = { 'content-type': type }
  const request = {
    method,
    url,
    headers,
    signal,
    streamSignal: signal,
    body: () => Promise.resolve(Buffer.from(JSON.stringify(body))),
  }
  const response = await handler(request, { kind: 'user', name: 'admin', groups: ['system:masters'] })
  const status = JSON.parse((response.body as Buffer | string).toString()) as { message?: string }
  return `${response.status} ${status.message ?? ''}`
}

const metadata = { name: 'a' }
const roleWithSelector = (selector: object) => ({ metadata, aggregationRule: { clusterRoleSelectors: [selector] } })
const podWithContainer = (fields: object) => ({ metadata, spec: { containers: [{ name: 'c', image: 'i', ...fields }] } })
const crdWithProperties = (properties: object) => ({
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'things', kind: 'Thing' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } }],
  },
})

test.each<[string, string, unknown, RegExp]>([
  [
    'an owner whose apiVersion is not a string',
    maps,
    { metadata: { ...metadata, ownerReferences: [{ apiVersion: [] }] } },
    /^400 .*cannot unmarshal array into Go struct field ObjectMeta\.metadata\.ownerReferences of type string/,
  ],
  ['an owner that is null', maps, { metadata: { ...metadata, ownerReferences: [null] } }, /^422 .*ownerReferences/],
  [
    'an invalid time in managed fields',
    maps,
    { metadata: { ...metadata, managedFields: [{ time: 'now' }] } },
    /^400 ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "now" as "2006-01-02T15:04:05Z07:00"/,
  ],
  [
    'a body whose kind is an object',
    maps,
    { kind: { toString: 1 }, metadata },
    /^400 .*cannot unmarshal object into Go struct field \.kind of type string/,
  ],
  [
    'a null expression of a selector',
    roles,
    roleWithSelector({ matchExpressions: [null] }),
    /^422 .*operator: Invalid value: "": not a valid selector operator/,
  ],
  [
    'a selector operator named like a member that JavaScript objects inherit',
    roles,
    roleWithSelector({ matchExpressions: [{ key: 'a', operator: 'constructor' }] }),
    /^422 .*not a valid selector operator/,
  ],
  [
    'an invalid label in a selector',
    roles,
    roleWithSelector({ matchLabels: { a: ' ' } }),
    /^422 .*aggregationRule\.clusterRoleSelectors\[0\]\.matchLabels: Invalid value: " "/,
  ],
  ['a null rule of a role', roles, { metadata, rules: [null] }, /^422 .*rules\[0\]\.verbs: Required value/],
  ['a webhook that is null', webhookConfigurations, { metadata, webhooks: [null] }, /^422 .*webhooks\[0\]/],
  [
    'a null rule of a webhook',
    webhookConfigurations,
    { metadata, webhooks: [{ name: 'a.b.c', rules: [null] }] },
    /^422 .*rules\[0\]/,
  ],
  [
    'a container that is null',
    pods,
    { metadata, spec: { containers: [null] } },
    /^422 .*spec\.containers\[0\]\.name: Required value/,
  ],
  ['a null environment variable', pods, podWithContainer({ env: [null] }), /^422 .*env\[0\]\.name: Required value/],
  [
    'a backend of an Ingress whose resource has no kind',
    '/apis/networking.k8s.io/v1/namespaces/default/ingresses',
    { metadata, spec: { defaultBackend: { resource: {} } } },
    /^422 .*resource\.kind: Required value/,
  ],
  ['a null port of a Service', services, { metadata, spec: { ports: [null] } }, /^422 .*spec\.ports\[0\]\.port/],
  ['a CustomResourceDefinition without a spec', definitions, { metadata, spec: null }, /^422 .*spec\.group: Required value/],
  [
    'a null version of a CustomResourceDefinition',
    definitions,
    { metadata, spec: { versions: [null] } },
    /^422 .*spec\.versions/,
  ],
  ['a null schema of a property', definitions, crdWithProperties({ a: null }), /^422 .*properties\[a\]\.type: Required value/],
  [
    'a null CEL rule of a CustomResourceDefinition',
    definitions,
    crdWithProperties({ a: { type: 'object', 'x-kubernetes-validations': [null] } }),
    /^422 .*rule/,
  ],
  [
    'a schema whose allOf is not a list',
    definitions,
    crdWithProperties({ a: { type: 'array', items: { type: 'object', allOf: {} } } }),
    /^400 .*cannot unmarshal object into Go struct field/,
  ],
])('%s is rejected', async (_, path, body, expected) => {
  const kinds: { [path: string]: string } = {
    [maps]: 'ConfigMap',
    [roles]: 'ClusterRole',
    [webhookConfigurations]: 'ValidatingWebhookConfiguration',
    [pods]: 'Pod',
    [definitions]: 'CustomResourceDefinition',
    [services]: 'Service',
    '/apis/networking.k8s.io/v1/namespaces/default/ingresses': 'Ingress',
  }
  const [, root, group, version] = path.split('/')
  const apiVersion = root === 'api' ? group : `${group}/${version}`
  expect(await send('POST', path, { apiVersion, kind: kinds[path], ...(body as object) })).toMatch(expected)
  expect(internalErrors).toEqual([])
})

test.each<[string, string, string, unknown, RegExp]>([
  [
    'an apply patch whose apiVersion is a number',
    'application/apply-patch+yaml',
    `${deployments}/a?fieldManager=m`,
    { apiVersion: 0, kind: 'Deployment', metadata },
    /^400 invalid object type: \/, Kind=Deployment$/,
  ],
  [
    'a patch that removes the whole object',
    'application/json-patch+json',
    `${roles}/kept`,
    [{ op: 'remove', path: '' }],
    /^422 the server rejected our request due to an error in our request$/,
  ],
  [
    'a patch that replaces the object by a list',
    'application/json-patch+json',
    `${roles}/kept`,
    [{ op: 'replace', path: '', value: [] }],
    /^422 the server rejected our request/,
  ],
  [
    'a JSON patch whose path is not a string',
    'application/json-patch+json',
    `${roles}/kept`,
    [{ op: 'move', path: { toString: 1 } }],
    /^400 error decoding patch: json: cannot unmarshal object into Go struct field jsonPatchOp.path of type string/,
  ],
  [
    'a JSON patch that doubles the object again and again',
    'application/json-patch+json',
    `${roles}/kept`,
    Array.from({ length: 60 }, (_, n) => ({ op: 'copy', from: '', path: `/x${n}` })),
    /^422 the server rejected our request/,
  ],
])('%s is rejected', async (_, type, path, body, expected) => {
  expect(await send('PATCH', path, body, type)).toMatch(expected)
  expect(internalErrors).toEqual([])
})
