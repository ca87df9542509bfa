/** The cases of the suite `runtime-extension`. They run concurrently, each with objects of its own, and record observations to compare. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text as requestText } from 'node:stream/consumers'
import { Cluster, ClusterClass, ExtensionConfig, Machine, MachineDeployment, pendingHooks } from '@capstan/api'
import { fail, holdFor, proceedWith } from '@capstan/extension'
import { type Clock, getCondition, hours, isRecord, keyOf, messageOf, Secret, systemClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { freePorts } from '../processes/programs.ts'
import { upgradeHooks } from '../shared/hook-names.ts'
import { until } from '../shared/until.ts'
import { conditionText, CaseContext, type ContextOptions } from './case-context.ts'
import { servingCertificateOf, type ScriptedResponse, type RecordedCall, startExtensionHost } from './extension-host.ts'
import { StubCluster, StubControlPlane, stubGroup, StubMachine, StubMachineTemplate, templates } from './stub-providers.ts'

export interface CaseOptions extends ContextOptions {
  /** Certificate authority whose certificate is `ca`. It also signed the client certificate of the core under test. */
  readonly authority: CertifiedKey
}

export type Case = (options: CaseOptions) => Promise<void>

const httpResponse =
  (body: string | Uint8Array, status = 200, headers: { [name: string]: string } = {}) =>
  () =>
    new Response(body as never, { status, headers })

/**
 * Returns a case of a response to BeforeClusterCreate with which core does not create the objects of the Cluster. Records the condition
 * TopologyReconciled of the Cluster when its message matches `message`. `timeoutSeconds` is the timeout of the handler; the default is core's.
 */
const stoppingResponse =
  (name: string, response: () => ScriptedResponse | Promise<ScriptedResponse>, message: RegExp, timeoutSeconds?: number): Case =>
  async (options) => {
    const context = await CaseContext.open(name, options, timeoutSeconds === undefined ? {} : { timeoutSeconds })
    context.extension.setResponse('BeforeClusterCreate', response)
    await context.createClass()
    await context.createCluster()
    context.record('condition', await context.waitUntilReconciled(message))
  }

/** Returns a case of an invalid response to BeforeClusterCreate, which core ignores because of failure policy Ignore. */
const ignoredResponse =
  (name: string, response: () => ScriptedResponse): Case =>
  async (options) => {
    const context = await CaseContext.open(name, options, { failurePolicy: 'Ignore' })
    context.extension.setResponse('BeforeClusterCreate', response)
    await context.createClass()
    await context.createCluster()
    context.record('condition', await context.waitUntilReconciled('True'))
    context.record('objects', String((await context.waitFor(StubCluster, 'is created', (objects) => objects.length > 0)).length))
  }

/** A negative retryAfterSeconds, which is a bug of the extension. Core must not continue with the Cluster. */
const negative: Case = async (options) => {
  const context = await CaseContext.open('negative', options)
  context.extension.setResponse(
    'BeforeClusterCreate',
    httpResponse('{"status":"Success","retryAfterSeconds":-5,"message":"below zero"}'),
  )
  await context.createClass()
  await context.createCluster()
  context.record('condition', await context.waitUntilReconciled(/BeforeClusterCreate: below zero|Invalid value: -5/))
  const { items } = await context.client.list(StubCluster, { namespace: context.name })
  context.record('objects', String(items.length))
}

/**
 * The extension closes a kept-alive connection after it has read a request. Because the extension may have acted on the request, core must
 * not send the request again within the same call: the call fails.
 */
const closedAfterReading: Case = async (options) => {
  const context = await CaseContext.open('closed-after-reading', options)
  await options.client.delete(ExtensionConfig, { name: context.name })
  const failureReported = Promise.withResolvers<void>()
  context.extension.setResponse('BeforeClusterCreate', () => holdFor(60, 'held'))
  let requests = 0
  const { certificate: cert, key } = await servingCertificateOf(options.authority)
  const server = createServer({ cert, key })
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await requestText(request)
    if (request.url!.includes('beforeclustercreate')) {
      requests++
      if (requests === 1) return request.socket.destroy()
      // If core sends the request again within the same call, it gets no response in time.
      await failureReported.promise
    }
    const handled = await options.extension.handle(new Request(`https://x${request.url}`, { method: 'POST', body }))
    return response.writeHead(handled.status, Object.fromEntries(handled.headers)).end(await handled.text())
  }
  server.on('request', (request, response) => void respond(request, response).catch((err) => response.destroy(err)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    await context.createExtensionConfig('closing', { ...context.extension, url: `https://127.0.0.1:${port}/${context.name}` })
    await context.waitUntilDiscovered('closing', 'True')
    await context.createClass()
    await context.createCluster()
    context.record(
      'condition after the first request',
      (await context.waitUntilReconciled(callFailed)).replaceAll(String(port), 'PORT'),
    )
    failureReported.resolve()
    context.record('condition after the next call', await context.waitUntilReconciled(/held/))
    await options.client.delete(ExtensionConfig, { name: 'closing' })
  } finally {
    failureReported.resolve()
    server.close()
    server.closeAllConnections()
  }
}

/**
 * Returns a case of a response to GeneratePatches with the patches `items`. With the result `objects`, core applies the patches: records the
 * condition of the Cluster, the request and the patched objects. With `fails`, core rejects the response: records the condition of the Cluster
 * when its message matches `fails`.
 */
