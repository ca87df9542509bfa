import { Cluster, waitingHooks } from '@capstan/api'
import { systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { table } from '../../output/table.ts'

interface Options extends ManagementOptions {
  namespace?: string
  output: 'text' | 'json'
}

/** `capstan hooks waiting`: every hook that holds something back, over all Clusters. */
export const waitingCommand = (io: Io): Command =>
  withKubeconfig(new Command('waiting'))
    .description('List what Clusters wait for: hooks, handlers, since when, until when')
    .option('-n, --namespace <namespace>', 'Clusters of one namespace only')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (options: Options) => {
      const selection = { ...(options.namespace === undefined ? {} : { namespace: options.namespace }), signal: io.signal }
      const { items } = await withManagement(io, options, (client) => client.list(Cluster, selection))
      const waiting = items.flatMap((cluster) => {
        const { namespace = '', name } = cluster.metadata
        return waitingHooks(cluster).map((record) => ({ namespace, cluster: name, ...record }))
      })
      if (options.output === 'json') {
        for (const record of waiting) io.out(JSON.stringify(record))
        return
      }
      if (waiting.length === 0) return io.out(`${items.length} Clusters, none of which waits for a hook`)
      const now = systemClock.now()
      const rows = waiting.map((one) => [
        one.namespace,
        one.cluster,
        one.hook,
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
