import { Namespace, type UnknownObject, unknownKind } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { at, rejection, type TestServer, testServer } from '../../test-server.ts'

const pods = unknownKind({ apiVersion: 'v1', kind: 'Pod', plural: 'pods' })
const prefix = 'pod-security.kubernetes.io'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const labelNamespace = (labels: { [name: string]: string }) =>
  t.client.patch(Namespace, { name: 'default' }, { type: 'merge', body: { metadata: { labels } } })

/** Returns the warnings of a write. */
async function warnings(
  verb: 'create' | 'update' | 'patch',
  apiVersion: string,
  plural: string,
  body: object,
  fields: { name?: string; subresource?: string; namespace?: string } = {},
) {
  const [version, group = ''] = apiVersion.split('/').reverse() as [string, string?]
  const patch = verb === 'patch' ? ({ patchType: 'application/merge-patch+json' } as const) : {}
  const request = {
    verb,
    group,
    version,
    plural,
    ...(plural === 'namespaces' ? {} : { namespace: 'default' }),
    body,
    ...patch,
    ...fields,
  }
  const response = await t.server.engine.execute(request as never, { name: 'me', groups: [], agent: 'test' })
  return response.warnings
}

const aPod = (name: string, spec: object = {}, metadata: object = {}) =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...at(name), ...metadata },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  }) as never

const hostPID = 'host namespaces (hostPID=true)'

describe('pods', () => {
  test('are rejected when they violate the enforced level of their namespace', async () => {
    await labelNamespace({ [`${prefix}/enforce`]: 'baseline', [`${prefix}/enforce-version`]: 'v1.20' })
    expect(await rejection(t.client.create(pods, aPod('p', { hostPID: true })))).toBe(
      `403 Forbidden: pods "p" is forbidden: violates PodSecurity "baseline:v1.20": ${hostPID}`,
    )
    expect(await rejection(t.client.create(pods, aPod('p')))).toBe('accepted')
  })

  test('of a namespace without labels are not checked', async () => {
    expect(
      await warnings(
        'create',
        'v1',
        'pods',
        aPod('p', { hostPID: true, containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }] }),
      ),
    ).toEqual([])
  })

  test('that violate only the level of the warn label cause warnings, and rejected pods cause none', async () => {
    await labelNamespace({
      [`${prefix}/enforce`]: 'baseline',
      [`${prefix}/warn`]: 'restricted',
      [`${prefix}/warn-version`]: 'v1.0',
    })
    expect(await warnings('create', 'v1', 'pods', aPod('p'))).toEqual([
      'would violate PodSecurity "restricted:v1.0": runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    ])
    const rejected = t.client.create(pods, aPod('q', { hostPID: true }))
    await expect(rejected).rejects.toMatchObject({ code: 403, warnings: [] })
  })

  test('are checked again only when their images or containers change', async () => {
    await t.client.create(pods, aPod('p', { hostPID: true }))
    await labelNamespace({ [`${prefix}/enforce`]: 'baseline' })
    const change = (patch: object, subresource?: string) =>
      rejection(
        t.client.patch(
          pods,
          at('p'),
          { type: 'merge', body: patch },
          (subresource === undefined ? {} : { subresource }) as never,
        ),
      )
    expect(await change({ metadata: { labels: { a: 'b' } } })).toBe('accepted')
    expect(await change({ status: { phase: 'Running' } }, 'status')).toBe('accepted')
    expect(await change({ spec: { containers: [{ name: 'c', image: 'j' }] } })).toContain(`"baseline:latest": ${hostPID}`)
    const debug = { spec: { ephemeralContainers: [{ name: 'd', image: 'i', securityContext: { privileged: true } }] } }
    expect(await change(debug, 'ephemeralcontainers')).toContain(
      `${hostPID}, privileged (container "d" must not set securityContext.privileged=true)`,
    )
  })

  test('of a missing namespace are rejected', async () => {
    t = await testServer({ admissionPlugins: { disable: ['NamespaceLifecycle', 'ServiceAccount'] } })
    const pod = { ...(aPod('p') as UnknownObject), metadata: { name: 'p', namespace: 'nowhere' } } as never
    expect(await rejection(t.client.create(pods, pod))).toBe(
      '500 InternalError: Internal error occurred: failed to lookup namespace "nowhere"',
    )
  })
})

