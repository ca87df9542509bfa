/**
 * Normalizes the objects of a test case, and compares those of upstream's core with those of Capstan's core. Normalization replaces values
 * that differ in each run, such as UIDs, times and random suffixes, with placeholders.
 */
import { type Machine, NodeOutdatedRevisionTaint } from '@capstan/api'
import { isRecord, type KubeObject, type Node } from '@capstan/kube'
import type { ObservedObjects } from './side.ts'

/** Values of fields by their paths, for each object by its kind and name. The entry `Events` has a path for each Event. */
export type NormalizedObjects = ReadonlyMap<string, ReadonlyMap<string, string>>

const replacements: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'UID'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/127\.0\.0\.1:\d+/g, 'SERVER'],
  // The hash of a template and the suffix that makes it unique.
  [/\b\d{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, 'HASH-*'],
  [/-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])/g, '-*'],
]

/** Replaces UIDs, times, server addresses, hashes and random suffixes with placeholders. */
export const normalText = (text: string): string =>
  replacements.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text)

/**
 * Normalizes all objects except the ConfigMap `kube-root-ca.crt`. Objects whose names differ only by a random suffix are numbered in the
 * order of their content.
 */
export function normalized({ objects, updated }: ObservedObjects): NormalizedObjects {
  const fieldsByName = new Map<string, Map<string, string>[]>()
  const events = new Map<string, string>()
  const nodesOfMachines = new Set(
    [...objects.values()].flatMap(({ object }) =>
      object.kind === 'Machine' ? ((object as Machine).status?.nodeRef?.name ?? []) : [],
    ),
  )
  for (const { kind, object: reported } of objects.values()) {
    if (isRootCertificates(kind, reported)) continue
    const object = kind === 'Node' && !nodesOfMachines.has(reported.metadata.name) ? withoutOutdatedTaint(reported) : reported
    if (kind === 'Event') {
      events.set(eventText(object), reportsUnchanged(object, updated) ? RecordedWithoutChange : 'recorded')
      continue
    }
    const name = normalText(`${kind.split('.')[0]} ${object.metadata.name}`)
    const sameName = fieldsByName.get(name)
    const fields = fieldsOf(kind, object)
    if (sameName) sameName.push(fields)
    else fieldsByName.set(name, [fields])
  }
  const normalizedObjects = new Map<string, ReadonlyMap<string, string>>([['Events', events]])
  for (const [name, sameName] of [...fieldsByName].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const ordered = sameName
      .map((fields) => ({ fields, content: contentOf(fields) }))
      .sort((a, b) => (a.content < b.content ? -1 : 1))
    ordered.forEach(({ fields }, index) => normalizedObjects.set(index === 0 ? name : `${name} (${index + 1})`, fields))
  }
  return normalizedObjects
}

/**
 * Removes the taint of outdated Nodes, and all taints in managedFields, from a Node without a Machine. Whether the Node has
 * this taint depends on when the Machine was deleted.
 */
function withoutOutdatedTaint(node: Node): Node {
  const { taints: allTaints = [], ...spec } = node.spec ?? {}
  const taints = allTaints.filter(({ key }) => key !== NodeOutdatedRevisionTaint.key)
  const managedFields = (node.metadata.managedFields ?? []).map((entry) => {
    const { 'f:spec': fields, ...others } = entry.fieldsV1 as { readonly [field: string]: object }
    const { 'f:taints': _taints, ...rest } = (fields ?? {}) as { readonly [field: string]: object }
    return { ...entry, fieldsV1: Object.keys(rest).length > 0 ? { ...others, 'f:spec': rest } : others }
  })
  return { ...node, metadata: { ...node.metadata, managedFields }, spec: taints.length > 0 ? { ...spec, taints } : spec }
}

/**
 * Value of an Event `Updated MachineDeployment` or `Updated MachinePool` about an object that is not in `ObservedObjects.updated`. The text
 * of an Event about a new version continues with the versions, so it does not have this value.
 */
export const RecordedWithoutChange = 'recorded without a change'

