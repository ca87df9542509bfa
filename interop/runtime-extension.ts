/**
 * Runs an extension in TypeScript with a handler for every hook. Upstream's unchanged core manager calls the extension, first on a server
 * of `capstan apiserver`, then on a real API server. After that, Capstan's core calls it. The requests, conditions and objects that the
 * cases record must be the same, except for the differences that `runtime-extension/compare-observations.ts` explains.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, systemClock } from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { Checks, startCapstan } from './processes/capstan-process.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { cases } from './runtime-extension/cases.ts'
import { CaseContext, type ContextOptions, type Observations } from './runtime-extension/case-context.ts'
import { startExtensionHost } from './runtime-extension/extension-host.ts'
import { runStubProviders, stubDefinitions } from './runtime-extension/stub-providers.ts'
import { compareObservations } from './runtime-extension/compare-observations.ts'
import { namesWith, type Suite, type SuiteOptions } from './shared/suite.ts'
import { moduleFolder } from './shared/tools.ts'
import { components, install, managersUser, startManagers } from './upstream/managers.ts'

const core = components.filter(({ tool }) => tool === 'capi-core')

export const runtimeExtensionSuite: Suite = {
  shows: "an extension in TypeScript, called by upstream's core and by Capstan's: the same requests, conditions and objects",
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'capi-core'],
  ownNetwork: true,
  async prepare() {
    for (const { tool, module } of core) await moduleFolder(tool, module)
  },
  async run({ only }: SuiteOptions = {}) {
    const checks = new Checks()
    const names = only === undefined ? Object.keys(cases) : namesWith(Object.keys(cases), only)
    const onCapstan = await observeUpstreamCore(startCapstanApiServer, names, checks)
    const onKubernetes = await observeUpstreamCore(startRealApiServer, names, checks)
    const ours = await observeOurCore(names, checks)
    compareObservations({ onCapstan, onKubernetes, ours }, checks, { allCasesRan: only === undefined })
    return checks
  },
}

type Start = typeof startCapstanApiServer | typeof startRealApiServer

async function observeUpstreamCore(start: Start, names: readonly string[], checks: Checks): Promise<Observations> {
  await using apiServer = await start({ users: [managersUser] })
  const certificateFlags = await clientCertificateFlags(apiServer)
  await using managers = await startManagers(apiServer, () => {}, {
    components: core,
    gates: 'ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true',
    flags: certificateFlags,
  })
  return await observeAll(`upstream's core on ${apiServer.name}`, apiServer, names, checks, () =>
    managers.programs.map((program) => program.tail(40)).join('\n'),
  )
}

async function observeOurCore(names: readonly string[], checks: Checks): Promise<Observations> {
  await using apiServer = await startCapstanApiServer()
  const flags = [
    // Webhooks are needed, because some cases write invalid objects, which must be rejected.
    '--webhook-port',
    '0',
    '--kubeconfig',
    apiServer.kubeconfig,
    '--data',
    join(apiServer.folder, 'manager'),
    '--diagnostics-port',
    '0',
  ]
  const certificateFlags = await clientCertificateFlags(apiServer)
  const manager = await startCapstan(['manager', ...flags, ...certificateFlags, '--log-level', 'error'], /Manager ready/)
  try {
    return await observeAll('our core', apiServer, names, checks, () => '')
  } finally {
    await manager.kill()
  }
}

/** Creates a client certificate for calls to extensions. Returns the flags of core that configure it, which both cores have. */
async function clientCertificateFlags({ authority, folder }: RunningApiServer): Promise<string[]> {
  const { certificate, key } = await issueCertificate(authority, systemClock, { commonName: 'core', usages: ['client'] })
  const files = { certificate: join(folder, 'extension-client.crt'), key: join(folder, 'extension-client.key') }
  writeFileSync(files.certificate, certificate)
  writeFileSync(files.key, key, { mode: 0o600 })
  return [`--runtime-extension-client-cert-file=${files.certificate}`, `--runtime-extension-client-key-file=${files.key}`]
}

/**
 * Runs the cases at the same time against one core, and returns their observations. `log` returns lines of the core's log, which are printed
 * if a case fails.
 */
async function observeAll(
  coreName: string,
  apiServer: RunningApiServer,
  names: readonly string[],
  checks: Checks,
  log: () => string,
): Promise<Observations> {
  const startedAt = performance.now()
  const client: Client = apiServer.client()
  await install(client, stubDefinitions)
  const ended = new AbortController()
  const providers = runStubProviders(client, ended.signal)
  const observed: Observations = new Map()
  await using extension = await startExtensionHost(apiServer.authority)
  const options = { client, extension, ca: apiServer.ca, observed, authority: apiServer.authority }
  await waitUntilExtensionsAreCalled(options)
  const results = await Promise.allSettled(names.map((name) => cases[name]!(options)))
  results.forEach((result, index) => {
    const name = names[index]!
    checks.check(
      `${coreName}: ${name} completes`,
      result.status === 'fulfilled',
      result.status === 'rejected' && String(result.reason),
    )
  })
  ended.abort()
  await providers
  console.log(`${coreName}: ${names.length} cases in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  if (results.some(({ status }) => status === 'rejected')) console.log(log())
  return observed
}

/**
 * Waits until core calls an extension. Upstream's core calls none until it has discovered every ExtensionConfig that exists when it starts.
 * Some cases create ExtensionConfigs that cannot be discovered, so the cases begin only afterwards.
 */
async function waitUntilExtensionsAreCalled(options: ContextOptions): Promise<void> {
  const context = await CaseContext.open('first', options)
  await context.createClass()
  await context.createCluster()
  await context.waitUntilCalled('BeforeClusterCreate', 1)
}
