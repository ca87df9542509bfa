/** Compares the fields and field managers of each object before and after a takeover. */
import { isRecord, type KubeObject } from '@capstan/kube'

/** The fields of an object that a takeover must not change: values by path. */
export type ComparedFields = ReadonlyMap<string, string>

/** Returns the fields of an object and their field managers, without status and resourceVersion. */
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

/** Returns the fields that differ, by object; an object of the same name with a different UID also differs. */
export function changes(before: ReadonlyMap<string, ComparedFields>, after: ReadonlyMap<string, ComparedFields>): string[] {
  const none: ComparedFields = new Map()
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [previous, current] = [before.get(name) ?? none, after.get(name) ?? none]
    const paths = [...new Set([...previous.keys(), ...current.keys()])].filter((path) => previous.get(path) !== current.get(path))
    const sides = (path: string) => `${path}: ${previous.get(path) ?? 'absent'} -> ${current.get(path) ?? 'absent'}`
    return paths.length === 0 ? [] : [`${name}: ${paths.map(sides).join(', ')}`]
  })
}

/** Returns the objects that are in only one of the lists, by name and UID. */
export function replaced(before: readonly KubeObject[], after: readonly KubeObject[]): string[] {
  const [previous, current] = [before, after].map((objects) => objects.map(identity)) as [string[], string[]]
  return [
    ...previous.filter((entry) => !current.includes(entry)).map((entry) => `- ${entry}`),
    ...current.filter((entry) => !previous.includes(entry)).map((entry) => `+ ${entry}`),
  ]
}

export const identity = ({ metadata }: KubeObject): string => `${metadata.name} ${metadata.uid}`

/** Whether an object has exactly these labels, of those that the takeover sets and removes. */
export const hasExactly = (labels: { readonly [label: string]: string }, { metadata }: KubeObject): boolean =>
  ['keep', 'go'].every((label) => metadata.labels?.[label] === labels[label])