function reportsUnchanged(event: KubeObject, updated: ReadonlySet<string>): boolean {
  const { message } = event as { message?: string }
  const [, name] = /^Updated Machine(?:Deployment|Pool) "[^"]*\/([^"/]+)"$/.exec(message ?? '') ?? []
  return name !== undefined && !updated.has(name)
}

/** Whether an object is the ConfigMap that kube-controller-manager creates in each namespace. */
const isRootCertificates = (kind: string, { metadata }: KubeObject): boolean =>
  kind === 'ConfigMap' && metadata.name === 'kube-root-ca.crt'

const contentOf = (fields: ReadonlyMap<string, string>): string =>
  JSON.stringify([...fields].filter(([path]) => !path.startsWith('metadata.managedFields')).sort(([a], [b]) => (a < b ? -1 : 1)))

/**
 * Returns how often an Event with the given path in the comparison was recorded, and the times of the first and the last recording, in
 * milliseconds since the epoch.
 */
export function recordingsOf({ objects }: ObservedObjects, path: string): { count: number; first: number; last: number } {
  const events = [...objects.values()]
    .filter(({ kind, object }) => kind === 'Event' && eventText(object) === path)
    .map(({ object }) => object as { count?: number; firstTimestamp?: string; lastTimestamp?: string })
  return {
    count: events.reduce((sum, { count = 1 }) => sum + count, 0),
    first: Math.min(...events.map(({ firstTimestamp = '' }) => Date.parse(firstTimestamp))),
    last: Math.max(...events.map(({ lastTimestamp = '' }) => Date.parse(lastTimestamp))),
  }
}

function eventText(event: KubeObject): string {
  const { involvedObject, type, reason, message, source, reportingComponent } = event as never as {
    involvedObject: { kind?: string; name?: string }
    type?: string
    reason?: string
    message?: string
    source?: { component?: string }
    reportingComponent?: string
  }
  const component = source?.component || reportingComponent || ''
  return normalText(`${involvedObject.kind} ${involvedObject.name}: ${type} ${reason} of ${component}: ${message}`)
}

const omittedMetadata = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'selfLink', 'managedFields'])

/**
 * Names of the field managers that the two cores use for updates. In the paths of the comparison, both have the name `core`, so that only
 * the values differ; `explained.ts` accepts this difference.
 */
export const CoreManagers = { theirs: 'manager', ours: 'capstan' } as const

/** Sorts the list entries of a message about objects with random names, because these names determine the order of the entries. */
function inNormalOrder(message: string): string {
  const parts = message.split(/\n(?=\* )/)
  return parts.every((part) => /^\* \w+ [\w-]*-\*/.test(part)) ? parts.toSorted((a, b) => (a < b ? -1 : 1)).join('\n') : message
}

function fieldsOf(kind: string, object: KubeObject): Map<string, string> {
  const fields = new Map<string, string>()
  const { generation } = object.metadata
  const add = (path: string, value: unknown): void => {
    if (path === 'apiVersion' || path === 'kind') return
    if (/(^|\.)observedGeneration$/.test(path)) value = value === generation ? 'current' : value === 0 ? 0 : 'stale'
    // Each side has its own certificate authority.
    if (path === 'spec.clientConfig.caBundle') value = 'authority'
    // Kubeconfigs and keys differ between the workload API servers of both sides.
    if (kind === 'Secret' && path.startsWith('data.')) value = 'secret'
    if (Array.isArray(value)) {
      if (value.length === 0) fields.set(path, '[]')
      if (path === 'metadata.finalizers' && hasTopologyFinalizer(value))
        value = value.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
      ;(value as unknown[]).forEach((item, index) => add(`${path}[${keyOfItem(path, item, index)}]`, item))
    } else if (isRecord(value)) {
      const entries = Object.entries(value).filter(([name]) => path !== 'metadata' || !omittedMetadata.has(name))
      if (entries.length === 0) fields.set(path, '{}')
      for (const [name, inner] of entries) add(path === '' ? name : `${path}.${normalText(name)}`, inner)
    } else {
      const text = normalText(typeof value === 'string' ? value : JSON.stringify(value))
      fields.set(path, path.endsWith('.message') ? inNormalOrder(text) : text)
    }
  }
  add('', object)
  for (const entry of object.metadata.managedFields ?? []) {
    const { manager = '', operation = '', subresource } = entry as { manager?: string; operation?: string; subresource?: string }
    const isCore = operation === 'Update' && (manager === CoreManagers.theirs || manager === CoreManagers.ours)
    const prefix = `metadata.managedFields[${isCore ? 'core' : manager} ${operation}${subresource === undefined ? '' : ` ${subresource}`}]`
    for (const path of ownedPaths((entry as { fieldsV1?: unknown }).fieldsV1))
      fields.set(`${prefix} ${normalText(path)}`, isCore ? manager : 'owned')
  }
  return fields
}

/** Whether the finalizers include that of a topology controller. Another controller adds the other finalizers, so their order varies. */
const hasTopologyFinalizer = (finalizers: readonly unknown[]): boolean =>
  finalizers.some((finalizer) => /^machine(deployment|set)\.topology\.cluster\.x-k8s\.io$/.test(String(finalizer)))

function keyOfItem(path: string, item: unknown, index: number): string {
  if (!isRecord(item)) return String(index)
  if (/conditions$/i.test(path) && typeof item.type === 'string') return item.type
  if (path === 'metadata.ownerReferences') return normalText(`${String(item.kind)} ${String(item.name)}`)
  return String(index)
}

