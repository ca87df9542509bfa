/**
 * Runs upstream's unchanged Cluster API (Go), with all its kinds, conversion webhooks and admission webhooks, on the embedded API
 * server and then on kube-apiserver. A Cluster of a ClusterClass becomes Available, is scaled, upgraded, moved by clusterctl and
 * deleted. `reasonOf` must explain each error that a manager logs on the embedded server but not on kube-apiserver.
 */
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { Checks } from './processes/capstan-process.ts'
import type { ApiServerOptions, RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Suite } from './shared/suite.ts'
import { moduleFolder } from './shared/tools.ts'
import { type ErrorLine, errorLines, reasonOf } from './upstream/error-lines.ts'
import { type LifecycleResult, runUpstreamLifecycle, type Phase, phases } from './upstream/life.ts'
import { components, install, managersUser, startManagers } from './upstream/managers.ts'

export const upstreamSuite: Suite = {
  shows: "upstream's Cluster API on the embedded API server and on the real one",
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'clusterctl', ...components.map(({ tool }) => tool)],
  ownNetwork: true,
  async prepare() {
    for (const { tool, module } of components) await moduleFolder(tool, module)
  },
  async run() {
    const checks = new Checks()
    const ours = await runOn(startCapstanApiServer, checks)
    const real = await runOn(startRealApiServer, checks)
    printTimes(ours.lifecycle.times, real.lifecycle.times)
    compareOutput(ours.lifecycle.output, real.lifecycle.output, checks)
    compareErrors(ours.errors, real.errors, checks)
    return checks
  },
}

/** Matches lines of `capstan apiserver` that are not errors: the line that reports readiness, and warnings about flags. */
const expectedLine = /^(API server ready|capstan: warning: --)/

interface Run {
  readonly lifecycle: LifecycleResult
  readonly errors: readonly ErrorLine[]
}

async function runOn(start: (options: ApiServerOptions) => Promise<RunningApiServer>, checks: Checks): Promise<Run> {
  const startedAt = performance.now()
  let prefix = ''
  const progress = (line: string) =>
    console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${prefix}${line}`)
  await using apiServer = await start({ users: [managersUser], progress })
  prefix = `${apiServer.name}: `
  await using managers = await startManagers(apiServer, progress)
  const { crds, mutating, validating } = managers.manifests
  const webhookCount = [...mutating, ...validating].reduce((sum, { webhooks = [] }) => sum + webhooks.length, 0)
  progress(
    `${crds.length} CustomResourceDefinitions, ${mutating.length + validating.length} webhook configurations with ${webhookCount} webhooks`,
  )
  // The managers serve the conversion webhooks of `apiServer` and of `moveTarget`, but reconcile only the objects on `apiServer`.
  await using moveTarget = await startCapstanApiServer()
  await install(moveTarget.client(), crds)
  try {
    const lifecycle = await runUpstreamLifecycle({ apiServer, moveTarget, checks, progress })
    for (const { name, ending } of [...apiServer.programs, ...managers.programs])
      checks.check(`${apiServer.name}: ${name} is still running`, ending === undefined, ending)
    if (apiServer.name === 'capstan') {
      const loggedLines = apiServer.programs[0]!.tail(1000)
        .split('\n')
        .filter((line) => !expectedLine.test(line))
      checks.check('the embedded API server logs no errors', loggedLines.length === 0, loggedLines)
    }
    return { lifecycle, errors: errorLines(managers.programs) }
  } catch (err) {
    for (const program of [...apiServer.programs, ...managers.programs])
      console.log(`--- ${apiServer.name}: ${program.name}${program.ending ? `, ${program.ending}` : ''}\n${program.tail()}`)
    throw err
  }
}

function printTimes(ours: LifecycleResult['times'], real: LifecycleResult['times']): void {
  const seconds = (times: LifecycleResult['times'], phase: Phase) => `${times.get(phase)!.toFixed(1)} s`.padStart(10)
  console.log(`${'phase'.padEnd(28)}${'capstan'.padStart(10)}${'kubernetes'.padStart(12)}`)
  for (const phase of phases) console.log(`${phase.padEnd(28)}${seconds(ours, phase)}  ${seconds(real, phase)}`)
}

function compareOutput(ours: LifecycleResult['output'], real: LifecycleResult['output'], checks: Checks): void {
  for (const [command, expectedText] of real) {
    const text = ours.get(command)
    checks.check(`clusterctl ${command} has the same output on both servers`, text === expectedText)
    if (text !== expectedText) console.log(`--- capstan\n${text}\n--- kubernetes\n${expectedText}`)
  }
}

function compareErrors(ours: readonly ErrorLine[], real: readonly ErrorLine[], checks: Checks): void {
  const idOf = ({ manager, text }: ErrorLine) => `${manager}: ${text}`
  const counts = (lines: readonly ErrorLine[]) => new Map(lines.map((line) => [idOf(line), line.count]))
  const onReal = counts(real)
  const all = new Map([...real, ...ours].map((line) => [idOf(line), line]))
  console.log('errors that the managers logged; the numbers are the counts on capstan and on kubernetes:')
  for (const [id, line] of all) {
    const onOurs = counts(ours).get(id) ?? 0
    const reason = onReal.has(id) ? undefined : reasonOf(line.text)
    console.log(`${String(onOurs).padStart(5)} ${String(onReal.get(id) ?? 0).padStart(5)}  ${id}${reason ? ` (${reason})` : ''}`)
    if (onReal.has(id)) continue
    checks.check(
      'each error that a manager logs only on the embedded API server has a known reason',
      reason !== undefined,
      line.sample,
    )
  }
}
