import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import {
  conform,
  type ConformReport,
  type ContractName,
  countsOf,
  defaultLimits,
  findPool,
  findTarget,
  formatReport,
  NoSuchTarget,
  type ReportFormat,
  ReportFormats,
  type Rule,
  rules,
  type TargetNames,
} from '@capstan/conformance'
import { createClient, messageOf, systemClock, systemRandom, type UnknownObject } from '@capstan/kube'
import { httpsTransport } from '@capstan/kube/node'
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseAllDocuments } from 'yaml'
import { startOwnCore } from '../conform/own-core.ts'
import { ExitCodes, type Io, UsageError } from '../io.ts'
import { duration } from './apiserver-flags.ts'
import { createLogger } from '../logger.ts'
import { type AccessFlags, managementAccess, withAccess } from '../management-access.ts'
import { versions } from '../versions.ts'

/** Parsed flags. `timeout` and `quiet` are in milliseconds. */
interface Options extends AccessFlags {
  readonly infrastructure?: string
  readonly machine?: string
  readonly machinePool?: string
  readonly bootstrap?: string
  readonly controlPlane?: string
  readonly ipam?: string
  readonly core: 'own' | 'upstream'
  readonly examples?: string
  readonly only?: readonly string[]
  readonly skip?: readonly string[]
  readonly timeout: number
  readonly quiet: number
  readonly parallel: number
  readonly restart?: string
  readonly kubernetesVersion: string
  readonly upgradeTo: string
  readonly output: ReportFormat
  readonly report?: readonly string[]
}

/** `capstan conform`: tests a running provider against the contracts by creating, changing and deleting objects such as Clusters. */
export function conformCommand(io: Io, finish: (code: number) => void): Command {
  return withAccess(new Command('conform'))
    .description('Test a running provider against the provider contracts, on any API server')
    .option('--infrastructure <kind>', 'kind of the InfraCluster, such as LocalCluster or LocalCluster.<group>')
    .option(
      '--machine <kind>',
      'kind of the InfraMachine (default: the kind of the InfraCluster, with Machine in place of Cluster)',
    )
    .option('--machine-pool <kind>', 'kind of the InfraMachinePool')
    .option('--bootstrap <kind>', 'kind of the BootstrapConfig (default: a stub)')
    .option('--control-plane <kind>', 'kind of the ControlPlane (default: a stub)')
    .option('--ipam <kind>', 'kind of the address pools of an IPAM provider; needs an example with at least 12 addresses')
    .addOption(
      new Option('--core <core>', 'run core in this process, or use the core manager of the cluster')
        .choices(['own', 'upstream'])
        .default('own'),
    )
    .option(
      '--examples <file>',
      'YAML file with objects or templates. Tests use the spec, labels and annotations of the first object of a kind. Tests that change a template of the kind use the spec of the second object',
    )
    .addOption(list('--only <rules>', 'only these rules, or groups of rules such as infra-cluster'))
    .addOption(list('--skip <rules>', 'skip these rules, or groups of rules'))
    .addOption(
      new Option('--timeout <duration>', 'maximum time of each wait for a condition')
        .argParser(duration)
        .default(defaultLimits.wait, '3m'),
    )
    .addOption(
      new Option(
        '--quiet <duration>',
        'duration of each wait without a condition, such as a wait for changes that must not occur',
      )
        .argParser(duration)
        .default(defaultLimits.quiet, '5s'),
    )
    .addOption(new Option('--parallel <n>', 'maximum number of test scenarios that run concurrently').argParser(count).default(4))
    .option('--restart <command>', 'shell command that restarts the provider, and exits when it has restarted')
    .option('--kubernetes-version <version>', 'Kubernetes version of the clusters', 'v1.36.0')
    .option('--upgrade-to <version>', 'Kubernetes version to which control planes are upgraded', 'v1.36.1')
    .addOption(new Option('-o, --output <format>', 'output format').choices([...ReportFormats]).default('text'))
    .addOption(list('--report <files>', 'also write the report to files: .txt, .json, .xml (JUnit), .html'))
    .addHelpText('after', '\nExit code 1 when a rule of level MUST is violated, 2 on wrong usage. Progress is printed to stderr.')
    .action(async (options: Options) => {
      const report = await run(options, io)
      io.out(formatReport(report, options.output, versions.capstan))
      for (const file of options.report ?? []) {
        writeFileSync(file, `${formatReport(report, reportFormat(file), versions.capstan)}\n`)
      }
      finish(countsOf(report).fail > 0 ? ExitCodes.failed : ExitCodes.done)
    })
}

