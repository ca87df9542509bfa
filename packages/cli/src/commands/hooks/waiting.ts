import { Cluster, Machine } from '@capstan/api'
import { humanDuration, systemClock } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { jsonLine } from '../../output/one-line.ts'
import { table } from '../../output/table.ts'
import { type WaitingRecord, waitingObjects } from '../../waiting-objects.ts'

interface Options extends ManagementOptions {
  namespace?: string
  output: 'text' | 'json'
}

/** `capstan hooks waiting`: lists the hooks that block Clusters, Machines and objects of providers. */
export const waitingCommand = (io: Io): Command =>
  withKubeconfig(new Command('waiting'))
    .description(
      'List Clusters, Machines and provider objects that wait for hooks, with handlers, time since the block began, and time until the next call',
    )
    .option('-n, --namespace <namespace>', 'objects of one namespace only')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (options: Options) => {
      const { namespace } = options
      const { waiting, clusters, unread } = await withManagement(io, options, (client) =>
        waitingObjects(client, { namespace, signal: io.signal }),
      )
      for (const problem of unread) io.err(`capstan: ${problem}`)
      if (options.output === 'json') {
        for (const record of waiting) io.out(jsonLine(record))
        return
      }
      if (waiting.length === 0) return io.out(noWaitingText(clusters))
      const now = systemClock.now()
      const rows = waiting.map((object) => [
        object.namespace || '<none>',
        object.cluster || '<none>',
        `${object.hook}${objectText(object)}`,
        handlerOf(object),
        humanDuration(now - Date.parse(object.since)),
        nextCallText(object, now),
        String(object.calls),
        object.message,
      ])
      const heading = ['NAMESPACE', 'CLUSTER', 'HOOK', 'HANDLER', 'SINCE', 'NEXT CALL IN', 'CALLS', 'MESSAGE']
      for (const line of table(heading, rows)) io.out(line)
    })

/** Formats the blocking handlers. Without handlers, an undiscovered ExtensionConfig or an annotation blocks the object. */
function handlerOf({ handlers, extensionConfig }: WaitingRecord): string {
  if (extensionConfig !== undefined) return `<any of ${extensionConfig}>`
  return handlers.join(',') || '<annotation>'
}

/** Names the waiting object, unless it is the Cluster. */
function objectText({ kind, name }: WaitingRecord): string {
  if (kind === Cluster.kind) return ''
  return kind === Machine.kind ? ` (${name})` : ` (${kind} ${name})`
}

/**
 * Formats the time until the next call. `until` is absent after a failed call, which is retried with backoff, and while an annotation
 * blocks, because then no handler is called.
 */
function nextCallText({ until, handlers, extensionConfig }: WaitingRecord, now: number): string {
  if (until === undefined) return handlers.length > 0 || extensionConfig !== undefined ? 'backing off' : '<none>'
  return humanDuration(Math.max(0, Date.parse(until) - now))
}

function noWaitingText(clusters: number): string {
  if (clusters === 0) return 'No Clusters found, and no object waits for a hook'
  return clusters === 1 ? '1 Cluster, which waits for no hook' : `${clusters} Clusters, none of which waits for a hook`
}
