/** Tests the errors for mistakes of users. The texts are mostly upstream's, and name the invalid field or object. */
import { BeforeClusterCreate, Cluster, ClusterClass, ExtensionConfig } from '@capstan/api'
import { defineExtension, extensionServer, fail, type FetchHandler, listen, on } from '@capstan/extension'
import { type Json, type JsonObject, minutes, type ObjectKey, StatusError, systemClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { LocalMachineTemplate } from '@capstan/local'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { conditionText } from './core-env.ts'
import { createFrom } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

const demo = new URL('../../lab/demo/', import.meta.url)
const key: ObjectKey = { namespace: 'default', name: 'demo' }

let env: ManagementEnv
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  await env.close()
  for (const close of closing.splice(0)) await close()
})

const aCluster = (topology: object = {}) => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: { ...key },
  spec: { topology: { classRef: { name: 'demo' }, version: 'v1.36.0', ...topology } },
})

/** Creates a Cluster as kubectl does. Returns the warnings of the response, or the error. */
async function create(body: object, options: { fieldValidation?: 'Strict' | 'Ignore'; dryRun?: boolean } = {}) {
  const target = { group: Cluster.group, version: Cluster.version, plural: Cluster.plural, namespace: 'default' }
  const caller = { name: 'user', groups: ['system:masters'], agent: 'kubectl' }
  try {
    const { warnings } = await env.management.server.engine.execute(
      { verb: 'create', ...target, options, body: body as never },
      caller,
    )
    if (!options.dryRun) await env.settle()
    return { warnings }
  } catch (err) {
    if (!(err instanceof StatusError)) throw err
    const { code, reason, message, details } = err.status
    return { code, reason, message, fields: details?.causes?.map(({ field }) => field) }
  }
}

/** Upstream's message if the schema's rules were not evaluated. */
const rulesNotChecked =
  '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/** Yields copies of the object with one change each: `spec`, or one value inside `spec`, is removed or replaced. */
function* mistakes(whole: Json, parentPath: readonly string[] = []): Generator<[path: string, broken: Json]> {
  const parts = Array.isArray(whole) ? whole.map((value, i) => [String(i), value] as const) : Object.entries(whole as object)
  for (const [name, value] of parts as [string, Json][]) {
    const path = [...parentPath, name]
    if (parentPath.length === 0 && name !== 'spec') continue
    const replaced = (by: Json | undefined): Json =>
      Array.isArray(whole)
        ? whole.flatMap((one, i) => (String(i) !== name ? [one] : by === undefined ? [] : [by]))
        : { ...(whole as JsonObject), [name]: by as Json }
    for (const by of [undefined, null, 7, 'text', true, [], {}, [null], [7], { x: 1 }])
      yield [`${path.join('.')} = ${JSON.stringify(by)}`, replaced(by)]
    if (typeof value === 'object' && value !== null)
      for (const [where, inner] of mistakes(value, path)) yield [where, replaced(inner)]
  }
}

const topologyReconciled = async () => conditionText(await env.client.get(Cluster, key), 'TopologyReconciled')

