/** The state of one store as the log tells it: objects by key, the newest revision, and the changes that led there. */
import type { KubeObject } from '@capstan/kube'
import { type Hold, holdObjects, jsonOf } from './packed.ts'
import type { Change, StoreKey } from './store.ts'

export interface Stored {
  readonly key: StoreKey
  readonly object: KubeObject
}

/** A change, and when it was made: milliseconds since the epoch, by the clock of whoever made it. */
export interface TimedChange {
  readonly change: Change
  readonly time: number
}

export interface Image {
  revision: number
  readonly objects: Map<string, Stored>
  /** Oldest first, without gaps up to `revision`. Kept until the store is opened: from then on, history is its business. */
  changes: TimedChange[]
}

export type Images = Map<string, Image>

export const emptyImage = (): Image => ({ revision: 0, objects: new Map(), changes: [] })

/** A line of a log frame. */
export type Entry =
  | {
      readonly store: string
      readonly revision: number
      readonly time: number
      readonly key: readonly [resource: string, namespace: string, name: string]
      /** Absent: deleted. */
      readonly object?: KubeObject
    }
  | { readonly store: string; readonly removed: true }

export function changeLine(store: string, { revision, key, object }: Change, time: number): string {
  const head = JSON.stringify({ store, revision, time, key: [key.resource, key.namespace, key.name] })
  return object === undefined ? head : `${head.slice(0, -1)},"object":${jsonOf(object)}}`
}

export const removalLine = (store: string): string => JSON.stringify({ store, removed: true } satisfies Entry)

/** What a line says, done to `images`. @throws when it does not follow from what is there */
export function replay(images: Images, entry: Entry, hold: Hold = holdObjects): void {
  if ('removed' in entry) {
    images.delete(entry.store)
    return
  }
  const image = images.get(entry.store) ?? emptyImage()
  if (entry.revision !== image.revision + 1)
    throw new Error(`revision ${entry.revision} of store ${entry.store} follows upon revision ${image.revision}`)
  images.set(entry.store, image)
  const [resource, namespace, name] = entry.key
  const key: StoreKey = { resource, namespace, name }
  const previous = image.objects.get(idOf(key))?.object
  const object = entry.object && hold(entry.object)
  const change: Change = Object.freeze({ revision: entry.revision, key, previous, object })
  applyTo(image, change)
  image.changes.push({ change, time: entry.time })
}

export function applyTo(image: Image, { revision, key, object }: Change): void {
  image.revision = revision
  if (object) image.objects.set(idOf(key), { key, object })
  else image.objects.delete(idOf(key))
}

/** Joined, unlike put together, it is one string and not four that are parts of each other. */
const idOf = ({ resource, namespace, name }: StoreKey): string => [resource, namespace, name].join('/')
