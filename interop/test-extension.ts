/**
 * Runs upstream's own test extension, in Go, with Capstan's core. Core discovers the extension, and calls every lifecycle hook from the
 * creation of a Cluster to its deletion, and UpdateMachine and CanUpdateMachineSet for in-place updates. The suite also calls
 * CanUpdateMachine itself. One hook blocks an upgrade until a ConfigMap allows the upgrade. The extension records its
 * responses to lifecycle hooks in this ConfigMap.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Cluster, ExtensionConfig } from '@capstan/api'
import { readTape } from '@capstan/extension'
import { type Client, ConfigMap, getCondition, isTrue } from '@capstan/kube'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, Checks, runCapstan, startCapstan } from './processes/capstan-process.ts'
import { createFromDemo } from './manager.ts'
import { answers, freePorts, Programs, ready } from './processes/programs.ts'
import type { Suite } from './shared/suite.ts'
import { checkCoverage, checkUpdate, rejection } from './test-extension/in-place.ts'
import { updateMachineSet } from './test-extension/machine-set.ts'
import { toolPaths } from './shared/tools.ts'
import { until } from './shared/until.ts'
import { servingCertificate } from './upstream/managers.ts'

const name = 'test-extension'
const key = { namespace: 'default', name: 'demo' }
const inDefault = { namespace: 'default' }
/** ConfigMap in which the extension records its responses to lifecycle hooks, and reads the responses that it must send. */
const responsesKey = { namespace: 'default', name: `demo-${name}-test-extension-hookresponses` }

export const testExtensionSuite: Suite = {
  shows: "upstream's test extension, called by Capstan's core",
  ci: true,
  tools: ['test-extension'],
  ownNetwork: true,
  async run() {
    const checks = new Checks()
    const [path] = await toolPaths('test-extension')
    await using apiServer = await startCapstanApiServer({ progress: console.log })
    await using programs = new Programs('extension')
    const [webhook = 0, health = 0, diagnostics = 0] = await freePorts(3)
    const extension = programs.start(
      name,
      path,
      [
        '--leader-elect=false',
        `--webhook-port=${webhook}`,
        `--webhook-cert-dir=${await servingCertificate(apiServer, programs.folder)}`,
        `--health-addr=127.0.0.1:${health}`,
        `--diagnostics-address=127.0.0.1:${diagnostics}`,
        '--insecure-diagnostics=true',
      ],
      { env: { ...process.env, KUBECONFIG: apiServer.kubeconfig }, disposable: true },
    )
    await ready(extension, () => answers(`http://127.0.0.1:${health}/readyz`))
    console.log('test-extension ready')
    const flags = [
      '--kubeconfig',
      apiServer.kubeconfig,
      '--data',
      join(apiServer.folder, 'manager'),
      '--diagnostics-port',
      '0',
      '--webhook-port',
      '0',
    ]
    const tape = join(apiServer.folder, 'calls.tape')
    const manager = await startCapstan(['manager', ...flags, '--log-level', 'error', '--record-hooks', tape], /Manager ready/)
    try {
      await runLifecycle(apiServer.client(), `https://127.0.0.1:${webhook}`, apiServer.ca, checks)
    } catch (err) {
      console.log(`--- ${name}\n${extension.tail()}`)
      throw err
    } finally {
      await stop(manager, checks)
    }
    await checkTape(tape, { url: `https://127.0.0.1:${webhook}`, ca: apiServer.ca, folder: apiServer.folder }, checks)
    return checks
  },
}

async function runLifecycle(client: Client, url: string, ca: string, checks: Checks): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64')
  await client.create(ExtensionConfig, {
    metadata: { name },
    spec: {
      clientConfig: { url, caBundle },
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } },
      // In CanUpdateMachineSet and CanUpdateMachine requests, the extension can decode only objects of the kubeadm and Docker providers.
      // With `disableInPlaceUpdates` it responds to them without patches, so Machines are replaced.
      settings: { extensionConfigName: name, defaultAllHandlersToBlocking: 'false', disableInPlaceUpdates: 'true' },
    },
  })
  const [config] = await until(client, ExtensionConfig, 'the extension is discovered', ([extensionConfig]) =>
    isTrue(extensionConfig!, 'Discovered'),
  )
  const handlers = config!.status?.handlers ?? []
  checks.check(
    'all 16 handlers are discovered',
    handlers.length === 16,
    handlers.map((handler) => handler.name),
  )

  await createFromDemo(client, 'class.yaml')
  await Promise.all([runThroughHooks(client, { url, caBundle }, checks), updateMachineSet(client, { url, caBundle }, checks)])
}