const patched =
  (name: string, items: (request: PatchRequest) => object[], result: { readonly fails: RegExp } | 'objects'): Case =>
  async (options) => {
    const context = await CaseContext.open(name, options)
    context.extension.setResponse('GeneratePatches', ({ request }) =>
      proceedWith({ items: items(request as unknown as PatchRequest) }),
    )
    const settings = { said: 'by the class', patch: 'p' }
    const external = { generatePatchesExtension: `generate-patches.${name}`, settings }
    await context.createClass({ patches: [{ name: 'p', external }] })
    await context.createCluster()
    if (result !== 'objects') return context.record('condition', await context.waitUntilReconciled(result.fails))
    context.record('condition', await context.waitUntilReconciled('True'))
    context.record('request', withoutIdentity(context.extension.calls.find(({ hook }) => hook === 'GeneratePatches')!.request))
    for (const kind of [StubCluster, StubControlPlane]) {
      const [object] = await context.waitFor(kind, 'is created', (objects) => objects.length > 0)
      const { labels, annotations } = object!.metadata
      context.record(kind.kind, [object!.spec, labels, annotations])
    }
  }

interface PatchRequest {
  readonly items: readonly { readonly uid: string; readonly object: { readonly kind: string } }[]
}

const uidOf = ({ items }: PatchRequest, kind: string): string => items.find(({ object }) => object.kind === kind)!.uid
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
const jsonPatch = (uid: string, ...operations: object[]) => ({ uid, patchType: 'JSONPatch', patch: base64(operations) })
const mergePatch = (uid: string, body: object) => ({ uid, patchType: 'JSONMergePatch', patch: base64(body) })
const region = { op: 'add', path: '/spec/template/spec/region', value: 'eu' }
const controlPlane = 'StubControlPlaneTemplate'

