/** Flags of upstream's core manager: limits of watches, tuning, and flags that are rejected by name. */
import { WatchLabel } from '@capstan/api'
import type { Controller, ManagerOptions } from '@capstan/controller'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { duration } from '../commands/apiserver-flags.ts'
import type { LogLevel } from '../logger.ts'
import type { Rate } from './limit-rate.ts'

export interface WatchFlags {
  readonly namespace: string
  readonly watchFilter: string
}

/** Adds `--namespace` and `--watch-filter`; an empty value selects everything, as upstream. */
export const withWatchLimits = (command: Command): Command =>
  command
    .addOption(
      new Option('--namespace <namespace>', 'reconcile only objects of this namespace')
        .argParser(namespaceName)
        .default('', 'all namespaces'),
    )
    .addOption(
      new Option('--watch-filter <value>', `reconcile only objects whose label ${WatchLabel} has this value`)
        .argParser(labelValue)
        .default('', 'all objects'),
    )

/** Returns the watched namespaces and labels of a manager with these flags. */
export const watchLimits = ({ namespace, watchFilter }: WatchFlags): Pick<ManagerOptions, 'namespace' | 'eventFilter'> => ({
  ...(namespace === '' ? {} : { namespace }),
  ...(watchFilter === '' ? {} : { eventFilter: ({ metadata }) => metadata.labels?.[WatchLabel] === watchFilter }),
})

