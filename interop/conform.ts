/**
 * Runs `capstan conform` as a process, once with each of: the local provider with Capstan's core; an IPAM provider; upstream's
 * in-memory infrastructure, kubeadm bootstrap and kubeadm control plane with upstream's core.
 */
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { coreKinds } from '@capstan/api'
import { createManager, installKinds } from '@capstan/controller'
import { Namespace, silent, systemClock, systemRandom } from '@capstan/kube'
import { poolProvider } from '@capstan/testing'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, Checks, startCapstan } from './processes/capstan-process.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'
import { moduleFolder } from './shared/tools.ts'
import { components, managersUser, startManagers } from './upstream/managers.ts'

const parts = ['local', 'ipam', 'upstream', 'mutants']

export const conformSuite: Suite = {
  shows: "capstan conform on the local provider, on an IPAM provider and on upstream's providers",
  ci: true,
  tools: components.map(({ tool }) => tool),
  minutes: 25,
  ownNetwork: true,
  async prepare() {
    for (const { tool, module } of components) await moduleFolder(tool, module)
  },
  async run({ only, all = false } = {}) {
    const checks = new Checks()
    const isChosen = (part: string) => only === undefined || part.includes(only)
    if (!parts.some(isChosen)) throw new Error(`--only ${only}: expected a part of ${parts.join(', ')}`)
    // A mutant is a provider that violates one rule on purpose. The tests check that the violation is detected, except for a few mutants
    // that are declared as not detected. All mutants take ten minutes of CPU time. In `npm test`, conform runs on one mutant of each rule.
    if (only === undefined && !all)
      console.log('mutants of the local and the IPAM provider: not run without --all or --only mutants')
    if (all || (only !== undefined && isChosen('mutants'))) {
      const tests = await runTests(['packages/conformance/src/mutants'], { CAPSTAN_MUTANTS: '1' })
      for (const [name, status] of tests) checks.check(name, status === 'passed', status)
    }
    const onOwnProviders = async () => {
      if (isChosen('local')) await onLocalProvider(checks)
      if (isChosen('ipam')) await onPoolProvider(checks)
    }
    // Concurrently, because upstream's managers spend most of the time waiting.
    await Promise.all([onOwnProviders(), isChosen('upstream') ? onUpstream(checks) : undefined])
    return checks
  },
}

interface Report {
  readonly results: readonly {
    readonly rule: string
    readonly verdict: string
    readonly reason?: string
    readonly evidence: readonly { readonly holds: boolean }[]
  }[]
  readonly scenarios: readonly { readonly name: string; readonly stopped?: string }[]
  readonly leftovers: readonly string[]
}

async function onLocalProvider(checks: Checks): Promise<void> {
  await using apiServer = await startCapstanApiServer({ progress: console.log })
  // The provider watches Clusters and Machines, and becomes ready only when these kinds exist.
  await installKinds(apiServer.client(), coreKinds, { clock: systemClock, random: systemRandom })
  const flags = ['--kubeconfig', apiServer.kubeconfig, '--diagnostics-port', '0', '--log-level', 'error', '--providers', 'local']
  const localFlags = ['--no-webhooks', '--data', join(apiServer.folder, 'local')]
  const start = () => startCapstan(['manager', ...flags, ...localFlags], /Manager ready/)
  let provider: CapstanProcess = await start()
  await using restarts = await listenForRestarts(async () => {
    await provider.kill()
    provider = await start()
  })
  try {
    const kindFlags = [
      '--infrastructure',
      'LocalCluster',
      '--machine-pool',
      'LocalMachinePool',
      '--bootstrap',
      'LocalBootstrapConfig',
    ]
    const { code, report } = await conform(apiServer, [
      ...kindFlags,
      '--control-plane=LocalControlPlane',
      `--examples=${file('local.yaml')}`,
      '--quiet=3s',
      '--timeout=5m',
      `--restart=${restarts.command}`,
    ])
    checks.check('local provider: exit code', code === 0, code)
    expectNothingBroken('local provider', report, [], checks)
    await expectClean(apiServer, checks)
  } finally {
    await provider.stop()
  }
}

