/** Compares the fields and field managers of objects before and after a takeover by another core. */
import { isRecord, type KubeObject } from '@capstan/kube'

/** The fields of an object that a takeover must not change: JSON values by path. */
export type ComparedFields = ReadonlyMap<string, string>

/**
 * Returns the fields of an object and their field managers, without the status and its managers, resourceVersion, and the times in
 * managedFields.
 */
export function comparedFields(object: KubeObject): ComparedFields {
  const { metadata, status: _status, ...otherFields } = object as KubeObject & { readonly status?: unknown }
  const { resourceVersion: _version, managedFields = [], ...rest } = metadata
  const managers = managedFields
    .filter(({ subresource }) => subresource !== 'status')
    .map(({ fieldsV1, ...entry }) => [
      [entry.manager, entry.operation, entry.apiVersion, entry.subresource].join(' ').trim(),
      fieldsV1,
    ])
  return new Map(fieldsOf({ metadata: { ...rest, managedFields: Object.fromEntries(managers) }, ...otherFields }, ''))
}

function* fieldsOf(value: unknown, path: string): Iterable<[string, string]> {
  const entries = isRecord(value) || Array.isArray(value) ? Object.entries(value) : []
  for (const [name, member] of entries) yield* fieldsOf(member, path === '' ? name : `${path}.${name}`)
  if (entries.length === 0) yield [path, JSON.stringify(value)]
}

/** Returns a text for each object whose fields differ. The UID is one of them, so an object that was deleted and created again differs. */
export function changes(before: ReadonlyMap<string, ComparedFields>, after: ReadonlyMap<string, ComparedFields>): string[] {
  const none: ComparedFields = new Map()
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [previous, current] = [before.get(name) ?? none, after.get(name) ?? none]
    const paths = [...new Set([...previous.keys(), ...current.keys()])].filter((path) => previous.get(path) !== current.get(path))
    const sides = (path: string) => `${path}: ${previous.get(path) ?? 'absent'} -> ${current.get(path) ?? 'absent'}`
    return paths.length === 0 ? [] : [`${name}: ${paths.map(sides).join(', ')}`]
  })
}

/** Returns `- NAME UID` for each object that is only in `before`, and `+ NAME UID` for each object that is only in `after`. */
export function replaced(before: readonly KubeObject[], after: readonly KubeObject[]): string[] {
  const [previous, current] = [before, after].map((objects) => objects.map(identity)) as [string[], string[]]
  return [
    ...previous.filter((entry) => !current.includes(entry)).map((entry) => `- ${entry}`),
    ...current.filter((entry) => !previous.includes(entry)).map((entry) => `+ ${entry}`),
  ]
}

/** Returns `NAME UID`. */
export const identity = ({ metadata }: KubeObject): string => `${metadata.name} ${metadata.uid}`

/** Returns whether the labels `keep` and `go` of an object are exactly those of `labels`. Other labels are ignored. */
export const hasExactly = (labels: { readonly [label: string]: string }, { metadata }: KubeObject): boolean =>
  ['keep', 'go'].every((label) => metadata.labels?.[label] === labels[label])