async function run(options: Options, io: Io): Promise<ConformReport> {
  const { infrastructure, ipam } = options
  if (infrastructure === undefined && ipam === undefined) {
    throw new UsageError(
      'no provider to test',
      'Name the kind of its InfraCluster with --infrastructure, or of its address pools with --ipam.',
    )
  }
  const names = namesOf(options)
  const [contract] = infrastructure === undefined ? Object.keys(names) : []
  if (contract !== undefined)
    throw new UsageError(
      `a kind of ${contract} is tested with its InfraCluster`,
      'Name the kind of the InfraCluster with --infrastructure.',
    )
  const chosen = chosenRules(options)
  for (const file of options.report ?? []) reportFormat(file)
  const examples = options.examples === undefined ? [] : readExamples(options.examples)
  const { access } = await managementAccess(options, io.env)
  const [clock, random, { signal }] = [systemClock, systemRandom, io]
  const transport = httpsTransport(access, { clock, random, userAgent: 'capstan' })
  const client = createClient(transport)
  try {
    const orUsageError = async <T>(kinds: Promise<T>): Promise<T> =>
      kinds.catch((err: unknown) => {
        if (err instanceof NoSuchTarget) throw new UsageError(err.message, err.hint)
        throw err
      })
    const target = await orUsageError(findTarget(client, names, examples, signal))
    if (infrastructure !== undefined && !target.InfraMachine) {
      throw new UsageError(
        `no InfraMachine kind belongs to ${infrastructure}`,
        'Name the kind of the InfraMachine with --machine.',
      )
    }
    const pool = ipam === undefined ? undefined : await orUsageError(findPool(client, ipam, examples, signal))
    const log = createLogger(io, 'error', 'text')
    const stopCore = options.core === 'own' ? await startOwnCore({ client, clock, random, log, signal }) : async () => {}
    try {
      const { restart } = options
      return await conform({
        client,
        clock,
        random,
        signal,
        target,
        ...(pool ? { pool } : {}),
        rules: chosen,
        prefix: `conform-${random.next().toString(36).slice(2, 7).padEnd(5, 'x')}`,
        limits: { wait: options.timeout, quiet: options.quiet },
        versions: { kubernetes: options.kubernetesVersion, upgradeTo: options.upgradeTo },
        concurrency: options.parallel,
        progress: (line) => io.err(line),
        ...(restart === undefined ? {} : { restart: () => runShell(restart, signal) }),
      })
    } finally {
      await stopCore()
    }
  } finally {
    transport.close()
  }
}

const namesOf = (options: Options): TargetNames => {
  const names: { readonly [contract in ContractName]: string | undefined } = {
    InfraCluster: options.infrastructure,
    InfraMachine: options.machine,
    InfraMachinePool: options.machinePool,
    BootstrapConfig: options.bootstrap,
    ControlPlane: options.controlPlane,
  }
  return Object.fromEntries(Object.entries(names).filter(([, name]) => name !== undefined))
}

/** Returns the rules that --only and --skip select. @throws UsageError for a name that is neither a rule nor a group */
function chosenRules({ only, skip = [] }: Options): Rule[] {
  const isNamed =
    (name: string) =>
    ({ id }: Rule): boolean =>
      id === name || id.startsWith(`${name}.`)
  for (const name of [...(only ?? []), ...skip]) {
    if (!rules.some(isNamed(name)))
      throw new UsageError(`there is no rule "${name}"`, 'docs/reference/contracts.md lists the rules.')
  }
  return rules.filter(
    (rule) => (only === undefined || only.some((name) => isNamed(name)(rule))) && !skip.some((name) => isNamed(name)(rule)),
  )
}

/** Reads the objects in the file of --examples. @throws UsageError that names the file, and the document that is not valid */
function readExamples(file: string): UnknownObject[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (err) {
    throw new UsageError(`--examples ${file}: ${messageOf(err)}`)
  }
  return parseAllDocuments(text).flatMap((document, index) => {
    const [error] = document.errors
    if (error) throw new UsageError(`--examples ${file}: document ${index + 1}: ${error.message}`)
    const object = document.toJS() as UnknownObject | null
    if (object === null) return []
    if (typeof object.apiVersion !== 'string' || typeof object.kind !== 'string') {
      throw new UsageError(`--examples ${file}: document ${index + 1}: expected an object with apiVersion and kind`)
    }
    return [object]
  })
}

const formats: Readonly<Record<string, ReportFormat>> = { txt: 'text', json: 'json', xml: 'junit', html: 'html' }

function reportFormat(file: string): ReportFormat {
  const format = formats[file.slice(file.lastIndexOf('.') + 1)]
  if (!format) throw new UsageError(`--report ${file}: expected a name that ends with .txt, .json, .xml or .html`)
  return format
}

/** Runs a shell command of the user. Discards its stdout. Rejects with an Error that contains the end of its stderr when it fails. */
function runShell(command: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ['ignore', 'ignore', 'pipe'], signal })
    let stderrText = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderrText = `${stderrText}${text}`.slice(-1000)
    })
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`--restart ${command}: ended with ${code}: ${stderrText.trim()}`)),
    )
  })
}

const list = (flags: string, description: string): Option =>
  new Option(flags, `${description}; separated by commas`).argParser((text, before: readonly string[] | undefined) => [
    ...(before ?? []),
    ...text.split(',').map((name) => name.trim()),
  ])

function count(text: string): number {
  const n = Number(text)
  if (!Number.isInteger(n) || n < 1 || n > 32) throw new InvalidArgumentError('expected a whole number from 1 to 32.')
  return n
}
