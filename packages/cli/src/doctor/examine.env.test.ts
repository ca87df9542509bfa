import { installKinds } from '@capstan/controller'
import { memoryStore } from '@capstan/apiserver'
import {
  type Client,
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  createClient,
  hours,
  Role,
  RoleBinding,
  seededRandom,
  SelfSubjectAccessReview,
  silent,
  StatusError,
  systemClock,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { certificateExpiry, makeAuthority } from '@capstan/kube/node'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { type ProviderName, providerAdmission, providerKinds } from '@capstan/lab'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { serveWebhooks } from '../manager/webhooks.ts'
import { conversionByService } from '../manifests/names.ts'
import { leaderElectionRules, managerRules } from '../manifests/roles.ts'
import { authorityProblems, examine, neededPermissions } from './examine.ts'

const namespace = 'default'
const newServer = () =>
  createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: seededRandom(1),
    log: silent,
    authorization: ['RBAC'],
  })

let server: ReturnType<typeof newServer>
let admin: Client
let manager: Client
beforeEach(async () => {
  server = newServer()
  await server.ready
  admin = createClient(server.transport({ name: 'admin', groups: ['system:masters'], agent: 'test' }))
  manager = createClient(server.transport({ name: 'manager', groups: ['system:authenticated'], agent: 'test' }))
})
afterEach(() => server.close())

const examineAsManager = (providers: readonly ProviderName[], kubernetesVersion = 'v1.36.0') =>
  examine({ client: manager, kubernetesVersion, clock: systemClock, providers, namespace, signal: new AbortController().signal })

const rbac = 'rbac.authorization.k8s.io'
const subjects = [{ kind: 'User', apiGroup: rbac, name: 'manager' }]

/** Creates the ClusterRole and Role of `capstan manifests`, omits some verbs in the ClusterRole, and binds the user `manager` to both. */
async function grant(providers: readonly ProviderName[], omittedVerbs: readonly string[] = []): Promise<void> {
  const metadata = { name: 'manager' }
  const rules = providers
    .flatMap((provider) => managerRules(provider))
    .map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => !omittedVerbs.includes(verb)) }))
    .filter(({ verbs }) => verbs.length > 0)
  await admin.create(ClusterRole, { metadata, rules })
  await admin.create(ClusterRoleBinding, {
    metadata,
    subjects,
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'manager' },
  })
  const inNamespace = { metadata: { ...metadata, namespace } }
  await admin.create(Role, { ...inNamespace, rules: leaderElectionRules('core', undefined) })
  await admin.create(RoleBinding, { ...inNamespace, subjects, roleRef: { apiGroup: rbac, kind: 'Role', name: 'manager' } })
}

const install = (providers: readonly ProviderName[]) =>
  installKinds(
    admin,
    providers.flatMap((provider) => providerKinds[provider]),
    { clock: systemClock, random: seededRandom(1) },
  )

test('reports each permission of the roles as missing when the user has no role', async () => {
  const { findings, checked } = await examineAsManager(['local'])
  const missingPermissions = findings.filter(({ area }) => area === 'permissions')
  expect(missingPermissions.length).toBe(neededPermissions({ providers: ['local'], namespace }).length)
  expect(missingPermissions.map(({ subject }) => subject)).toEqual(
    expect.arrayContaining([
      'patch machines/status.cluster.x-k8s.io',
      'create secrets',
      'patch validatingwebhookconfigurations.admissionregistration.k8s.io capstan-local',
      'update leases.coordination.k8s.io in default',
    ]),
  )
  expect(checked.permissions).toBe(missingPermissions.length)
})

test('when reading is forbidden, reports missing permissions and skips the checks of kinds, webhooks and certificates', async () => {
  const { transport } = manager
  manager = createClient({
    watch: (request, signal) => transport.watch(request, signal),
    close: () => transport.close(),
    send: (request, signal) =>
      request.plural === SelfSubjectAccessReview.plural
        ? transport.send(request, signal)
        : Promise.reject(new StatusError('Forbidden', `${request.plural} is forbidden`)),
  })
  const { findings, checked } = await examineAsManager(['local'])
  expect(new Set(findings.map(({ area }) => area))).toEqual(new Set(['permissions']))
  expect(checked).toMatchObject({ kinds: 0, webhooks: 0, certificates: 0 })
})