/** Every lifecycle hook that can block blocks until the condition of the Cluster names it, and then lets core continue. */
const life: Case = async (options) => {
  const context = await CaseContext.open('life', options)
  const hasHandlers = (config: ExtensionConfig) => config.metadata.name === 'life' && config.status?.handlers !== undefined
  // Upstream writes conditions and handlers one after the other.
  const configs = await until(context.client, ExtensionConfig, 'life has handlers', (all) => all.some(hasHandlers))
  context.record('handlers', configs.find(hasHandlers)!.status!.handlers)
  context.record('discovered', conditionText(getCondition(await context.waitUntilDiscovered('life', 'True'), 'Discovered')!))

  const block = (hook: string, seconds = 1) => context.extension.setResponse(hook, () => holdFor(seconds, `held by ${hook}`))
  const recordAndUnblock = async (hook: string) => {
    context.record(hook, await context.waitUntilReconciled(new RegExp(`${hook}: held by`)))
    context.extension.setResponse(hook, undefined)
  }
  await context.createClass()
  block('BeforeClusterCreate', 3)
  await context.createCluster('v1.35.0', { workers: oneDeployment })
  const [first = 0, second = 0] = await context.waitUntilCalled('BeforeClusterCreate', 2)
  context.record('BeforeClusterCreate is called again', second - first >= 2500 ? 'after the retry time' : `${second - first} ms`)
  context.record(
    'StubClusters while BeforeClusterCreate blocks',
    String((await context.client.list(StubCluster, { namespace: context.name })).items.length),
  )
  await recordAndUnblock('BeforeClusterCreate')
  await context.waitUntilCalled('AfterControlPlaneInitialized', 1)
  await context.waitUntilNoHookIsPending()

  for (const hook of upgradeHooks) block(hook)
  await context.client.patch(Cluster, context.key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.0' } } } })
  for (const hook of upgradeHooks) await recordAndUnblock(hook)
  context.record('upgraded', await context.waitUntilReconciled('True'))

  block('BeforeClusterDelete')
  await context.client.delete(Cluster, context.key)
  await recordAndUnblock('BeforeClusterDelete')
  await context.waitFor(Cluster, 'is gone', (clusters) => clusters.length === 0)
  const firstCalls = context.extension.calls.filter(
    ({ hook }, index, all) => all.findIndex((call) => call.hook === hook) === index,
  )
  for (const { hook, request } of firstCalls) {
    context.record(`request of ${hook}`, withoutIdentity(request))
    // Upstream can add AfterClusterUpgrade to the pending hooks again after removing it, so the request of BeforeClusterDelete may contain
    // it.
    if (isRecord(request['cluster']) && hook !== 'BeforeClusterDelete')
      context.record(
        `pending hooks in the request of ${hook}`,
        [...pendingHooks(request['cluster'] as unknown as Cluster)].sort(),
      )
  }
  context.record('order', firstCalls.map(({ hook }) => hook).join(' '))
}

/** Every lifecycle hook fails until the condition of the Cluster reports the failure. */
const failing: Case = async (options) => {
  const context = await CaseContext.open('failing', options)
  const recordFailure = async (hook: string) => {
    context.record(hook, await context.waitUntilReconciled(new RegExp(`failed by ${hook}$`)))
    context.extension.setResponse(hook, undefined)
  }
  for (const hook of lifecycleHooks) context.extension.setResponse(hook, () => fail(`failed by ${hook}`))
  await context.createClass()
  await context.createCluster('v1.35.0', { workers: oneDeployment })
  for (const hook of ['BeforeClusterCreate', 'AfterControlPlaneInitialized']) await recordFailure(hook)
  await context.waitUntilReconciled('True')
  await context.client.patch(Cluster, context.key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.0' } } } })
  for (const hook of upgradeHooks) await recordFailure(hook)
  await context.waitUntilReconciled('True')
  await context.client.delete(Cluster, context.key)
  await recordFailure('BeforeClusterDelete')
}

const lifecycleHooks = ['BeforeClusterCreate', 'AfterControlPlaneInitialized', ...upgradeHooks, 'BeforeClusterDelete']
/** Workers of a topology: a MachineDeployment without replicas, because Machines would need a workload cluster. */
const oneDeployment = { machineDeployments: [{ class: 'worker', name: 'md-0', replicas: 0 }] }

/** Two extensions block the same hook. Core calls the hook again after the shorter of the two retry times. */
const joined: Case = async (options) => {
  const context = await CaseContext.open('joined', options)
  const other = options.extension.extensionFor('joined-too')
  await context.createExtensionConfig('joined-too', other)
  await context.waitUntilDiscovered('joined-too', 'True')
  context.extension.setResponse('BeforeClusterCreate', () => holdFor(90, 'one waits'))
  other.setResponse('BeforeClusterCreate', () => holdFor(3, 'two waits'))
  await context.createClass()
  await context.createCluster()
  const text = await context.waitUntilReconciled(/one waits/)
  // Upstream calls the handlers in random order.
  context.record('condition', text.replace('two waits, one waits', 'one waits, two waits'))
  const [first = 0, second = 0] = await context.waitUntilCalled('BeforeClusterCreate', 2)
  const waited = second - first
  context.record('the next call', waited >= 2500 && waited < 60_000 ? 'after the shorter retry time' : `after ${waited} ms`)
}

/** Core continues with a Cluster after the removal of the extension that blocks the Cluster. */
const removed: Case = async (options) => {
  const context = await CaseContext.open('removed', options)
  context.extension.setResponse('BeforeClusterCreate', () => holdFor(600, 'for long'))
  await context.createClass()
  await context.createCluster()
  context.record('condition', await context.waitUntilReconciled(/for long/))
  await context.client.delete(ExtensionConfig, { name: context.name })
  // The removal does not make upstream's core reconcile the Cluster, so the case triggers a reconcile each second.
  const end = performance.now() + 120_000
  while ((await context.client.list(StubCluster, { namespace: context.name })).items.length === 0 && performance.now() < end) {
    await context.touch(Cluster, context.key)
    await new Promise((resolve) => void setTimeout(resolve, 1000))
  }
  context.record('condition afterwards', await context.waitUntilReconciled('True'))
}

/**
 * Changes the version of the topology while a hook blocks the upgrade. Records which versions core's webhook rejects, and which hooks core
 * calls when an annotation makes the webhook accept the version.
 */
const anotherVersion: Case = async (options) => {
  const context = await CaseContext.open('another-version', options)
  const setVersion = (version: string, { unchecked = false } = {}) => {
    const annotations = { 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check': unchecked ? '' : null }
    return context.client.patch(Cluster, context.key, {
      type: 'merge',
      body: { metadata: { annotations }, spec: { topology: { version } } },
    })
  }
  const recordRejected = async (hook: string, ...versions: string[]) => {
    for (const version of versions) {
      const text = await setVersion(version).then(() => 'accepted', messageOf)
      context.record(`while ${hook} blocks: to ${version}`, text.replace(/^.* denied the request: /, ''))
    }
  }
  const block = (hook: string) => context.extension.setResponse(hook, () => holdFor(2, `held by ${hook}`))
  const unblock = (hook: string) => context.extension.setResponse(hook, undefined)
  const waitUntilBlocked = (hook: string, version: string) =>
    context.waitUntilReconciled(new RegExp(`is upgrading to ${version.replaceAll('.', String.raw`\.`)}[^]*${hook}: held`))
  const calls = () =>
    context.extension.calls
      .filter(({ hook }) => upgradeHooks.includes(hook))
      .map(({ hook, request }) => `${hook} ${JSON.stringify(versionsOf({ request }))}`)
  /** Waits for a call with this version. Core may delay the call until the retry time of an earlier response. */
  const waitUntilCalled = async (hook: string, version: string) => {
    const end = performance.now() + 120_000
    while (!calls().some((call) => call.startsWith(hook) && call.includes(`"toKubernetesVersion":"${version}"`))) {
      if (performance.now() > end)
        throw new Error(`another-version: ${hook} was not called for ${version}: ${calls().join(', ')}`)
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
  }
  const recordCalls = (step: string) => {
    context.record(`calls ${step}`, [...new Set(calls())])
    context.extension.calls.length = 0
  }
  await context.createClass()
  await context.createCluster('v1.35.0', { workers: oneDeployment })
  await context.waitUntilNoHookIsPending()

  block('BeforeClusterUpgrade')
  await setVersion('v1.36.0')
  await waitUntilBlocked('BeforeClusterUpgrade', 'v1.36.0')
  await recordRejected('BeforeClusterUpgrade', 'v1.37.0', 'v1.35.0')
  await setVersion('v1.36.1', { unchecked: true })
  await waitUntilCalled('BeforeClusterUpgrade', 'v1.36.1')
  context.record('BeforeClusterUpgrade for another version', await waitUntilBlocked('BeforeClusterUpgrade', 'v1.36.1'))
  await setVersion('v1.35.0', { unchecked: true })
  context.record('back to the old version before BeforeClusterUpgrade', await context.waitUntilNoHookIsPending())
  unblock('BeforeClusterUpgrade')
  recordCalls('of BeforeClusterUpgrade')

  block('BeforeControlPlaneUpgrade')
  await setVersion('v1.36.0')
  await waitUntilBlocked('BeforeControlPlaneUpgrade', 'v1.36.0')
  await recordRejected('BeforeControlPlaneUpgrade', 'v1.37.0', 'v1.35.0')
  await setVersion('v1.36.1', { unchecked: true })
  await waitUntilCalled('BeforeControlPlaneUpgrade', 'v1.36.1')
  context.record('BeforeControlPlaneUpgrade for another version', await waitUntilBlocked('BeforeControlPlaneUpgrade', 'v1.36.1'))
  await setVersion('v1.35.0', { unchecked: true })
  context.record('back to the old version before BeforeControlPlaneUpgrade', await context.waitUntilNoHookIsPending())
  unblock('BeforeControlPlaneUpgrade')
  recordCalls('of BeforeControlPlaneUpgrade')

  block('AfterControlPlaneUpgrade')
  block('AfterClusterUpgrade')
  await setVersion('v1.36.0')
  await waitUntilBlocked('AfterControlPlaneUpgrade', 'v1.36.0')
  await recordRejected('AfterControlPlaneUpgrade', 'v1.37.0', 'v1.35.0')
  await setVersion('v1.37.0', { unchecked: true })
  unblock('AfterControlPlaneUpgrade')
  context.record('at the other version', await waitUntilBlocked('AfterClusterUpgrade', 'v1.37.0'))
  await recordRejected('AfterClusterUpgrade', 'v1.38.0', 'v1.36.0')
  await setVersion('v1.36.0', { unchecked: true })
  context.record('a lower version', await context.waitUntilReconciled(/must be greater/))
  await setVersion('v1.37.0', { unchecked: true })
  await waitUntilBlocked('AfterClusterUpgrade', 'v1.37.0')
  unblock('AfterClusterUpgrade')
  context.record('condition afterwards', await context.waitUntilNoHookIsPending())
  recordCalls('of the upgrade')
}

/** A discovery response with an unknown hook is rejected; the previously discovered handlers are kept. */
const unknownHook: Case = async (options) => {
  const context = await CaseContext.open('unknown-hook', options)
  const requestHook = { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeLunch' }
  const handlers = [
    { name: 'before-lunch', requestHook },
    { name: 'Bad Name', requestHook, timeoutSeconds: 31 },
  ]
  context.extension.setResponse('Discovery', () => Response.json({ status: 'Success', handlers }))
  await context.touch(ExtensionConfig, { name: context.name })
  const config = await context.waitUntilDiscovered(context.name, 'False')
  context.record('discovered', conditionText(getCondition(config, 'Discovered')!))
  context.record('handlers', String(config.status?.handlers?.length))
  context.extension.setResponse('BeforeClusterCreate', () => holdFor(600, 'still there'))
  await context.createClass()
  await context.createCluster()
  context.record('condition', await context.waitUntilReconciled(/still there/))
}

/** Returns a case of a response to Discovery with which the discovery fails. Records the Discovered condition. */
const failedDiscovery =
  (name: string, response: () => ScriptedResponse): Case =>
  async (options) => {
    const caseExtension = options.extension.extensionFor(name)
    caseExtension.setResponse('Discovery', response)
    await recordUndiscovered(options, name, caseExtension.url, options.ca)
  }

/** Records the Discovered condition for an extension that core cannot discover. */
async function recordUndiscovered(options: ContextOptions, name: string, url: string, ca: string): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64')
  await options.client.create(ExtensionConfig, {
    metadata: { name },
    // Selects no namespace, because Capstan's core fails all hooks of the Clusters that an undiscovered extension selects.
    spec: { clientConfig: { url, caBundle }, namespaceSelector: { matchLabels: { name: 'nobody' } } },
  })
  options.observed.set(`${name}: discovered`, await discoveredText(options, name))
  await options.client.delete(ExtensionConfig, { name })
}

/**
 * Records the Discovered condition for servers whose certificate core does not accept, for a CA bundle without a certificate, for a server
 * that rejects the client certificate of core, and for an unreachable server.
 */
const undiscoveredServers: Case = async (options) => {
  const authority = await makeAuthority(systemClock, { commonName: 'trusted' })
  const otherAuthority = await makeAuthority(systemClock, { commonName: 'other' })
  await using extension = await startExtensionHost(authority)
  const { url } = extension.extensionFor('undiscovered')
  await recordUndiscovered(options, 'unknown-authority', url, otherAuthority.certificate)
  await recordUndiscovered(options, 'no-authority', url, 'no certificate')
  const otherNames = await issueCertificate(authority, systemClock, {
    commonName: 'elsewhere',
    usages: ['server'],
    dnsNames: ['elsewhere.svc', 'here.svc'],
  })
  extension.listening.renew(otherNames)
  await recordUndiscovered(options, 'other-name', url, authority.certificate)
  extension.listening.renew(
    await issueCertificate(authority, systemClock, {
      commonName: 'there',
      usages: ['server'],
      ipAddresses: ['127.0.0.2', '::1'],
    }),
  )
  await recordUndiscovered(options, 'other-address', url, authority.certificate)
  const byName = url.replace('127.0.0.1', 'localhost')
  await recordUndiscovered(options, 'no-name', byName, authority.certificate)
  const longAgo: Clock = { ...systemClock, now: () => systemClock.now() - hours(24 * 4000) }
  extension.listening.renew(
    await issueCertificate(authority, longAgo, { commonName: 'past', usages: ['server'], ipAddresses: ['127.0.0.1'] }),
  )
  await recordUndiscovered(options, 'expired', url, authority.certificate)
  await using mutualExtension = await startExtensionHost(authority, otherAuthority.certificate)
  await recordUndiscovered(options, 'stranger', mutualExtension.extensionFor('stranger').url, authority.certificate)
  const [port] = await freePorts(1)
  await recordUndiscovered(options, 'no-server', `https://127.0.0.1:${port}`, authority.certificate)
}

/** A class that names a handler of an extension that does not exist. */
const unregistered: Case = async (options) => {
  const context = await CaseContext.open('unregistered', options)
  const external = { generatePatchesExtension: 'generate-patches.nobody' }
  await context.createClass({ patches: [{ name: 'p', external }] })
  await context.createCluster()
  context.record('condition', await context.waitUntilReconciled(/nobody/))
}

/** A class that names a handler of an extension whose selector selects only another namespace, and then a handler of another hook. */
const elsewhere: Case = async (options) => {
  const context = await CaseContext.open('elsewhere', options)
  await context.createExtensionConfig('of-others', options.extension.extensionFor('of-others'), { namespace: 'default' })
  await context.waitUntilDiscovered('of-others', 'True')
  const external = { generatePatchesExtension: 'generate-patches.of-others' }
  await context.createClass({ patches: [{ name: 'p', external }] })
  await context.createCluster()
  context.record('another namespace', await context.waitUntilReconciled(/of-others/))
  await context.client.patch(ClusterClass, context.key, {
    type: 'json',
    operations: [
      { op: 'replace', path: '/spec/patches/0/external/generatePatchesExtension', value: 'validate-topology.elsewhere' },
    ],
  })
  context.record('another hook', await context.waitUntilReconciled(/GroupHook/))
}

const discoveredText = async ({ client }: ContextOptions, name: string): Promise<string> => {
  const end = performance.now() + 120_000
  for (;;) {
    const condition = getCondition(await client.get(ExtensionConfig, { name }), 'Discovered')
    if (condition) return conditionText(condition)
    if (performance.now() > end) throw new Error(`${name} has no condition Discovered`)
    await new Promise((resolve) => void setTimeout(resolve, 200))
  }
}

/** The certificate authority of the extension is replaced, in the server and in the Secret from which core injects the CA bundle. */
const rotated: Case = async (options) => {
  const before = await makeAuthority(systemClock, { commonName: 'before' })
  const after = await makeAuthority(systemClock, { commonName: 'after' })
  await using extension = await startExtensionHost(before)
  const secret = { namespace: 'default', name: 'extension-ca' }
  const secretData = (authority: CertifiedKey) => ({ data: { 'ca.crt': Buffer.from(authority.certificate).toString('base64') } })
  await options.client.create(Secret, { metadata: secret, ...secretData(before) })
  const context = await CaseContext.open('rotated', options)
  await options.client.delete(ExtensionConfig, { name: context.name })
  const caseExtension = extension.extensionFor('rotated')
  const annotations = { 'runtime.cluster.x-k8s.io/inject-ca-from-secret': 'default/extension-ca' }
  await context.createExtensionConfig('rotated-ca', caseExtension, { annotations })
  await context.waitUntilDiscovered('rotated-ca', 'True')
  caseExtension.setResponse('BeforeClusterCreate', () => holdFor(1, 'held'))
  await context.createClass()
  await context.createCluster()
  context.record('held', await context.waitUntilReconciled(/BeforeClusterCreate: held/))
  extension.listening.renew(await servingCertificateOf(after))
  await options.client.patch(Secret, secret, { type: 'merge', body: secretData(after) })
  const bundle = Buffer.from(after.certificate).toString('base64')
  await waitForBundle(options, bundle)
  const calls = caseExtension.calls.length
  await context.waitUntilCalled(
    'BeforeClusterCreate',
    caseExtension.calls.filter(({ hook }) => hook === 'BeforeClusterCreate').length + 1,
    caseExtension,
  )
  context.record('calls continue', String(caseExtension.calls.length > calls))
  caseExtension.setResponse('BeforeClusterCreate', undefined)
  context.record('condition afterwards', await context.waitUntilReconciled('True'))
}

async function waitForBundle({ client }: ContextOptions, bundle: string): Promise<void> {
  const end = performance.now() + 120_000
  while ((await client.get(ExtensionConfig, { name: 'rotated-ca' })).spec.clientConfig.caBundle !== bundle) {
    if (performance.now() > end) throw new Error('the ExtensionConfig did not get the new CA bundle')
    await new Promise((resolve) => void setTimeout(resolve, 100))
  }
}

/** The server of two extensions stops. One extension has failure policy Fail, the other Ignore. */
const unreachable: Case = async (options) => {
  const authority = await makeAuthority(systemClock, { commonName: 'leaving' })
  const extension = await startExtensionHost(authority)
  const caseOptions = { ...options, extension, ca: authority.certificate }
  const failingContext = await CaseContext.open('unreachable', caseOptions)
  const ignoringContext = await CaseContext.open('unreachable-ignored', caseOptions, { failurePolicy: 'Ignore' })
  await extension[Symbol.asyncDispose]()
  for (const context of [failingContext, ignoringContext]) {
    await context.createClass()
    await context.createCluster()
  }
  failingContext.record('condition', await failingContext.waitUntilReconciled(/failed to call/))
  ignoringContext.record('condition', await ignoringContext.waitUntilReconciled('True'))
}

/** An extension that requires client certificates is discovered. */
const mutual: Case = async (options) => {
  const authority = await makeAuthority(systemClock, { commonName: 'mutual' })
  await using extension = await startExtensionHost(authority, options.authority.certificate)
  await CaseContext.open('mutual', { ...options, extension, ca: authority.certificate })
  options.observed.set('mutual: discovered', 'True')
}

/** Creates a Cluster of v1.34.0 whose class gets upgrade plans from the extension. Returns when the control plane is initialized. */
async function createPlannedCluster(options: ContextOptions, name: string): Promise<CaseContext> {
  const context = await CaseContext.open(name, options)
  await context.createClass({ upgrade: { external: { generateUpgradePlanExtension: `generate-upgrade-plan.${name}` } } })
  await context.createCluster('v1.34.0')
  await context.waitUntilReconciled('True')
  await context.waitUntilControlPlaneRuns()
  return context
}

/** Core rejects an upgrade plan that skips a minor version. */
const planned: Case = async (options) => {
  const context = await createPlannedCluster(options, 'planned')
  context.extension.setResponse('GenerateUpgradePlan', () => proceedWith({ controlPlaneUpgrades: [{ version: 'v1.36.0' }] }))
  await context.client.patch(Cluster, context.key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.0' } } } })
  context.record('a plan that skips a version', await context.waitUntilReconciled(/plan: item 0/))
  context.record('request', versionsOf(context.extension.calls.find(({ hook }) => hook === 'GenerateUpgradePlan')!))
}

/** The hook that returns the upgrade plan fails. */
const plannedFail: Case = async (options) => {
  const context = await createPlannedCluster(options, 'planned-fail')
  context.extension.setResponse('GenerateUpgradePlan', () => fail('no plan today'))
  await context.client.patch(Cluster, context.key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.0' } } } })
  context.record('condition', await context.waitUntilReconciled(/no plan today/))
}

/** Core follows an upgrade plan of two steps. */
const stepped: Case = async (options) => {
  const context = await createPlannedCluster(options, 'stepped')
  context.extension.setResponse('GenerateUpgradePlan', ({ request }) => {
    const steps = ['v1.35.7', 'v1.36.0'].filter((version) => version > String(request['fromControlPlaneKubernetesVersion']))
    return proceedWith({ controlPlaneUpgrades: steps.map((version) => ({ version })) })
  })
  await context.client.patch(Cluster, context.key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.0' } } } })
  await context.waitUntilCalled('AfterClusterUpgrade', 1)
  context.record('condition afterwards', await context.waitUntilReconciled('True'))
  const calls = context.extension.calls.filter(({ hook }) => upgradeHooks.includes(hook))
  // Core repeats a call if its cache has a stale copy of the Cluster.
  const order = calls.map(({ hook, request }) => `${hook} ${JSON.stringify(versionsOf({ request }))}`)
  context.record(
    'order',
    order.filter((call, index) => call !== order[index - 1]),
  )
}

/** Returns the versions in a request, sorted by field name. */
function versionsOf({ request }: Pick<RecordedCall, 'request'>): object {
  const { cluster: _, apiVersion: _version, kind: _kind, settings: _settings, ...versions } = request
  return Object.fromEntries(Object.entries(versions).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** An in-place update: core calls CanUpdateMachineSet, then UpdateMachine, which first blocks, then fails, then completes. */
const inPlace: Case = async (options) => {
  const context = await CaseContext.open('in-place', options)
  const { client, key } = context
  for (const kind of templates) await client.create(kind, { metadata: key, spec: { template: { spec: { size: 1 } } } })
  const machineTemplate = { providerID: 'stub://one', size: 1 }
  for (const [name, size] of [
    ['small', 1],
    ['large', 2],
  ] as const)
    await client.create(StubMachineTemplate, {
      metadata: { ...key, name },
      spec: { template: { spec: { ...machineTemplate, size } } },
    })
  await client.create(StubCluster, { metadata: key, spec: {} })
  const ref = (kind: string, name = key.name) => ({ apiGroup: stubGroup, kind, name })
  await client.create(Cluster, {
    metadata: key,
    spec: { infrastructureRef: ref('StubCluster'), controlPlaneEndpoint: { host: '127.0.0.1', port: 1 } },
  })
  await client.create(MachineDeployment, {
    metadata: key,
    spec: {
      clusterName: key.name,
      replicas: 1,
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
      selector: { matchLabels: { deployment: key.name } },
      template: {
        metadata: { labels: { deployment: key.name } },
        spec: {
          clusterName: key.name,
          version: 'v1.35.0',
          bootstrap: { configRef: ref('StubConfigTemplate') },
          infrastructureRef: ref('StubMachineTemplate', 'small'),
        },
      },
    },
  })
  const isProvisioned = ({ status }: Machine) =>
    status?.initialization?.bootstrapDataSecretCreated === true && status.initialization.infrastructureProvisioned === true
  const [machine] = await context.waitFor(Machine, 'has a Machine', (machines) => machines.some(isProvisioned))
  // No kubelet registers a Node, so the case sets nodeRef.
  await client.patch(
    Machine,
    keyOf(machine!),
    { type: 'merge', body: { status: { nodeRef: { name: 'none' } } } },
    { subresource: 'status' },
  )

  context.extension.setResponse('CanUpdateMachineSet', ({ request }) => {
    const { desired } = request as unknown as { desired: { infrastructureMachineTemplate: { spec: object } } }
    const patch = base64({ spec: desired.infrastructureMachineTemplate.spec })
    return proceedWith({ infrastructureMachineTemplatePatch: { patchType: 'JSONMergePatch', patch } })
  })
  context.extension.setResponse('UpdateMachine', () => holdFor(1, 'growing'))
  const large = { spec: { template: { spec: { infrastructureRef: ref('StubMachineTemplate', 'large') } } } }
  await client.patch(MachineDeployment, key, { type: 'merge', body: large })
  const recordUpdating = async (step: string, pattern: RegExp) => {
    const updatingOf = (candidate: Machine | undefined) => (candidate ? getCondition(candidate, 'Updating') : undefined)
    const [updatingMachine] = await context.waitFor(Machine, `is updated: ${step}`, ([candidate]) =>
      pattern.test(conditionText(updatingOf(candidate) ?? { status: '' })),
    )
    context.record(step, conditionText(updatingOf(updatingMachine)!))
    return updatingMachine!
  }
  await recordUpdating('while it is updated', /growing/)
  context.extension.setResponse('UpdateMachine', () => fail('too large'))
  await recordUpdating('when it fails', /Failed/)
  context.extension.setResponse('UpdateMachine', undefined)
  const updated = await recordUpdating('after the update', /^False/)
  context.record('the Machine', updated.metadata.uid === machine!.metadata.uid ? 'is the same' : 'is another')
  const [grown] = await context.waitFor(StubMachine, 'has grown', ([stubMachine]) => stubMachine?.spec?.['size'] === 2)
  context.record('the StubMachine', grown!.spec)
  for (const hook of ['CanUpdateMachineSet', 'UpdateMachine']) {
    const { request } = context.extension.calls.find((call) => call.hook === hook)!
    context.record(`request of ${hook}`, withoutIdentity(request))
  }
}

/**
 * Returns a copy of a request in which values that differ in every cluster, such as identities and times, are replaced by their types.
 * Omits finalizers, annotations in which core records its progress, and empty annotations.
 */
function withoutIdentity(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutIdentity)
  if (!isRecord(value)) return value
  const keys = Object.keys(value).filter((key) => !omittedFields.test(key))
  const members = keys.map((key) => [key, identity.test(key) ? typeof value[key] : withoutIdentity(value[key])] as const)
  return Object.fromEntries(members.filter(([key, member]) => key !== 'annotations' || Object.keys(member as object).length > 0))
}

const identity = /^(uid|resourceVersion|generation|creationTimestamp|deletionTimestamp|host|port|machine-template-hash)$/
const omittedFields =
  /^(finalizers|runtime\.cluster\.x-k8s\.io\/pending-hooks|topology\.internal\.cluster\.x-k8s\.io\/upgrade-step)$/

/** The extension declares variables, and then rejects a Cluster that sets one of them. */
const variables: Case = async (options) => {
  const context = await CaseContext.open('variables', options)
  const nested = { type: 'object', properties: { name: { type: 'string', maxLength: 9 } }, required: ['name'] }
  const declared = [
    { name: 'region', required: true, schema: { openAPIV3Schema: { type: 'string', enum: ['eu', 'us'] } } },
    { name: 'nested', required: false, schema: { openAPIV3Schema: nested } },
  ]
  context.extension.setResponse('DiscoverVariables', () => proceedWith({ variables: declared }))
  context.extension.setResponse('ValidateTopology', () => fail('the region is full'))
  const external = {
    generatePatchesExtension: `generate-patches.${context.name}`,
    validateTopologyExtension: `validate-topology.${context.name}`,
    discoverVariablesExtension: `discover-variables.${context.name}`,
  }
  await context.createClass({ patches: [{ name: 'p', external }] })
  const [clusterClass] = await context.waitFor(ClusterClass, 'has variables', ([item]) => item?.status?.variables !== undefined)
  context.record('variables', clusterClass!.status!.variables)
  await context.createCluster('v1.35.0', { variables: [{ name: 'region', value: 'eu' }] })
  context.record('condition', await context.waitUntilReconciled(/region is full/))
  const { request } = context.extension.calls.find(({ hook }) => hook === 'ValidateTopology')!
  const { variables: sentVariables, items } = request as { variables: { name: string }[]; items: { object: { kind: string } }[] }
  const byText = (a: string, b: string) => (a < b ? -1 : 1)
  context.record(
    'request',
    withoutIdentity({
      ...request,
      variables: sentVariables.toSorted((a, b) => byText(a.name, b.name)),
      items: items.toSorted((a, b) => byText(a.object.kind, b.object.kind)),
    }),
  )
}

/** The hook that declares variables fails. */
const variablesFail: Case = async (options) => {
  const context = await CaseContext.open('variables-fail', options)
  context.extension.setResponse('DiscoverVariables', () => fail('no variables today'))
  const external = {
    generatePatchesExtension: `generate-patches.${context.name}`,
    discoverVariablesExtension: `discover-variables.${context.name}`,
  }
  await context.createClass({ patches: [{ name: 'p', external }] })
  const variablesReadyOf = (item: ClusterClass | undefined) => (item ? getCondition(item, 'VariablesReady') : undefined)
  const [clusterClass] = await context.waitFor(ClusterClass, 'has failed', ([item]) => variablesReadyOf(item)?.status === 'False')
  context.record('condition', conditionText(variablesReadyOf(clusterClass)!))
}

const callFailed = /failed to call extension handler/

/** All cases by name. `--only` selects cases by parts of these names. */
export const cases: { readonly [name: string]: Case } = {
  life,
  failing,
  joined,
  removed,
  unknownHook,
  rotated,
  unreachable,
  inPlace,
  planned,
  plannedFail,
  stepped,
  variables,
  variablesFail,
  mutual,
  undiscoveredServers,
  unregistered,
  elsewhere,
  anotherVersion,
  negative,
  closedAfterReading,
  failure: stoppingResponse('failure', () => fail('not today'), /not today/),
  status500: stoppingResponse('status-500', httpResponse('it broke\n', 500), callFailed),
  status301: stoppingResponse('status-301', httpResponse('', 301, { location: 'https://127.0.0.1:1/' }), callFailed),
  status404: stoppingResponse('status-404', httpResponse('404 page not found\n', 404), callFailed),
  longPage: stoppingResponse('long-page', httpResponse('é'.repeat(400), 503), callFailed),
  empty: stoppingResponse('empty', httpResponse(''), callFailed),
  truncated: stoppingResponse('truncated', httpResponse('{"status":"Succ'), callFailed),
  garbage: stoppingResponse('garbage', httpResponse('<html>'), callFailed),
  byteOrderMark: stoppingResponse('byte-order-mark', httpResponse('\ufeff{"status":"Success"}'), callFailed),
  float: stoppingResponse('float', httpResponse('{"status":"Success","retryAfterSeconds":5.0}'), callFailed),
  quoted: stoppingResponse('quoted', httpResponse('{"status":"Success","retryAfterSeconds":"5"}'), callFailed),
  noStatus: stoppingResponse('no-status', httpResponse('{}'), callFailed),
  otherStatus: stoppingResponse('other-status', httpResponse('{"status":"Perhaps","message":"who knows"}'), callFailed),
  upperCase: stoppingResponse(
    'upper-case',
    httpResponse('{"STATUS":"Success","Message":"in capitals","RETRYAFTERSECONDS":60}'),
    /in capitals/,
  ),
  trailing: stoppingResponse(
    'trailing',
    httpResponse('{"status":"Success","retryAfterSeconds":60,"message":"and more"} <html>'),
    /and more/,
  ),
  slow: stoppingResponse(
    'slow',
    () => new Promise((resolve) => void setTimeout(() => resolve(fail('late')), 4000)),
    callFailed,
    1,
  ),
  ignoredStatus: ignoredResponse('ignored-status', httpResponse('it broke\n', 500)),
  ignoredGarbage: ignoredResponse('ignored-garbage', httpResponse('<html>')),
  failureIsNotIgnored: async (options) => {
    const context = await CaseContext.open('ignored-failure', options, { failurePolicy: 'Ignore' })
    context.extension.setResponse('BeforeClusterCreate', () => fail('not even so'))
    await context.createClass()
    await context.createCluster()
    context.record('condition', await context.waitUntilReconciled(/not even so/))
  },
  jsonPatch: patched(
    'json-patch',
    (request) => [
      jsonPatch(uidOf(request, controlPlane), region, { op: 'replace', path: '/spec/template/spec/made', value: 'by the patch' }),
      jsonPatch(uidOf(request, controlPlane), { op: 'add', path: '/spec/template/spec/second', value: [1, { a: null }] }),
    ],
    'objects',
  ),
  mergePatch: patched(
    'merge-patch',
    (request) => [
      mergePatch(uidOf(request, 'StubClusterTemplate'), { spec: { template: { spec: { region: 'eu', made: null } } } }),
    ],
    'objects',
  ),
  emptyPatch: patched(
    'empty-patch',
    (request) => [jsonPatch(uidOf(request, controlPlane)), mergePatch(uidOf(request, 'StubClusterTemplate'), {})],
    'objects',
  ),
  preservedFields: patched(
    'preserved-fields',
    (request) => [
      mergePatch(uidOf(request, controlPlane), {
        metadata: { name: 'other', labels: { mine: 'yes' } },
        spec: { template: { spec: { version: 'v9.9.9', region: 'eu' }, metadata: { annotations: { mine: 'too' } } } },
      }),
    ],
    'objects',
  ),
  unknownUid: patched('unknown-uid', () => [jsonPatch('nobody', region)], { fails: /p/ }),
  unknownType: patched(
    'unknown-type',
    (request) => [{ ...jsonPatch(uidOf(request, controlPlane), region), patchType: 'YAMLPatch' }],
    {
      fails: /p/,
    },
  ),
  missingPath: patched(
    'missing-path',
    (request) => [jsonPatch(uidOf(request, controlPlane), { op: 'remove', path: '/spec/template/spec/absent' })],
    { fails: /p/ },
  ),
  undiscoveredFailure: failedDiscovery('undiscovered-failure', httpResponse('{"status":"Failure","message":"not open yet"}')),
  undiscoveredStatus: failedDiscovery('undiscovered-status', httpResponse('it broke\n', 500)),
  undiscoveredGarbage: failedDiscovery('undiscovered-garbage', httpResponse('<html>')),
}