describe('a Cluster', () => {
  beforeEach(async () => {
    env = await managementEnv({ runtime: scriptedRuntime({}) })
  })
  const withClass = async () => {
    await createFrom(env.client, new URL('class.yaml', demo))
    await env.settle()
  }

  describe('with unknown fields', () => {
    const typo = { ...aCluster({ verison: 'v1.36.1' }), sepc: {} }

    test('is rejected with strict validation, with an error that names every unknown field', async () => {
      expect(await create(typo, { fieldValidation: 'Strict' })).toMatchObject({
        code: 400,
        reason: 'BadRequest',
        message:
          'Cluster in version "v1beta2" cannot be handled as a Cluster: strict decoding error: unknown field "sepc", unknown field "spec.topology.verison"',
      })
    })

    test('is created without them by default, with a warning for each', async () => {
      await withClass()
      expect(await create(typo)).toEqual({ warnings: ['unknown field "sepc"', 'unknown field "spec.topology.verison"'] })
      expect(await env.client.get(Cluster, key)).not.toHaveProperty('spec.topology.verison')
    })

    test('is created without warnings when unknown fields are ignored', async () => {
      await withClass()
      expect(await create(typo, { fieldValidation: 'Ignore' })).toEqual({ warnings: [] })
    })
  })

  test.each<{ name: string; topology: object; message: string }>([
    {
      name: 'text for a number',
      topology: { controlPlane: { replicas: 'one' } },
      message:
        'spec.topology.controlPlane.replicas: Invalid value: "string": spec.topology.controlPlane.replicas in body must be of type integer: "string"',
    },
    {
      name: 'an object for a list',
      topology: { variables: { name: 'a' } },
      message:
        'spec.topology.variables: Invalid value: "object": spec.topology.variables in body must be of type array: "object"',
    },
    {
      name: 'no version',
      topology: { version: undefined },
      message: 'spec.topology.version: Required value',
    },
  ])('with a missing value or a value of the wrong type is rejected: $name', async ({ topology, message }) => {
    expect(await create(aCluster(topology))).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: `Cluster.cluster.x-k8s.io "demo" is invalid: [${message}, ${rulesNotChecked}]`,
      fields: [message.split(':')[0], '<nil>'],
    })
  })

  test('with one value removed or replaced is created, or rejected with code 400 or 422', async () => {
    await withClass()
    const workers = { machineDeployments: [{ class: 'worker', name: 'md', metadata: { labels: { a: 'b' } } }] }
    const whole = aCluster({ workers, controlPlane: { replicas: 1 }, variables: [{ name: 'workerNodeDelay', value: '1s' }] })
    const unexpected: string[] = []
    for (const [path, broken] of mistakes(whole)) {
      const result = await create(broken as object, { dryRun: true })
      const isExpected = 'warnings' in result || result.code === 400 || result.code === 422
      if (!isExpected) unexpected.push(`${path}: ${JSON.stringify(result)}`)
    }
    expect(unexpected).toEqual([])
  })

  test('with a missing class has a warning and a condition, and is reconciled when the class is created', async () => {
    expect(await create(aCluster())).toEqual({
      warnings: [
        'Cluster refers to ClusterClass default/demo, but this ClusterClass does not exist. Cluster topology has not been fully validated. The ClusterClass must be created to reconcile the Cluster',
      ],
    })
    expect(await topologyReconciled()).toBe(
      'False ReconcileFailed: failed to retrieve ClusterClass default/demo: ClusterClass.cluster.x-k8s.io "demo" not found',
    )
    await withClass()
    await env.advance(minutes(2))
    expect(await topologyReconciled()).toBe('True ReconcileSucceeded')
  })

  test('of a class with a missing template has a condition that names the template and the class', async () => {
    await withClass()
    await env.client.delete(LocalMachineTemplate, { namespace: 'default', name: 'demo-worker' })
    await env.settle()
    expect(await create(aCluster({ workers: { machineDeployments: [{ class: 'worker', name: 'md' }] } }))).toEqual({
      warnings: [],
    })
    expect(await topologyReconciled()).toBe(
      'False ReconcileFailed: error reading the ClusterClass: failed to get infrastructure machine template for ClusterClass default/demo, MachineDeployment class "worker": ' +
        'failed to retrieve LocalMachineTemplate default/demo-worker: failed to retrieve LocalMachineTemplate default/demo-worker: LocalMachineTemplate.infrastructure.capstan.dev "demo-worker" not found',
    )
  })

  test('of a class whose patch does not apply has a condition that names the patch and the path', async () => {
    await withClass()
    const path = '/spec/patches/0/definitions/0/jsonPatches/0/path'
    const operation = { op: 'replace' as const, path, value: '/spec/template/spec/nowhere/nodeDelay' }
    await env.client.patch(ClusterClass, key, { type: 'json', operations: [operation] })
    await env.settle()
    await create(aCluster({ workers: { machineDeployments: [{ class: 'worker', name: 'md' }] } }))
    expect(await topologyReconciled()).toMatch(
      /^False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: failed to apply patches for patch "workerNodeDelay": .*error applying json patch \(RFC6902\): .*\/spec\/template\/spec\/nowhere\/nodeDelay/,
    )
  })

  test.each<{ name: string; variables: object[]; message: string }>([
    {
      name: 'does not match the pattern',
      variables: [{ name: 'workerNodeDelay', value: 'soon' }],
      message: 'spec.topology.variables[workerNodeDelay].value: Invalid value: "\\"soon\\"": should match \'^[0-9]+(ms|s)$\'',
    },
    {
      name: 'has another type',
      variables: [{ name: 'workerNodeDelay', value: 300 }],
      message: 'spec.topology.variables[workerNodeDelay].value: Invalid value: "300": must be of type string: "integer"',
    },
    {
      name: 'is not defined by the class',
      variables: [{ name: 'speed', value: 'high' }],
      message: 'spec.topology.variables[speed]: Invalid value: "\\"high\\"": variable is not defined',
    },
  ])('with a variable that $name is rejected by admission', async ({ variables, message }) => {
    await withClass()
    expect(await create(aCluster({ variables }))).toMatchObject({
      code: 422,
      message: `Cluster.cluster.x-k8s.io "demo" is invalid: ${message}`,
      fields: [message.split(': ')[0]],
    })
  })
})

