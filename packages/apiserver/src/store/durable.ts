/**
 * State that survives: one data folder, many named stores, one write-ahead log. What the stores of a folder commit at the same
 * time shares one synced write.
 *
 * Layout, in LevelDB (keys are text):
 *   format                                        version of this layout
 *   stores/<name>/revision                        revision of the last commit
 *   stores/<name>/objects/<resource>/<ns>/<name>  the object, as JSON
 *   stores/<name>/changes/<revision>              key of the change and what was stored before: enough to walk back from now
 */
import { ClassicLevel } from 'classic-level'
import { freeze, type KubeObject } from '@capstan/kube'
import { CoreStore, type Log, type Recovered, type StoreOptions } from './core.ts'
import type { Change, Store, StoreKey } from './store.ts'

/** The stores of one data folder. */
export interface DurableStores {
  /** The store of that name, empty when it is new. Opened once: the same name gives the same store until that is closed. */
  store(name: string, options?: StoreOptions): Promise<Store>
  /** Deletes a store with all it holds. */
  remove(name: string): Promise<void>
  close(): Promise<void>
}

const Format = '1'

export interface DurableOptions {
  /** Whether a write waits for the disk; else what the operating system has not written yet is lost with the machine (not with the process). */
  readonly sync?: boolean
}

/** Opens a data folder, made when absent. @throws when another process has it, or a later version wrote it. */
export async function openDurable(folder: string, { sync = true }: DurableOptions = {}): Promise<DurableStores> {
  const db = new ClassicLevel<string, string>(folder)
  try {
    await db.open()
  } catch (cause) {
    if ((cause as { cause?: { code?: string } }).cause?.code === 'LEVEL_LOCKED') {
      throw new Error(`Cannot open data folder ${folder}: it is in use by another process`, { cause })
    }
    throw new Error(`Cannot open data folder ${folder}: ${causeText(cause)}`, { cause })
  }
  const format = await db.get('format')
  if (format === undefined) await db.put('format', Format, { sync })
  else if (format !== Format) {
    await db.close()
    throw new Error(`Cannot open data folder ${folder}: it has format ${format}, and this version reads format ${Format} only`)
  }

  const write = groupCommit(db, sync)
  const open = new Map<string, Promise<Store>>()
  return {
    store(name, options) {
      const known = open.get(name)
      if (known) return known
      const opening = recover(db, name).then(
        (recovered) =>
          new CoreStore(
            logOf(name, write, () => open.delete(name)),
            recovered,
            options,
          ),
      )
      open.set(name, opening)
      opening.catch(() => open.delete(name))
      return opening
    },
    async remove(name) {
      await (await open.get(name))?.close()
      const prefix = prefixOf(name)
      // What makes the store look alive goes last: cut short, a removal can be asked for again.
      await db.clear({ gte: `${prefix}objects/`, lt: `${prefix}objects0` })
      await db.clear({ gte: prefix, lt: endOf(prefix) })
    },
    async close() {
      for (const store of await Promise.all(open.values())) await store.close()
      await db.close()
    },
  }
}

type Operation = { type: 'put'; key: string; value: string } | { type: 'del'; key: string }
type GroupWrite = (operations: Operation[]) => Promise<void>

/** One synced batch at a time; what arrives meanwhile, from whichever store, goes into the next. */
function groupCommit(db: ClassicLevel<string, string>, sync: boolean): GroupWrite {
  let waiting: Operation[] = []
  let next: Promise<void> | undefined
  let current: Promise<unknown> = Promise.resolve()
  return (operations) => {
    for (const operation of operations) waiting.push(operation)
    next ??= current.then(() => {
      const group = waiting
      waiting = []
      next = undefined
      const written = db.batch(group, { sync })
      current = written.catch(() => undefined)
      return written
    })
    return next
  }
}

function logOf(name: string, write: GroupWrite, closed: () => void): Log {
  const prefix = prefixOf(name)
  return {
    append(changes, forgotten) {
      const operations: Operation[] = forgotten.map((revision) => ({ type: 'del', key: changeKey(prefix, revision) }))
      for (const { revision, key, previous, object } of changes) {
        const at = objectKey(prefix, key)
        operations.push(object ? { type: 'put', key: at, value: JSON.stringify(object) } : { type: 'del', key: at })
        operations.push({ type: 'put', key: changeKey(prefix, revision), value: JSON.stringify({ key, previous }) })
      }
      operations.push({ type: 'put', key: `${prefix}revision`, value: String(changes.at(-1)!.revision) })
      return write(operations)
    },
    close() {
      closed()
      return Promise.resolve()
    },
  }
}

async function recover(db: ClassicLevel<string, string>, name: string): Promise<Recovered> {
  const prefix = prefixOf(name)
  const objects: [StoreKey, KubeObject][] = []
  const later = new Map<string, KubeObject>()
  const objectsPrefix = `${prefix}objects/`
  for await (const [at, text] of db.iterator({ gte: objectsPrefix, lt: `${prefix}objects0` })) {
    const [resource, namespace, object] = at.slice(objectsPrefix.length).split('/') as [string, string, string]
    const stored = freeze(JSON.parse(text) as KubeObject)
    objects.push([{ resource, namespace, name: object }, stored])
    later.set(at, stored)
  }
  // From the newest change backwards, what a change left behind is what the one after it found.
  const changes: Change[] = []
  for await (const [at, text] of db.iterator({ gte: `${prefix}changes/`, lt: `${prefix}changes0`, reverse: true })) {
    const { key, previous } = JSON.parse(text) as { key: StoreKey; previous?: KubeObject }
    const place = objectKey(prefix, key)
    const revision = Number(at.slice(at.lastIndexOf('/') + 1))
    changes.push(Object.freeze({ revision, key, previous: freeze(previous), object: later.get(place) }))
    if (previous) later.set(place, previous)
    else later.delete(place)
  }
  const revision = Number((await db.get(`${prefix}revision`)) ?? 0)
  return { revision, objects, changes: changes.reverse() }
}

const prefixOf = (store: string): string => `stores/${encodeURIComponent(store)}/`
/** The first key beyond a prefix that ends in '/': '0' follows it. */
const endOf = (prefix: string): string => `${prefix.slice(0, -1)}0`
const objectKey = (prefix: string, { resource, namespace, name }: StoreKey): string =>
  `${prefix}objects/${resource}/${namespace}/${name}`
/** Padded, so that keys sort as numbers do. */
const changeKey = (prefix: string, revision: number): string => `${prefix}changes/${String(revision).padStart(16, '0')}`

const causeText = (err: unknown): string => {
  const cause = (err as { cause?: unknown }).cause
  return cause instanceof Error ? cause.message : String(err)
}