/** Yields every path of a set of fields (FieldsV1), without the prefixes `f:`, `k:` and `v:`. */
function* ownedPaths(fields: unknown, path = ''): Iterable<string> {
  if (!isRecord(fields)) return
  for (const [name, inner] of Object.entries(fields)) {
    if (name === '.') {
      yield path
      continue
    }
    const innerPath = name.startsWith('f:') ? `${path}.${name.slice(2)}` : `${path}[${name.slice(2)}]`
    if (isRecord(inner) && Object.keys(inner).length > 0) yield* ownedPaths(inner, innerPath)
    else yield innerPath
  }
}

interface Cause {
  readonly field?: string
  readonly message?: string
}

/** Removes duplicate causes, because upstream lists some causes twice, and sorts the errors of schema validation. */
function normalCauses({ message, details }: { readonly message?: unknown; readonly details?: unknown }): object {
  if (!isRecord(details) || !Array.isArray(details.causes)) return {}
  const causes = details.causes as readonly Cause[]
  const texts = causes.map((cause) => JSON.stringify(cause))
  const sorted = sortSchemaErrors(causes.filter((_, index) => texts.indexOf(texts[index]!) === index))
  const listOf = (some: readonly Cause[]) => `[${some.map((cause) => `${cause.field}: ${cause.message}`).join(', ')}]`
  return { details: { ...details, causes: sorted }, message: String(message).replace(listOf(causes), () => listOf(sorted)) }
}

/**
 * Sorts the errors of schema validation among themselves. A real API server lists the errors of different fields in the random order of
 * a Go map.
 */
function sortSchemaErrors(causes: readonly Cause[]): Cause[] {
  const isOfSchema = ({ field, message }: Cause) => message?.includes(`${field} in body `) ?? false
  const sorted = causes.filter(isOfSchema).sort((a, b) => (a.message! < b.message! ? -1 : 1))
  return causes.map((cause) => (isOfSchema(cause) ? sorted.shift()! : cause))
}

/** Normalizes a response as if it were an object. */
export const normalizedResponse = (
  name: string,
  response: { code: number; warnings: readonly string[]; body: unknown },
): NormalizedObjects => {
  const body = isRecord(response.body) ? response.body : {}
  const object = { metadata: {}, ...body, ...normalCauses(body), 'HTTP code': response.code, warnings: response.warnings }
  return new Map([[name, fieldsOf('', object as unknown as KubeObject)]])
}

/** A field, object or response that is not the same on both sides. */
export interface Difference {
  readonly object: string
  readonly path: string
  /** Upstream's value; `undefined` if upstream has none. */
  readonly theirs: string | undefined
  /** Capstan's value; `undefined` if Capstan has none. */
  readonly ours: string | undefined
}

export function differencesOf(theirs: NormalizedObjects, ours: NormalizedObjects): Difference[] {
  const differences: Difference[] = []
  for (const object of new Set([...theirs.keys(), ...ours.keys()])) {
    const [their, our] = [theirs.get(object), ours.get(object)]
    if (!their || !our) {
      differences.push({ object, path: '', theirs: their && 'exists', ours: our && 'exists' })
      continue
    }
    for (const path of new Set([...their.keys(), ...our.keys()])) {
      const [theirValue, ourValue] = [their.get(path), our.get(path)]
      if (theirValue !== ourValue) differences.push({ object, path, theirs: theirValue, ours: ourValue })
    }
  }
  return differences
}

export const textOf = ({ object, path, theirs, ours }: Difference): string =>
  [
    `${object} ${path}`.trim(),
    ...(theirs === undefined ? [] : [`  - ${theirs}`]),
    ...(ours === undefined ? [] : [`  + ${ours}`]),
  ].join('\n')

/** Maximum number of paths that are printed for one object, field manager and side; further paths are only counted. */
const MaxPaths = 8

/** Formats differences. Differences in managedFields follow the others, grouped by object and field manager. */
export function report(differences: readonly Difference[]): string {
  const lines: string[] = []
  const pathsByManager = new Map<string, { theirs: string[]; ours: string[] }>()
  for (const difference of differences) {
    const [, manager, path] = /^metadata\.managedFields\[(.*?)\] (.*)$/.exec(difference.path) ?? []
    if (manager === undefined) {
      lines.push(textOf(difference))
      continue
    }
    const key = `${difference.object} is managed by ${manager}`
    const managerPaths = pathsByManager.get(key) ?? { theirs: [], ours: [] }
    pathsByManager.set(key, managerPaths)
    managerPaths[difference.theirs === undefined ? 'ours' : 'theirs'].push(path!)
  }
  for (const [key, { theirs, ours }] of pathsByManager) {
    lines.push(key)
    for (const [sign, paths] of [
      ['-', theirs],
      ['+', ours],
    ] as const) {
      lines.push(...paths.slice(0, MaxPaths).map((path) => `  ${sign} ${path}`))
      if (paths.length > MaxPaths) lines.push(`  ${sign} and ${paths.length - MaxPaths} more`)
    }
  }
  return lines.join('\n')
}
