import { Cluster, Machine, type WaitingHook, waitingHooks } from '@capstan/api'
import { systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { table } from '../../output/table.ts'

/** A record, with whose it is. */
interface Waiting extends WaitingHook {
  readonly namespace: string
  readonly cluster: string
  /** Absent when the Cluster itself waits. */
  readonly machine?: string
}

interface Options extends ManagementOptions {
  namespace?: string
  output: 'text' | 'json'
}

/** `capstan hooks waiting`: every hook that holds something back, over all Clusters and their Machines. */
export const waitingCommand = (io: Io): Command =>
  withKubeconfig(new Command('waiting'))
    .description('List what Clusters and their Machines wait for: hooks, handlers, since when, until when')
    .option('-n, --namespace <namespace>', 'Clusters of one namespace only')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (options: Options) => {
      const selection = { ...(options.namespace === undefined ? {} : { namespace: options.namespace }), signal: io.signal }
      const { clusters, machines } = await withManagement(io, options, async (client) => ({
        clusters: (await client.list(Cluster, selection)).items,
        machines: (await client.list(Machine, selection)).items,
      }))
      const waiting: Waiting[] = [
        ...clusters.flatMap((cluster) => {
          const { namespace = '', name } = cluster.metadata
          return waitingHooks(cluster).map((record) => ({ namespace, cluster: name, ...record }))
        }),
        ...machines.flatMap((machine) => {
          const { namespace = '', name } = machine.metadata
          const { clusterName: cluster } = machine.spec
          return waitingHooks(machine).map((record) => ({ namespace, cluster, machine: name, ...record }))
        }),
      ]
      if (options.output === 'json') {
        for (const record of waiting) io.out(JSON.stringify(record))
        return
      }
      if (waiting.length === 0) return io.out(`${clusters.length} Clusters, none of which waits for a hook`)
      const now = systemClock.now()
      const rows = waiting.map((one) => [
        one.namespace,
        one.cluster,
        one.machine === undefined ? one.hook : `${one.hook} (${one.machine})`,
        one.handlers.join(',') || '<annotation>',
        ago(now - Date.parse(one.since)),
        one.until === undefined ? '<none>' : ago(Math.max(0, Date.parse(one.until) - now)),
        String(one.calls),
        one.message,
      ])
      const heading = ['NAMESPACE', 'CLUSTER', 'HOOK', 'HANDLER', 'SINCE', 'ASKED AGAIN IN', 'CALLS', 'MESSAGE']
      for (const line of table(heading, rows)) io.out(line)
    })

/** `45s`, `12m`, `3h`: as precise as somebody who waits needs it. */
function ago(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds}s`
  return seconds < 7200 ? `${Math.round(seconds / 60)}m` : `${Math.round(seconds / 3600)}h`
}