describe('a runtime extension', () => {
  let authority: CertifiedKey
  let serving: CertifiedKey
  beforeAll(async () => {
    authority = await makeAuthority(systemClock, { commonName: 'test' })
    serving = await issueCertificate(authority, systemClock, { commonName: 'x', usages: ['server'], ipAddresses: ['127.0.0.1'] })
  })

  const failingGate = extensionServer(
    defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => fail('the quota is used up'))] }),
  )
  const isDiscovery = (request: Request) => new URL(request.url).pathname.endsWith('/discovery')
  const discovered = async () => conditionText(await env.client.get(ExtensionConfig, { name: 'ext' }), 'Discovered')

  /** Registers an extension server with this handler in a management cluster. Returns the URL below which the hooks are served. */
  async function register(answer: FetchHandler, ca: CertifiedKey = authority): Promise<string> {
    const server = await listen(answer, serving)
    closing.push(() => server.close())
    env = await managementEnv({})
    await createFrom(env.client, new URL('class.yaml', demo))
    const clientConfig = { url: server.url, caBundle: Buffer.from(ca.certificate).toString('base64') }
    await env.client.create(ExtensionConfig, { metadata: { name: 'ext' }, spec: { clientConfig } })
    await env.settle()
    return `${server.url}/hooks.runtime.cluster.x-k8s.io/v1alpha1`
  }

  test('with a certificate of another authority is not discovered', async () => {
    const url = await register(failingGate, await makeAuthority(systemClock, { commonName: 'other' }))
    expect(await discovered()).toBe(
      `False NotDiscovered: UnknownAuthority: Error in discovery: failed to discover extension "ext": http call failed: Post "${url}/discovery?timeout=10s": ` +
        'tls: failed to verify certificate: x509: certificate signed by unknown authority',
    )
  })

  test.each<{ name: string; code: string; answer: FetchHandler; expectedText: RegExp }>([
    {
      name: 'HTML',
      code: 'Garbage',
      answer: async () => new Response('<html>hello</html>'),
      expectedText: /http call failed: failed to decode response: .*invalid character '<' looking for beginning of value$/,
    },
    {
      name: 'JSON of the wrong shape',
      code: 'Schema',
      answer: async () => Response.json({ status: 'Success', handlers: 'all of them' }),
      expectedText:
        /http call failed: failed to decode response: json: cannot unmarshal string into Go struct field .*handlers of type/,
    },
    {
      name: 'an HTTP error',
      code: 'NotFound',
      answer: async () => new Response('no route', { status: 404 }),
      expectedText: /http call failed: got response with status code 404 != 200: response : "no route"$/,
    },
    {
      name: 'a failure',
      code: 'ExtensionFailure',
      answer: async () => Response.json({ status: 'Failure', message: 'not today' }),
      expectedText: /got failure response with message: not today$/,
    },
    {
      name: 'an unknown status',
      code: 'UnknownStatus',
      answer: async () => Response.json({ status: 'Maybe' }),
      expectedText: /got unknown response status "Maybe"/,
    },
    {
      name: 'an unknown hook',
      code: 'UnknownHook',
      answer: async () =>
        Response.json({
          status: 'Success',
          handlers: [{ name: 'h', requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeLunch' } }],
        }),
      expectedText:
        /failed to validate discovery response: handler h requestHook hooks\.runtime\.cluster\.x-k8s\.io\/v1alpha1\/BeforeLunch is not in the Runtime SDK catalog$/,
    },
  ])('that responds to discovery with $name is not discovered', async ({ answer, code, expectedText }) => {
    await register(answer)
    expect(await discovered()).toContain(`False NotDiscovered: ${code}: Error in discovery: failed to discover extension "ext": `)
    expect(await discovered()).toMatch(expectedText)
  })

  test.each<{ name: string; answer: FetchHandler; expectedText: string }>([
    {
      name: 'garbage',
      answer: async () => new Response('\u0000\u0001'),
      expectedText: "http call failed: failed to decode response: invalid character '\\x00' looking for beginning of value",
    },
    {
      name: 'an incomplete response',
      answer: async () => new Response('{"status":"Succ'),
      expectedText: 'http call failed: failed to decode response: unexpected EOF',
    },
    { name: 'a failure', answer: failingGate, expectedText: 'got failure response with message: the quota is used up' },
    {
      name: 'an HTTP error',
      answer: async () => new Response('oops', { status: 500 }),
      expectedText: 'http call failed: got response with status code 500 != 200: response : "oops"',
    },
  ])('that responds to a hook with $name blocks the Cluster, which reports the error', async ({ answer, expectedText }) => {
    await register(async (request) => (isDiscovery(request) ? failingGate(request) : answer(request)))
    expect(await discovered()).toBe('True Discovered')
    await create(aCluster())
    expect(await topologyReconciled()).toMatch(
      /^False ReconcileFailed: .*failed to call extension handlers for hook "BeforeClusterCreate\.hooks\.runtime\.cluster\.x-k8s\.io": failed to call extension handler "gate\.ext": /,
    )
    expect(await topologyReconciled()).toContain(expectedText)
    const { spec } = await env.client.get(Cluster, key)
    expect(spec.infrastructureRef).toBeUndefined()
  })
})
