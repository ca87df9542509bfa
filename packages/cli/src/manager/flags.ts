/** Flags of upstream's core manager: watch limits, tuning, and unsupported flags, which are rejected. */
import { WatchLabel } from '@capstan/api'
import type { Controller, ManagerOptions } from '@capstan/controller'
import { SwitchableGates } from '@capstan/core'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { duration } from '../commands/apiserver-flags.ts'
import type { LogLevel } from '../logger.ts'
import type { Rate } from './limit-rate.ts'

export interface WatchFlags {
  readonly namespace: string
  readonly watchFilter: string
}

/** Adds `--namespace` and `--watch-filter`. As upstream, an empty value selects everything. */
export const withWatchLimits = (command: Command): Command =>
  command
    .addOption(
      new Option('--namespace <namespace>', 'reconcile only cluster-scoped objects and the objects of this namespace')
        .argParser(namespaceName)
        .default('', 'all namespaces'),
    )
    .addOption(
      new Option('--watch-filter <value>', `value of the label ${WatchLabel} of the objects to reconcile`)
        .argParser(labelValue)
        .default('', 'all objects'),
    )

/** Returns the manager options for `--namespace` and `--watch-filter`. */
export const watchLimits = ({ namespace, watchFilter }: WatchFlags): Pick<ManagerOptions, 'namespace' | 'eventFilter'> => ({
  ...(namespace === '' ? {} : { namespace }),
  ...(watchFilter === '' ? {} : { eventFilter: ({ metadata }) => metadata.labels?.[WatchLabel] === watchFilter }),
})

function namespaceName(text: string): string {
  if (text !== '' && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('expected the name of one namespace.')
  return text
}

/** Parses a label value. An invalid value is rejected, because it would match no object. */
function labelValue(text: string): string {
  if (text !== '' && !/^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/.test(text))
    throw new InvalidArgumentError(
      'expected the value of a label: letters and digits, with - _ . between them, at most 63 characters.',
    )
  return text
}

/** Tuning flags of upstream's core manager. */
export interface TuningFlags {
  /** Interval in milliseconds. */
  readonly syncPeriod?: number
  readonly kubeApiQps?: number
  readonly kubeApiBurst?: number
  /** Log verbosity. */
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

/** Controllers by the prefix of their concurrency flag. As upstream, --clusterresourceset-concurrency applies to two controllers. */
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
type FlagPrefix = keyof typeof controllersOfFlag

/** Adds the flags of `TuningFlags`. */
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
      new Option(
        '--kube-api-qps <n>',
        'maximum average number of requests to the API server per second, without those for Leases (default: no limit)',
      ).argParser(positiveNumber),
    )
    .addOption(
      new Option(
        '--kube-api-burst <n>',
        'maximum number of requests sent at once, if --kube-api-qps limits them (default: 200)',
      ).argParser(positive),
    )
    .addOption(
      new Option('--feature-gates <name=bool,…>', `upstream's feature gates; ${SwitchableGates.join(', ')} can be disabled`)
        .argParser(featureGates)
        .default({}, 'all on'),
    )
    .addOption(new Option('-v, --v <level>', 'log verbosity; 4 and higher log debug lines').argParser(verbosity))
}

/** Returns the controllers with the concurrency of the flags. */
export function tunedControllers(controllers: readonly Controller[], flags: TuningFlags): Controller[] {
  const concurrency = new Map<string, number>()
  for (const [prefix, controllerNames] of Object.entries(controllersOfFlag)) {
    const value = flags[`${prefix as FlagPrefix}Concurrency`]
    if (value !== undefined) for (const controllerName of controllerNames) concurrency.set(controllerName, value)
  }
  return controllers.map((controller) =>
    concurrency.has(controller.name) ? { ...controller, concurrency: concurrency.get(controller.name)! } : controller,
  )
}

/**
 * Returns the rate limit of the flags. Without --kube-api-qps there is no limit, and --kube-api-burst has no effect. Upstream limits by
 * default: its --kube-api-qps is 100.
 */
export const rateOf = ({ kubeApiQps: qps, kubeApiBurst: burst = 200 }: TuningFlags): Rate | undefined =>
  qps === undefined ? undefined : { qps, burst }

/** Returns the log level: `debug` for -v 4 and higher, as upstream, otherwise `level`. */
export const logLevelOf = (level: LogLevel, { v }: TuningFlags): LogLevel => (v !== undefined && v >= 4 ? 'debug' : level)

/** Feature gates of upstream v1.14 that are always enabled in this manager. */
const alwaysEnabledGates = [
  'InPlaceUpdates',
  'MachineSetPreflightChecks',
  'MachineTaintPropagation',
  'MachineWaitForVolumeDetachConsiderVolumeAttachments',
  'PriorityQueue',
  'ReconcilerRateLimiting',
]

/** Whether a gate has no effect here: a gate of the bootstrap provider, or AllAlpha or AllBeta with the value true. */
const hasNoEffect = (name: string, value: string): boolean =>
  name === 'KubeadmBootstrapFormatIgnition' || ((name === 'AllAlpha' || name === 'AllBeta') && value === 'true')

type Gates = { readonly [gate: string]: boolean }

function featureGates(text: string, before: Gates = {}): Gates {
  const gates: { [gate: string]: boolean } = { ...before }
  for (const setting of text.split(',').filter((gate) => gate !== '')) {
    const [name = '', value = ''] = setting.split('=', 2).map((text) => text.trim())
    if (value !== 'true' && value !== 'false') throw new InvalidArgumentError(`expected NAME=true or NAME=false, not ${setting}.`)
    if (hasNoEffect(name, value)) continue
    if (name === 'AllAlpha' || name === 'AllBeta')
      throw new InvalidArgumentError(`${name}=false is not supported: disable gates by name, such as ClusterTopology=false.`)
    const isSwitchable = (SwitchableGates as readonly string[]).includes(name)
    if (!isSwitchable && !alwaysEnabledGates.includes(name))
      throw new InvalidArgumentError(
        `there is no feature gate ${name}: expected ${[...SwitchableGates, ...alwaysEnabledGates].sort().join(', ')}.`,
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
    throw new InvalidArgumentError('expected a number above 0 and below 1000000, such as 20 or 0.5.')
  return value
}

/** Parses a log verbosity. For Go's form `-v=4`, commander passes `=4`. */
function verbosity(text: string): number {
  const level = text.replace(/^=/, '')
  if (!/^\d{1,2}$/.test(level)) throw new InvalidArgumentError('expected a level from 0 to 99.')
  return Number(level)
}

/** Unsupported flags of upstream's core manager v1.14, without leading dashes, by reason. */
const rejected: { readonly [reason: string]: string } = {
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

/**
 * Returns the unsupported flags as hidden options that fail with the reason. Ignoring such a flag would silently change the requested
 * behaviour.
 */
export const rejectedManagerFlags = (): Option[] =>
  Object.entries(rejected).flatMap(([reason, names]) =>
    names.split(' ').map((name) => {
      return new Option(`--${name} [value]`)
        .argParser(() => {
          throw new InvalidArgumentError(`--${name} is not supported: ${reason}.`)
        })
        .preset('')
        .hideHelp()
    }),
  )