async function onPoolProvider(checks: Checks): Promise<void> {
  await using apiServer = await startCapstanApiServer({ progress: console.log })
  const client = apiServer.client()
  const context = { client, clock: systemClock, random: systemRandom, log: silent }
  const { kinds, start } = poolProvider()
  await installKinds(client, [...coreKinds, ...kinds], context)
  const manager = createManager({ ...context, controllers: start(context).controllers })
  await manager.start()
  try {
    const examples = `--examples=${file('pool.yaml')}`
    const { code, report } = await conform(apiServer, ['--ipam', 'DevPool', examples, '--quiet=2s', '--timeout=5m'])
    checks.check('IPAM provider: exit code', code === 0, code)
    expectNothingBroken('IPAM provider', report, [], checks)
    const passed = report.results.filter(({ rule, verdict }) => rule.startsWith('ipam.') && verdict === 'pass')
    checks.check(
      'IPAM provider: 12 rules pass',
      passed.length === 12,
      passed.map(({ rule }) => rule),
    )
    await expectClean(apiServer, checks)
  } finally {
    await manager.stop()
  }
}

async function onUpstream(checks: Checks): Promise<void> {
  await using apiServer = await startCapstanApiServer({ users: [managersUser], progress: console.log })
  await using managers = await startManagers(apiServer, console.log)
  const kindFlags = ['--infrastructure', 'DevCluster', '--bootstrap', 'KubeadmConfig', '--control-plane', 'KubeadmControlPlane']
  const { code, report } = await conform(apiServer, [
    ...kindFlags,
    '--core=upstream',
    `--examples=${file('upstream.yaml')}`,
    '--quiet=10s',
    '--timeout=5m',
    '--kubernetes-version=v1.35.0',
    '--upgrade-to=v1.36.0',
  ])
  checks.check('upstream: exit code', code === 0, code)
  expectNothingBroken('upstream', report, Object.keys(upstreamWarnings), checks)
  await expectClean(apiServer, checks)
  for (const { name, ending } of managers.programs)
    checks.check(`upstream: ${name} is still running`, ending === undefined, ending)
}

/** Rules of level SHOULD and MAY that upstream's providers of v1.14 break, with the reason. */
const upstreamWarnings: Readonly<Record<string, string>> = {}

function expectNothingBroken(
  name: string,
  { results, scenarios, leftovers }: Report,
  warnings: readonly string[],
  checks: Checks,
): void {
  for (const { rule, verdict, reason, evidence } of results) {
    if (verdict === 'not applicable') continue
    const isKnown = verdict === 'warn' && warnings.includes(rule)
    const detail = reason ?? evidence.filter(({ holds }) => !holds).slice(0, 3)
    checks.check(`${name}: ${rule}: ${verdict}`, isKnown || (verdict !== 'fail' && verdict !== 'warn'), detail)
    if (verdict === 'not testable here') console.log(`${name}: ${rule}: not testable here: ${reason}`)
  }
  for (const { name: scenario, stopped } of scenarios) {
    checks.check(`${name}: scenario ${scenario} completes`, stopped === undefined, stopped)
  }
  checks.check(`${name}: no finalizer had to be removed by force`, leftovers.length === 0, leftovers)
}

async function expectClean(apiServer: RunningApiServer, checks: Checks): Promise<void> {
  const { items } = await apiServer.client().list(Namespace)
  const remainingNamespaces = items.filter(
    ({ metadata }) => metadata.name.startsWith('conform') && metadata.deletionTimestamp === undefined,
  )
  checks.check('all namespaces of the run are deleted or being deleted', remainingNamespaces.length === 0, remainingNamespaces)
}

const file = (name: string): string => fileURLToPath(new URL(`conform/${name}`, import.meta.url))

/** Runs `capstan conform` until it ends; returns its exit code and JSON report. */
async function conform(apiServer: RunningApiServer, args: readonly string[]): Promise<{ code: number | null; report: Report }> {
  const capstan = fileURLToPath(new URL('../packages/cli/bin/capstan.js', import.meta.url))
  const child = spawn(process.execPath, [capstan, 'conform', '--kubeconfig', apiServer.kubeconfig, '-o', 'json', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let progress = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    progress += text
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (out === '') throw new Error(`capstan conform ended with ${code}: ${progress}`)
  console.log(
    progress
      .split('\n')
      .filter((line) => / (done|stopped)\b/.test(line))
      .join('\n'),
  )
  return { code, report: JSON.parse(out) as Report }
}

/** Listens for restart requests. Returns a command for `--restart` that sends such a request to this process. */
async function listenForRestarts(restart: () => Promise<void>): Promise<AsyncDisposable & { readonly command: string }> {
  const server = createServer((_, response) => {
    void restart().then(
      () => response.end(),
      () => response.writeHead(500).end(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const script = `fetch("http://127.0.0.1:${port}").then(({ ok }) => process.exit(ok ? 0 : 1))`
  return {
    command: `'${process.execPath}' -e '${script}'`,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}
