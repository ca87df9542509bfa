/** Decodes and encodes `metadata.managedFields`: the entries of managers with their fields and times. */
import type { Work } from '../clock.ts'
import { compareText } from '../compare-text.ts'
import type { ManagedFieldsEntry } from '../object.ts'
import { union } from './field-set.ts'
import { decodeFields, encodeFields } from './fields-v1.ts'
import type { Owned } from './updater.ts'

/** Identity of an entry's manager. `managerId` returns its key. */
export interface Manager {
  readonly manager: string
  readonly operation: ManagedFieldsEntry['operation']
  readonly apiVersion: string
  readonly subresource: string
}

export interface Entry extends Manager {
  readonly owned: Owned
  readonly time: string | undefined
}

/** Entries by the key of their manager. */
export type Entries = Map<string, Entry>

/** Returns the key of a manager. Upstream: the version is part of the key for Update entries, not for Apply entries. */
export const managerId = ({ manager, operation, apiVersion, subresource }: Manager): string =>
  JSON.stringify({
    manager,
    operation,
    ...(operation === 'Apply' ? {} : { apiVersion }),
    ...(subresource === '' ? {} : { subresource }),
  })

/** Names a manager in conflict messages: `"kubectl-edit" with subresource "scale" using apps/v1`. */
export function managerText(id: string): string {
  const { manager, operation, apiVersion, subresource } = JSON.parse(id) as Partial<Manager>
  const nameText = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : '')
  return operation === 'Update' ? `${nameText} using ${apiVersion}` : nameText
}

/** Decodes the entries of an object. @throws Error when an entry is invalid */
export function decodeEntries(list: readonly ManagedFieldsEntry[] | undefined): Entries {
  const entries: Entries = new Map()
  for (const [index, { manager = '', operation, apiVersion, subresource = '', time, fieldsType, fieldsV1 }] of (
    list ?? []
  ).entries()) {
    if (operation !== 'Apply' && operation !== 'Update') throw new Error('operation must be `Apply` or `Update`')
    if (!apiVersion) throw new Error('apiVersion must not be empty')
    if (!fieldsType) throw new Error(`missing fieldsType in managed fields entry ${index}`)
    if (fieldsType !== 'FieldsV1') {
      throw new Error(`invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`)
    }
    const owned: Owned = { apiVersion, applied: operation === 'Apply', fields: decodeFields(fieldsV1) }
    entries.set(managerId({ manager, operation, apiVersion, subresource }), {
      manager,
      operation,
      apiVersion,
      subresource,
      owned,
      time,
    })
  }
  return entries
}

/** Encodes the entries in upstream's order: by operation, time, manager, version and subresource. */
export function* encodeEntries(entries: Entries): Work<ManagedFieldsEntry[]> {
  const encoded: ManagedFieldsEntry[] = []
  for (const { manager, operation, owned, time, subresource } of [...entries.values()].sort(inOrder)) {
    encoded.push({
      manager,
      operation,
      apiVersion: owned.apiVersion,
      ...(time === undefined ? {} : { time }),
      fieldsType: 'FieldsV1',
      fieldsV1: yield* encodeFields(owned.fields),
      ...(subresource === '' ? {} : { subresource }),
    })
  }
  return encoded
}

function inOrder(a: Entry, b: Entry): number {
  return (
    compareText(a.operation, b.operation) ||
    secondsOf(a) - secondsOf(b) ||
    compareText(a.manager, b.manager) ||
    compareText(a.owned.apiVersion, b.owned.apiVersion) ||
    compareText(a.subresource, b.subresource)
  )
}

const secondsOf = ({ time }: Entry): number => (time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0)

const MaxUpdaters = 10
const AncientChanges = 'ancient-changes'

/** While there are more than ten Update entries, merges the oldest ones of each version into one entry, as upstream does. */
export function mergeOldest(entries: Entries): void {
  const updaters = [...entries].filter(([, { operation }]) => operation === 'Update')
  let count = updaters.length
  if (count <= MaxUpdaters) return
  updaters.sort(([a, x], [b, y]) => secondsOf(x) - secondsOf(y) || compareText(a, b))
  const oldestByVersion = new Map<string, string>()
  for (const [id, { owned, time }] of updaters) {
    if (count <= MaxUpdaters) return
    const { apiVersion } = owned
    const oldestId = oldestByVersion.get(apiVersion)
    if (oldestId === undefined) {
      oldestByVersion.set(apiVersion, id)
      continue
    }
    const bucket: Manager = { manager: AncientChanges, operation: 'Update', apiVersion, subresource: '' }
    const bucketId = managerId(bucket)
    const older = entries.get(bucketId) ?? entries.get(oldestId)
    if (!entries.has(bucketId)) entries.delete(oldestId)
    if (id !== bucketId) entries.delete(id)
    const fields = older ? union(owned.fields, older.owned.fields) : owned.fields
    entries.set(bucketId, { ...bucket, owned: { ...owned, fields }, time })
    count--
  }
}
