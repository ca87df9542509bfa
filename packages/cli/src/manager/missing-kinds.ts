/** Waits for kinds that the controllers watch and that another manager installs, such as core's kinds for the local provider. */
import type { Controller } from '@capstan/controller'
import { type Client, type Clock, isReason, type Kind, type Logger, resourceName, seconds, sleep } from '@capstan/kube'
import { UsageError } from '../io.ts'

/** Time to wait for the kinds of another manager, which may start at the same time. */
const TimeLimit = seconds(60)
const Interval = seconds(2)

export interface AwaitKindsOptions {
  readonly client: Client
  readonly controllers: readonly Controller[]
  /** Kinds that this manager installs itself. */
  readonly own: readonly Kind[]
  /** The only watched namespace; default: all namespaces. */
  readonly namespace?: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Resolves when the API server serves every kind that the declarations of the controllers name, except the kinds in `own`. A kind whose
 * list fails with another error than NotFound counts as served. Waits at most a minute: informers would repeat their requests for missing
 * kinds forever.
 *
 * @throws UsageError that names the kinds that are missing after a minute; the abort reason when `signal` aborts
 */
export async function awaitKinds({ client, controllers, own, namespace, clock, log, signal }: AwaitKindsOptions): Promise<void> {
  const idOf = (kind: Kind) => `${resourceName(kind)} ${kind.version}`
  const needed = new Map(controllers.flatMap(watchedKinds).map((kind) => [idOf(kind), kind]))
  for (const kind of own) needed.delete(idOf(kind))
  const end = clock.elapsed() + TimeLimit
  let reported = ''
  for (;;) {
    for (const [id, kind] of needed) {
      const selection = namespace === undefined || kind.scope === 'Cluster' ? {} : { namespace }
      if (await isServed(client, kind, { ...selection, signal })) needed.delete(id)
    }
    if (needed.size === 0) return
    const missing = [...needed.values()]
      .map((kind) => `${resourceName(kind)} (${kind.version})`)
      .sort()
      .join(', ')
    if (clock.elapsed() >= end)
      throw new UsageError(
        `The API server does not serve ${missing}, which the controllers need`,
        'Install the provider of these kinds first: capstan manifests core | kubectl apply --server-side -f -, or run both providers: --providers core,local.',
      )
    if (missing !== reported) log.warn('The API server does not serve kinds that the controllers need', { missing })
    reported = missing
    await sleep(clock, Interval, signal)
  }
}

const watchedKinds = ({ for: reconciled, owns = [], watches = [] }: Controller): Kind[] => [
  reconciled,
  ...owns,
  ...watches.map(({ kind }) => kind),
]

/**
 * Whether the server serves the kind. Also true for errors other than NotFound, such as a missing permission, which the informer
 * reports.
 */
async function isServed(client: Client, kind: Kind, options: { namespace?: string; signal: AbortSignal }): Promise<boolean> {
  try {
    await client.list(kind, { ...options, limit: 1, metadataOnly: true })
    return true
  } catch (err) {
    options.signal.throwIfAborted()
    return !isReason(err, 'NotFound')
  }
}
