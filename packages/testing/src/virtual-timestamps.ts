/**
 * Converts the timestamps of a real server to virtual time for controllers under test: creation and deletion times become the
 * virtual time of the request, or the time when the object was first seen.
 */
import type { ApiRequest, Clock, KubeObject, ObjectMeta, Transport, WatchEvent } from '@capstan/kube'
import { freeze, isRecord, timestamp } from '@capstan/kube'

/** Times by object. All clients of one server share them, so that they read the same times. */
export interface VirtualTimestamps {
  over(transport: Transport): Transport
}

const stamps = ['creationTimestamp', 'deletionTimestamp'] as const
type Stamp = (typeof stamps)[number]

export function virtualTimestamps(clock: Clock): VirtualTimestamps {
  const timesByStamp = new Map<string, { readonly real: string; readonly virtual: string }>()

  const virtualTimeOf = (metadata: ObjectMeta, stamp: Stamp): string | undefined => {
    const real = metadata[stamp]
    if (real === undefined) return undefined
    const id = `${stamp} ${metadata.uid}`
    let times = timesByStamp.get(id)
    if (!times) timesByStamp.set(id, (times = { real, virtual: timestamp(clock.now()) }))
    return times.virtual
  }
  const inbound = <T>(object: T): T => {
    if (!isRecord(object) || !isRecord(object.metadata)) return object
    if (Array.isArray(object.items)) return freeze({ ...object, items: object.items.map(inbound) })
    const metadata = object.metadata as unknown as ObjectMeta
    if (metadata.uid === undefined) return object
    const virtual = Object.fromEntries(
      stamps.map((stamp) => [stamp, virtualTimeOf(metadata, stamp)]).filter(([, time]) => time !== undefined),
    )
    return freeze({ ...object, metadata: { ...metadata, ...virtual } })
  }
  const outbound = (request: ApiRequest): ApiRequest => {
    const { body } = request
    if (!isRecord(body) || !isRecord(body.metadata)) return request
    const metadata = { ...body.metadata }
    for (const stamp of stamps) {
      const real = timesByStamp.get(`${stamp} ${String(metadata.uid)}`)?.real
      if (real !== undefined && metadata[stamp] !== undefined) metadata[stamp] = real
    }
    return { ...request, body: { ...body, metadata } }
  }
  return {
    over: (transport) => ({
      close: () => transport.close(),
      send: async (request, signal) => inbound(await transport.send(outbound(request), signal)),
      async watch(request, signal) {
        const events = await transport.watch(request, signal)
        return (async function* () {
          for await (const event of events)
            yield (event.type === 'BOOKMARK' ? event : { ...event, object: inbound<KubeObject>(event.object) }) as WatchEvent
        })()
      },
    }),
  }
}