test('a user with all permissions except one verb lacks only that verb', async () => {
  await grant(['core'], ['delete'])
  const { findings } = await examineAsManager(['core'])
  const missingPermissions = findings.filter(({ area }) => area === 'permissions').map(({ subject }) => subject)
  expect(missingPermissions).toContain('delete machines.cluster.x-k8s.io')
  expect(missingPermissions.every((subject) => subject.startsWith('delete '))).toBe(true)
})

test('missing kinds are errors, and missing webhook configurations are warnings', async () => {
  await grant(['local'])
  // The roles of managers do not permit reading webhook configurations.
  await admin.create(ClusterRole, {
    metadata: { name: 'reader' },
    rules: [{ apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['get'] }],
  })
  await admin.create(ClusterRoleBinding, {
    metadata: { name: 'reader' },
    subjects,
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'reader' },
  })
  const { findings, checked } = await examineAsManager(['local'])
  expect(checked.kinds).toBe(providerKinds.local.length)
  expect(
    findings.filter(({ area }) => area === 'kinds').map(({ severity, subject, problem }) => [severity, subject, problem]),
  ).toContainEqual(['error', 'localclusters.infrastructure.capstan.dev', 'the CustomResourceDefinition does not exist'])
  expect(findings.filter(({ area }) => area === 'webhooks').map(({ severity, subject }) => [severity, subject])).toEqual([
    ['warning', 'MutatingWebhookConfiguration capstan-local'],
    ['warning', 'ValidatingWebhookConfiguration capstan-local'],
  ])
})

test('a complete cluster has no findings; webhook configurations without a server are errors', async () => {
  await grant(['local'])
  await install(['local'])
  const webhooks = await serveWebhooks(
    { webhookHost: '127.0.0.1', webhookPort: 0 },
    {
      client: admin,
      providers: ['local'],
      admissions: providerAdmission(),
      minVersion: 'TLSv1.2',
      clock: systemClock,
      log: silent,
      isAlone: false,
      leads: () => true,
      reinstall: () => Promise.resolve(),
    },
  )
  await webhooks.configure()
  manager = admin
  expect((await examineAsManager(['local'])).findings).toEqual([])
  await webhooks.close()
  const { findings } = await examineAsManager(['local'])
  expect(findings.map(({ severity, area, subject }) => `${severity} ${area} ${subject}`)).toEqual([
    'error webhooks MutatingWebhookConfiguration capstan-local',
    'error webhooks ValidatingWebhookConfiguration capstan-local',
  ])
  expect(findings[0]!.problem).toMatch(
    /^the webhook server https:\/\/127\.0\.0\.1:\d+ cannot be reached, so writes are rejected: .*ECONNREFUSED/,
  )
  expect(findings[0]!.remedy).toContain('--remove-webhooks')
  await admin.delete(ValidatingWebhookConfiguration, { name: 'capstan-local' })
})