describe('pod templates', () => {
  const template = { metadata: { labels: { a: 'b' } }, spec: { hostPID: true, containers: [{ name: 'c', image: 'i' }] } }
  const replicated = { selector: { matchLabels: { a: 'b' } }, template }
  const job = { template: { spec: { ...template.spec, restartPolicy: 'Never' } } }

  test.each<[string, string, string, object]>([
    ['v1', 'PodTemplate', 'podtemplates', { template }],
    ['v1', 'ReplicationController', 'replicationcontrollers', { spec: { selector: { a: 'b' }, template } }],
    ['apps/v1', 'ReplicaSet', 'replicasets', { spec: replicated }],
    ['apps/v1', 'Deployment', 'deployments', { spec: replicated }],
    ['apps/v1', 'StatefulSet', 'statefulsets', { spec: replicated }],
    ['apps/v1', 'DaemonSet', 'daemonsets', { spec: replicated }],
    ['batch/v1', 'Job', 'jobs', { spec: job }],
    ['batch/v1', 'CronJob', 'cronjobs', { spec: { schedule: '* * * * *', jobTemplate: { spec: job } } }],
  ])('%s %s whose template violates the enforced level is accepted with a warning', async (apiVersion, kind, plural, fields) => {
    await labelNamespace({ [`${prefix}/enforce`]: 'baseline' })
    const object = { apiVersion, kind, metadata: at('x'), ...fields }
    const text = `would violate PodSecurity "baseline:latest": ${hostPID}`
    expect(await warnings('create', apiVersion, plural, object)).toEqual([text])
    const change = { metadata: { labels: { more: 'x' } } }
    expect(await warnings('patch', apiVersion, plural, change, { name: 'x' })).toEqual([text])
  })

  test('cause no warnings if the warn level of the namespace is privileged, or when only the status is written', async () => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: at('x'), spec: replicated }
    await labelNamespace({ [`${prefix}/enforce`]: 'baseline', [`${prefix}/warn`]: 'privileged' })
    expect(await warnings('create', 'apps/v1', 'deployments', deployment)).toEqual([])
    await labelNamespace({ [`${prefix}/warn`]: 'baseline' })
    const status = { status: { replicas: 1 } }
    expect(await warnings('patch', 'apps/v1', 'deployments', status, { name: 'x', subresource: 'status' })).toEqual([])
  })
})

describe('namespaces', () => {
  test('with invalid labels are rejected, and the error names all invalid labels', async () => {
    const labels = { [`${prefix}/enforce`]: 'strict', [`${prefix}/warn-version`]: '1.2' }
    expect(await rejection(t.client.create(Namespace, { metadata: { name: 'n', labels } }))).toBe(
      `422 Invalid: Namespace "n" is invalid: [metadata.labels[${prefix}/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted, ` +
        `metadata.labels[${prefix}/warn-version]: Invalid value: "1.2": must be "latest" or "v1.x"]`,
    )
  })

  test('that raise the enforced level get warnings about pods that violate it, and other writes of the level get none', async () => {
    for (const name of ['p', 'q']) await t.client.create(pods, aPod(name, { hostPID: true }))
    await t.client.create(pods, aPod('fine'))
    const warningsOf = (enforce: string | null) =>
      warnings('patch', 'v1', 'namespaces', { metadata: { labels: { [`${prefix}/enforce`]: enforce } } }, { name: 'default' })
    expect(await warningsOf('baseline')).toEqual([
      'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
      'p (and 1 other pod): host namespaces',
    ])
    expect(await warningsOf('baseline')).toEqual([])
    expect(await warningsOf('privileged')).toEqual([])
    expect(await warningsOf(null)).toEqual([])
  })
})

test('labels have no effect when the plugin is disabled', async () => {
  t = await testServer({ admissionPlugins: { disable: ['PodSecurity'] } })
  await labelNamespace({ [`${prefix}/enforce`]: 'strict' })
  expect(await rejection(t.client.create(pods, aPod('p', { hostPID: true })))).toBe('accepted')
})
