/**
 * Stale reads made harmless: what one pass writes is noted, and its key waits until the cache has seen it. This is what prevents
 * a second Machine when a pass runs again before the first one's creation has come back.
 */
import type { ApiRequest, Client, Clock, Kind, KubeObject, ObjectKey, Transport } from '@capstan/kube'
import { createClient, keyOf, keyText } from '@capstan/kube'
import type { Informers } from './cache.ts'

interface OwnWrite {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly key: string
  readonly revision: number
}

export interface OwnWrites {
  readonly client: Client
  /** True when the server stored something new for this pass; writes that changed nothing do not count. */
  readonly changed: boolean
  /** Resolves when the cache has seen every write of the pass; `undefined` when it has already. */
  seen(): Promise<void> | undefined
}

/** Verbs that store something. A dry run stores nothing. */
const writing: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete'])

/** A client for one pass over `client`, which notes what the pass writes. */
export function noteWrites(client: Client, informers: Informers): OwnWrites {
  const writes: OwnWrite[] = []
  const { transport } = client
  let changed = false

  const noting: Transport = {
    watch: (request, signal) => transport.watch(request, signal),
    close: () => transport.close(),
    async send(request, signal) {
      if (!writing.has(request.verb) || request.options?.dryRun) return transport.send(request, signal)
      const informer = informers.find(kindOf(request))
      // As it is known before: in one process the cache may have the answer sooner than we do.
      const known = request.name === undefined ? undefined : informer?.get(targetOf(request))?.metadata.resourceVersion
      const answer = (await transport.send(request, signal)) as KubeObject
      const revision = answer.kind === 'Status' ? undefined : answer.metadata?.resourceVersion
      if (revision !== undefined && revision === known) return answer
      changed = true
      // A deletion that left nothing behind is answered by a Status: there is no revision to wait for.
      if (informer && revision !== undefined) {
        writes.push({ ...kindOf(request), key: keyText(keyOf(answer)), revision: Number(revision) })
      }
      return answer
    },
  }
  return {
    client: createClient(noting),
    get changed() {
      return changed
    },
    seen() {
      const waiting = writes.flatMap((write) => informers.find(kindOf(write))?.seen(write.key, write.revision) ?? [])
      return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
    },
  }
}

const targetOf = ({ namespace, name = '' }: ApiRequest): ObjectKey => (namespace === undefined ? { name } : { namespace, name })

const kindOf = ({ group, version, plural }: { group: string; version: string; plural: string }): Kind => ({
  group,
  version,
  plural,
  kind: '',
  scope: 'Namespaced',
})

/** `promise`, or the end of `ms` if that comes first: a watch that is broken must not hold a key for ever. */
export function within(promise: Promise<void>, ms: number, clock: Clock): Promise<'done' | 'late'> {
  return new Promise((resolve) => {
    const timer = clock.schedule(ms, () => resolve('late'))
    void promise.then(() => {
      timer.cancel()
      resolve('done')
    })
  })
}