test("a webhook behind a Service without a server is an error, with the API server's message", async () => {
  await install(['local'])
  const caBundle = Buffer.from((await makeAuthority(systemClock, { commonName: 'ca' })).certificate).toString('base64')
  const webhook = {
    name: 'validation.localcontrolplanes.capstan.dev',
    clientConfig: { service: { name: 'webhooks', namespace: 'default' }, caBundle },
    rules: [{ apiGroups: ['controlplane.capstan.dev'], apiVersions: ['*'], resources: ['*'], operations: ['CREATE'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
  }
  await admin.create(ValidatingWebhookConfiguration, { metadata: { name: 'capstan-local' }, webhooks: [webhook] } as never)
  manager = admin
  const findings = (await examineAsManager(['local'])).findings.filter(({ severity }) => severity === 'error')
  expect(findings).toMatchObject([
    {
      area: 'webhooks',
      subject: 'ValidatingWebhookConfiguration capstan-local',
      problem: expect.stringMatching(/^the API server cannot call the webhook, so writes are rejected: .*failed calling webhook/),
    },
  ])
})

const unservedConversion =
  /^the API server cannot call the webhook, so requests for other versions than the stored one fail: conversion webhook for runtime.cluster.x-k8s.io\/v1alpha1, Kind=ExtensionConfig failed: Post "https:\/\/capi-webhook-service.capi-system.svc:443\/convert/

test.each([
  ['an error after a manager has added its authority', 'error', true],
  ['a warning until a manager adds its authority', 'warning', false],
] as const)('conversion behind a Service without a server is %s', async (_, severity, hasAuthority) => {
  const { certificate } = await makeAuthority(systemClock, { commonName: 'ca' })
  const caBundle = hasAuthority ? { caBundle: Buffer.from(certificate).toString('base64') } : {}
  const conversion = { ...conversionByService('core'), ...caBundle }
  await installKinds(admin, providerKinds.core, { clock: systemClock, random: seededRandom(1), conversion })
  manager = admin
  const findings = (await examineAsManager(['core'])).findings.filter(
    ({ subject }) => subject === 'conversion of the core provider',
  )
  expect(findings).toMatchObject([{ severity, area: 'webhooks', problem: expect.stringMatching(unservedConversion) }])
})

test('conversion at a URL without a server is an error that names the failing requests', async () => {
  const conversion = { url: 'https://127.0.0.1:1/convert' }
  await installKinds(admin, providerKinds.core, { clock: systemClock, random: seededRandom(1), conversion })
  manager = admin
  const { findings } = await examineAsManager(['core'])
  expect(findings.find(({ severity }) => severity === 'error')).toMatchObject({
    subject: 'conversion of clusters.cluster.x-k8s.io',
    problem: expect.stringMatching(
      /^the webhook server https:\/\/127\.0\.0\.1:1 cannot be reached, so requests for other versions than the stored one fail: .*ECONNREFUSED/,
    ),
  })
})

test('reports a CustomResourceDefinition of another release, and versions that are not served', async () => {
  await grant(['local'])
  await install(['local'])
  const name = 'localmachines.infrastructure.capstan.dev'
  const { spec } = await admin.get(CustomResourceDefinition, { name })
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const replace = (versions: object[]) =>
    admin.patch(CustomResourceDefinition, { name }, { type: 'merge', body: { spec: { versions } } })
  await replace([{ ...spec.versions[0], schema }])
  const problems = async () => (await examineAsManager(['local'])).findings.filter(({ area }) => area === 'kinds')
  expect(await problems()).toMatchObject([
    { severity: 'warning', subject: name, problem: 'the schema of v1alpha1 is that of another release' },
  ])
  await replace([
    { ...spec.versions[0], served: false, storage: false },
    { ...spec.versions[0], name: 'v1', served: true, storage: true },
  ])
  expect(await problems()).toMatchObject([{ severity: 'error', subject: name, problem: 'version v1alpha1 is not served' }])
})

test.each([
  ['a server that is older than v1.33 is an error', 'v1.32.4', [['error', 'is older than v1.33']]],
  ['a server of version v1.33 has no finding', 'v1.33.0', []],
  ['a server of version v2.0 has no finding', 'v2.0.0', []],
  [
    'a server whose version cannot be read is a warning with the error text',
    'HTTP status 403',
    [['warning', 'the server does not report its version: HTTP status 403']],
  ],
])('%s', async (_, version, problems) => {
  const { findings } = await examineAsManager(['local'], version)
  expect(findings.filter(({ area }) => area === 'versions').map(({ severity, problem }) => [severity, problem])).toEqual(problems)
})

test('expired authorities are errors, and authorities that expire soon are warnings', async () => {
  const { certificate } = await makeAuthority(systemClock, { commonName: 'ca', validity: hours(24 * 90) })
  const caBundle = Buffer.from(certificate).toString('base64')
  const createdAt = certificateExpiry(certificate) - hours(24 * 90)
  const problemsAfter = (days: number) =>
    authorityProblems('x', { caBundle }, createdAt + hours(24 * days)).map(
      ({ severity, problem }) => `${severity} ${problem.split(' at ')[0]}`,
    )
  expect(problemsAfter(70)).toEqual([])
  expect(problemsAfter(80)).toEqual(['warning its authority expires'])
  expect(problemsAfter(91)).toEqual(['error its authority expired'])
})

test.each([
  ['without a caBundle', 'warning', undefined, /no caBundle/],
  ['whose caBundle contains no certificate', 'error', 'nothing', /contains no certificate/],
  [
    'whose caBundle contains an unreadable certificate',
    'error',
    '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
    /cannot be read/,
  ],
])('a webhook %s is reported with severity %s', (_, severity, authorities, problem) => {
  const clientConfig = authorities === undefined ? {} : { caBundle: Buffer.from(authorities).toString('base64') }
  expect(authorityProblems('x', clientConfig, systemClock.now())).toMatchObject([
    { severity, problem: expect.stringMatching(problem) },
  ])
})
