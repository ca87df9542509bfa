/** Flags of upstream's core manager: those that limit what is watched, and those that are refused by name. */
import { WatchLabel } from '@capstan/api'
import type { ManagerOptions } from '@capstan/controller'
import { type Command, InvalidArgumentError, Option } from 'commander'

export interface WatchFlags {
  readonly namespace: string
  readonly watchFilter: string
}

/** Adds `--namespace` and `--watch-filter`; empty is everything, as upstream. */
export const withWatchLimits = (command: Command): Command =>
  command
    .addOption(
      new Option('--namespace <namespace>', 'the only namespace whose objects are reconciled (default: all namespaces)')
        .argParser(namespaceName)
        .default('', 'all namespaces'),
    )
    .addOption(
      new Option(
        '--watch-filter <value>',
        `reconcile only objects whose label ${WatchLabel} has this value (default: all objects)`,
      )
        .argParser(labelValue)
        .default('', 'all objects'),
    )

/** What a manager with these flags watches. */
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

/** Reason: flags, without dashes. Upstream's core manager v1.14 has them, this manager does not. */
const refused: { readonly [why: string]: string } = {
  'features are always enabled': 'feature-gates',
  'use --log-level': 'v vmodule',
  'informers are not synced periodically': 'sync-period',
  'requests to API servers are not limited by rate':
    'kube-api-qps kube-api-burst clustercache-client-qps clustercache-client-burst',
  'the number of concurrent reconciles is fixed':
    'cluster-concurrency clustercache-concurrency clusterclass-concurrency clusterresourceset-concurrency ' +
    'clustertopology-concurrency extensionconfig-concurrency machine-concurrency machinedeployment-concurrency ' +
    'machinehealthcheck-concurrency machinepool-concurrency machineset-concurrency',
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

/** Hidden options that fail with the reason: to ignore one would change what the operator asked for. */
export const refusedManagerFlags = (): Option[] =>
  Object.entries(refused).flatMap(([why, names]) =>
    names.split(' ').map((name) => {
      const dashed = name.length === 1 ? `-${name}, --${name}` : `--${name}`
      return new Option(`${dashed} [value]`)
        .argParser(() => {
          throw new InvalidArgumentError(`--${name} is not supported: ${why}.`)
        })
        .preset('')
        .hideHelp()
    }),
  )