async function runThroughHooks(client: Client, server: { url: string; caBundle: string }, checks: Checks): Promise<void> {
  await createFromDemo(client, 'cluster.yaml')
  await until(client, Cluster, 'demo Available', ([cluster]) => cluster !== undefined && isTrue(cluster, 'Available'), inDefault)
  console.log('cluster Available')

  const blockingResponse = { Status: 'Success', RetryAfterSeconds: 1, Message: 'held by the test' }
  await setResponse(client, 'BeforeClusterUpgrade-v1.36.0-v1.36.1', blockingResponse)
  await client.patch(Cluster, key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.1' } } } })
  const message = (cluster: Cluster) => getCondition(cluster, 'TopologyReconciled')?.message ?? ''
  const isHeld = (cluster: Cluster) => message(cluster).includes('BeforeClusterUpgrade: held by the test')
  await until(client, Cluster, 'the hook blocks the upgrade', ([cluster]) => cluster !== undefined && isHeld(cluster), inDefault)
  checks.check('a hook blocks an upgrade, and the Cluster reports it', true)
  console.log('upgrade blocked')

  await checkCoverage(server.url, server.caBundle, checks)
  await checkUpdate(client, name, checks)
  console.log('updated in place')
  await setResponse(client, 'BeforeClusterUpgrade-v1.36.0-v1.36.1', { Status: 'Success', RetryAfterSeconds: 0 })
  await until(client, ConfigMap, 'the upgrade is complete', (maps) => lastResponses(maps).has('AfterClusterUpgrade-v1.36.1'))
  console.log('upgraded')
  await client.delete(Cluster, key)
  await until(client, Cluster, 'demo is gone', (clusters) => clusters.length === 0, inDefault)

  const responses = lastResponses([await client.get(ConfigMap, responsesKey)])
  for (const [hook, response] of hooks)
    checks.check(`${hook} was called, and the last response is the expected one`, responses.get(hook) === response, [
      ...responses,
    ])
  const unexpected = [...responses.keys()].filter((hook) => !hooks.has(hook))
  checks.check('no other hook was called', unexpected.length === 0, unexpected)
}

/** Checks the tape (the recording of all hook calls) that the manager has written, and replays its Discovery requests to the extension. */
async function checkTape(file: string, server: { url: string; ca: string; folder: string }, checks: Checks): Promise<void> {
  const { calls, isLastLineIncomplete, stopped } = await readTape(file)
  checks.check('the tape is complete', !isLastLineIncomplete && stopped === undefined, stopped)
  const taped = new Set(calls.map(({ hook }) => hook))
  const missing = [...hooks.keys()].map((name) => name.split('-')[0]!).filter((hook) => !taped.has(hook))
  checks.check('every hook of the Cluster is on the tape', missing.length === 0, missing)
  const upgradeResponses = calls.filter(({ hook }) => hook === 'BeforeClusterUpgrade').map(({ response }) => response)
  const waits = upgradeResponses.map((response) => (response as { retryAfterSeconds?: number }).retryAfterSeconds)
  checks.check(
    'the tape has the blocking and the later response of the upgrade hook',
    waits[0] === 1 && waits.at(-1) === 0,
    waits,
  )
  const caFile = join(server.folder, 'extension-ca.crt')
  await writeFile(caFile, server.ca)
  // Only Discovery: responses to the other hooks depend on state that has changed since the recording, such as the ConfigMap.
  const replayed = await runCapstan(['hooks', 'replay', file, '--url', server.url, '--ca', caFile, '--hook', 'Discovery'])
  checks.check('the responses to the recorded Discovery requests are those on the tape', replayed.code === 0, replayed)
}

const allowed = 'Status: Success, RetryAfterSeconds: 0'
/**
 * Hooks that core calls from the creation of the Cluster to its deletion, each with the last response that the extension must have
 * recorded.
 */
const hooks: ReadonlyMap<string, string> = new Map([
  ['BeforeClusterCreate', allowed],
  ['AfterControlPlaneInitialized', 'Success'],
  ['BeforeClusterUpgrade-v1.36.0-v1.36.1', allowed],
  ['BeforeControlPlaneUpgrade-v1.36.0-v1.36.1', allowed],
  ['AfterControlPlaneUpgrade-v1.36.1', allowed],
  ['BeforeWorkersUpgrade-v1.36.0-v1.36.1', allowed],
  ['AfterWorkersUpgrade-v1.36.1', allowed],
  ['AfterClusterUpgrade-v1.36.1', allowed],
  ['BeforeClusterDelete', allowed],
])

/** Sets the response of the extension to a hook, in the ConfigMap of the extension. */
const setResponse = (client: Client, hook: string, response: object): Promise<ConfigMap> =>
  client.patch(ConfigMap, responsesKey, {
    type: 'merge',
    body: { data: { [`${hook}-preloadedResponse`]: JSON.stringify(response) } },
  })

/** Returns the last recorded response of the extension to each lifecycle hook. */
function lastResponses(maps: readonly ConfigMap[]): Map<string, string> {
  const data = maps.find(({ metadata }) => metadata.name === responsesKey.name)?.data ?? {}
  const suffix = '-actualResponseStatus'
  return new Map(
    Object.entries(data)
      .filter(([field]) => field.endsWith(suffix))
      .map(([field, response]) => [field.slice(0, -suffix.length), response]),
  )
}

/** Stops the manager, and checks that its log contains the errors of the failed UpdateMachine, and no others. */
async function stop(manager: CapstanProcess, checks: Checks): Promise<void> {
  const stopped = await manager.stop()
  const lines = stopped.stderr.split('\n').filter((line) => line !== '')
  const unexpectedLines = lines.filter((line) => !line.includes(rejection))
  checks.check('the failure message of the extension is in the log', lines.length > unexpectedLines.length, lines)
  checks.check('the manager stops cleanly', stopped.code === 0 && unexpectedLines.length === 0, { ...stopped, unexpectedLines })
}
