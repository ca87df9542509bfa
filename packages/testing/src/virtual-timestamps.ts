/**
 * Gives controllers under test virtual times instead of the creation and deletion times of a real API server. A client receives, instead of
 * such a time, the virtual time when a client first received it. In objects of requests, the server's time is restored.
 */
import type { ApiRequest, Clock, KubeObject, ObjectMeta, Transport, WatchEvent } from '@capstan/kube'
import { freeze, isRecord, timestamp } from '@capstan/kube'

/** Converts the creation and deletion times of one server. Clients whose transports the same instance wraps read the same times. */
export interface VirtualTimestamps {
  /** Returns a transport that converts creation and deletion times in objects of requests, responses and watch events. */
  wrap(transport: Transport): Transport
}

const timestampFields = ['creationTimestamp', 'deletionTimestamp'] as const
type TimestampField = (typeof timestampFields)[number]

/** Returns the converter for one server. `clock` is the virtual clock. */
export function virtualTimestamps(clock: Clock): VirtualTimestamps {
  const timesByFieldAndUid = new Map<string, { readonly real: string; readonly virtual: string }>()

  const virtualTimeOf = (metadata: ObjectMeta, field: TimestampField): string | undefined => {
    const real = metadata[field]
    if (real === undefined) return undefined
    const id = `${field} ${metadata.uid}`
    let times = timesByFieldAndUid.get(id)
    if (!times) timesByFieldAndUid.set(id, (times = { real, virtual: timestamp(clock.now()) }))
    return times.virtual
  }
  const inbound = <T>(object: T): T => {
    if (!isRecord(object) || !isRecord(object.metadata)) return object
    if (Array.isArray(object.items)) return freeze({ ...object, items: object.items.map(inbound) })
    const metadata = object.metadata as unknown as ObjectMeta
    if (metadata.uid === undefined) return object
    const virtual = Object.fromEntries(
      timestampFields.map((field) => [field, virtualTimeOf(metadata, field)]).filter(([, time]) => time !== undefined),
    )
    return freeze({ ...object, metadata: { ...metadata, ...virtual } })
  }
  const outbound = (request: ApiRequest): ApiRequest => {
    const { body } = request
    if (!isRecord(body) || !isRecord(body.metadata)) return request
    const metadata = { ...body.metadata }
    for (const field of timestampFields) {
      const real = timesByFieldAndUid.get(`${field} ${String(metadata.uid)}`)?.real
      if (real !== undefined && metadata[field] !== undefined) metadata[field] = real
    }
    return { ...request, body: { ...body, metadata } }
  }
  return {
    wrap: (transport) => ({
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
