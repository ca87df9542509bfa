/** Records Events about objects for users. A repetition of one of the last `MaxRecent` Events increases the count of that Event, if it still exists. */
import type { Client, Clock, KubeObject, Logger, Random } from '@capstan/kube'
import { Event, isReason, keyText, keyOf, randomSuffix, shortened, timestamp } from '@capstan/kube'
import type { EventRecorder } from './controller.ts'

export interface EventRecorderOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface EventRecorders {
  /** Returns the recorder of one component, which becomes `source.component` of its Events. */
  of(component: string): EventRecorder
  /** Resolves when all Events recorded so far have been sent or rejected. */
  waitUntilSent(): Promise<void>
}

/** Number of recent Events that are kept to count repetitions. */
const MaxRecent = 1000
/** Maximum number of unsent Events. Further Events are dropped, so that memory stays bounded when the server is slow. */
const MaxQueued = 5000

interface Recent {
  readonly name: string
  readonly namespace: string
  readonly count: number
}

export function createEventRecorders({ client, clock, random, log }: EventRecorderOptions): EventRecorders {
  const recent = new Map<string, Recent>()
  let lastWrite = Promise.resolve()
  let waiting = 0

  async function write(
    component: string,
    object: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    now: string,
  ): Promise<void> {
    const identity = `${component}/${object.metadata.uid}/${type}/${reason}/${message}`
    const namespace = object.metadata.namespace ?? 'default'
    const earlierEvent = recent.get(identity)
    recent.delete(identity)
    if (earlierEvent) {
      const count = earlierEvent.count + 1
      recent.set(identity, { ...earlierEvent, count })
      try {
        await client.patch(Event, earlierEvent, { type: 'merge', body: { count, lastTimestamp: now } })
        return
      } catch (err) {
        if (!isReason(err, 'NotFound')) throw err
      }
    }
    const name = `${object.metadata.name.slice(0, 200)}.${randomSuffix(random, 16)}`
    await client.create(Event, {
      metadata: { name, namespace },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name: object.metadata.name,
        ...(object.metadata.namespace === undefined ? {} : { namespace: object.metadata.namespace }),
        uid: object.metadata.uid,
        resourceVersion: object.metadata.resourceVersion,
      },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    })
    recent.set(identity, { name, namespace, count: 1 })
    if (recent.size > MaxRecent) recent.delete(recent.keys().next().value!)
  }

  return {
    of: (component) => ({
      event(object, type, reason, message) {
        if (waiting >= MaxQueued) return
        waiting++
        const now = timestamp(clock.now())
        lastWrite = lastWrite.then(() =>
          write(component, object, type, reason, shortened(message, 1024), now)
            .catch((err) => {
              // The namespace may be terminating, and an Event is not worth a retry.
              log.debug('Cannot record event', { object: keyText(keyOf(object)), reason, err })
            })
            .finally(() => {
              waiting--
            }),
        )
      },
    }),
    waitUntilSent: () => lastWrite,
  }
}