function namespaceName(text: string): string {
  if (text !== '' && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('expected the name of one namespace.')
  return text
}

/** A value that no label can have would silently match nothing. */
function labelValue(text: string): string {
  if (text !== '' && !/^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/.test(text))
    throw new InvalidArgumentError('expected the value of a label: at most 63 letters, digits, and - _ . between them.')
  return text
}

/** Flags of upstream's core manager that tune it. */
export interface TuningFlags {
  readonly syncPeriod?: number
  readonly kubeApiQps?: number
  readonly kubeApiBurst?: number
  readonly v?: number
  readonly featureGates: Gates
  readonly clusterConcurrency?: number
  readonly clustercacheConcurrency?: number
  readonly clusterclassConcurrency?: number
  readonly clusterresourcesetConcurrency?: number
  readonly clustertopologyConcurrency?: number
  readonly extensionconfigConcurrency?: number
  readonly machineConcurrency?: number
  readonly machinedeploymentConcurrency?: number
  readonly machinehealthcheckConcurrency?: number
  readonly machinepoolConcurrency?: number
  readonly machinesetConcurrency?: number
}

/** Controllers whose concurrency a flag sets, by the flag's first word. Upstream's ClusterResourceSet flag is for both of its controllers. */
const controllersOfFlag = {
  cluster: ['cluster'],
  clustercache: ['clustercache'],
  clusterclass: ['clusterclass'],
  clusterresourceset: ['clusterresourceset', 'clusterresourcesetbinding'],
  clustertopology: ['topology/cluster'],
  extensionconfig: ['extensionconfig'],
  machine: ['machine'],
  machinedeployment: ['machinedeployment'],
  machinehealthcheck: ['machinehealthcheck'],
  machinepool: ['machinepool'],
  machineset: ['machineset'],
} as const
type Tuned = keyof typeof controllersOfFlag

export function withTuning(command: Command): Command {
  for (const name of Object.keys(controllersOfFlag))
    command.addOption(
      new Option(
        `--${name}-concurrency <n>`,
        `number of objects that the ${name} controller reconciles concurrently (default: 10)`,
      ).argParser(positive),
    )
  return command
    .addOption(
      new Option(
        '--sync-period <duration>',
        'interval at which every object is reconciled even if nothing has changed (default: never)',
      ).argParser(duration),
    )
    .addOption(
      new Option('--kube-api-qps <n>', 'average number of requests to the API server per second (default: no limit)').argParser(
        positiveNumber,
      ),
    )
    .addOption(
      new Option('--kube-api-burst <n>', 'number of requests that can exceed --kube-api-qps in a burst (default: 200)').argParser(
        positive,
      ),
    )
    .addOption(
      new Option('--feature-gates <name=bool,…>', `upstream's feature gates; ${switchable.join(', ')} can be disabled`)
        .argParser(featureGates)
        .default({}, 'all on'),
    )
    .addOption(new Option('-v, --v <level>', 'log verbosity; 4 and higher log debug lines').argParser(verbosity))
}

/** Returns the controllers with the concurrency of the flags. */
export function tunedControllers(controllers: readonly Controller[], flags: TuningFlags): Controller[] {
  const concurrency = new Map<string, number>()
  for (const [name, tuned] of Object.entries(controllersOfFlag)) {
    const value = flags[`${name as Tuned}Concurrency`]
    if (value !== undefined) for (const controllerName of tuned) concurrency.set(controllerName, value)
  }
  const disabledControllers = switchable
    .filter((gate) => flags.featureGates[gate] === false)
    .flatMap((gate) => controllersOfGate[gate])
  return controllers
    .filter(({ name }) => !(disabledControllers as readonly string[]).includes(name))
    .map((controller) =>
      concurrency.has(controller.name) ? { ...controller, concurrency: concurrency.get(controller.name)! } : controller,
    )
}

/** Upstream's flags of a rate limit: the burst alone has no effect. */
export const rateOf = ({ kubeApiQps: qps, kubeApiBurst: burst = 200 }: TuningFlags): Rate | undefined =>
  qps === undefined ? undefined : { qps, burst }

/** Upstream: details of features are logged at 4 and above. */
export const logLevelOf = (level: LogLevel, { v }: TuningFlags): LogLevel => (v !== undefined && v >= 4 ? 'debug' : level)

/** Controllers that do not run while a gate is off. Upstream does not start them. */
const controllersOfGate = {
  ClusterTopology: ['clusterclass', 'topology/cluster', 'topology/machinedeployment', 'topology/machineset'],
  MachinePool: ['machinepool'],
  RuntimeSDK: ['extensionconfig'],
} as const
const switchable = ['ClusterTopology', 'MachinePool', 'RuntimeSDK'] as const

/** Gates of upstream v1.14 whose features this manager always has. */
const alwaysOn = [
  'InPlaceUpdates',
  'MachineSetPreflightChecks',
  'MachineTaintPropagation',
  'MachineWaitForVolumeDetachConsiderVolumeAttachments',
  'PriorityQueue',
  'ReconcilerRateLimiting',
]

/** Gates of upstream's core manager that change nothing here: a feature of the bootstrap provider, and groups of gates that are on. */
const withoutEffect = (name: string, value: string): boolean =>
  name === 'KubeadmBootstrapFormatIgnition' || ((name === 'AllAlpha' || name === 'AllBeta') && value === 'true')

type Gates = { readonly [gate: string]: boolean }

function featureGates(text: string, before: Gates = {}): Gates {
  const gates: { [gate: string]: boolean } = { ...before }
  for (const part of text.split(',').filter((gate) => gate !== '')) {
    const [name = '', value = ''] = part.split('=', 2).map((piece) => piece.trim())
    if (value !== 'true' && value !== 'false') throw new InvalidArgumentError(`expected NAME=true or NAME=false, not ${part}.`)
    if (withoutEffect(name, value)) continue
    if (name === 'AllAlpha' || name === 'AllBeta')
      throw new InvalidArgumentError(`${name}=false is not supported: disable gates by name, such as ClusterTopology=false.`)
    const isSwitchable = (switchable as readonly string[]).includes(name)
    if (!isSwitchable && !alwaysOn.includes(name))
      throw new InvalidArgumentError(
        `there is no feature gate ${name}: expected ${[...switchable, ...alwaysOn].sort().join(', ')}.`,
      )
    if (!isSwitchable && value === 'false') throw new InvalidArgumentError(`${name} is always enabled in this manager.`)
    gates[name] = value === 'true'
  }
  return gates
}

function positive(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 1 to 999999.')
  return Number(text)
}

function positiveNumber(text: string): number {
  const value = Number(text)
  if (!/^\d{1,6}(\.\d+)?$/.test(text) || value <= 0)
    throw new InvalidArgumentError('expected a number above 0, such as 20 or 0.5.')
  return value
}

/** Upstream's manifests and users write `-v=4`, of which the parser of flags leaves `=4`. */
function verbosity(text: string): number {
  const level = text.replace(/^=/, '')
  if (!/^\d{1,2}$/.test(level)) throw new InvalidArgumentError('expected a level from 0 to 99.')
  return Number(level)
}

/** Flags (without dashes) of upstream's core manager v1.14 that this manager does not have, by reason. */
const rejected: { readonly [why: string]: string } = {
  'use --log-level': 'vmodule',
  'log lines are written to stderr at once':
    'log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream',
  'requests to workload clusters are not limited by rate': 'clustercache-client-qps clustercache-client-burst',
  'the grace periods of connections to workload clusters are fixed':
    'remote-conditions-grace-period remote-connection-grace-period',
  'all preflight checks of MachineSets run': 'machineset-preflight-checks',
  'the labels and annotations that are synced to Nodes are fixed':
    'additional-sync-machine-annotations additional-sync-machine-labels',
  'CustomResourceDefinitions are not migrated by this manager': 'skip-crd-migration-phases',
  'there is no profiler': 'contention-profiling profiler-address',
  'files are named tls.crt and tls.key, see --webhook-cert-dir': 'webhook-cert-name webhook-key-name',
  'cipher suites are those of Node.js, see --tls-min-version': 'tls-cipher-suites',
}

/** Hidden options that fail with the reason, because ignoring a flag would silently change the requested behaviour. */
export const rejectedManagerFlags = (): Option[] =>
  Object.entries(rejected).flatMap(([why, names]) =>
    names.split(' ').map((name) => {
      return new Option(`--${name} [value]`)
        .argParser(() => {
          throw new InvalidArgumentError(`--${name} is not supported: ${why}.`)
        })
        .preset('')
        .hideHelp()
    }),
  )
