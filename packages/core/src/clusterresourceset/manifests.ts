/**
 * Parses the objects in the values of a Secret or ConfigMap, sorts them in the order in which they are applied, and hashes the values. Pure.
 * Upstream: core/reconcilers/clusterresourceset/clusterresourceset_helpers.go, util/yaml and util/resource, v1.14.
 */
import { createHash } from 'node:crypto'
import type { ResourceRef } from '@capstan/api'
import { type ConfigMap, isRecord, keyOf, keyText, type Secret, withErrorContext, yamlOptions } from '@capstan/kube'
import { parse as parseYaml, YAMLParseError } from 'yaml'

/** An object of any kind as written by a user: no field is validated. */
export interface Manifest {
  apiVersion?: string
  kind?: string
  metadata?: { name?: string; namespace?: string; [field: string]: unknown }
  [field: string]: unknown
}

export interface Manifests {
  /** `sha256:…` over all values, sorted by key. */
  readonly hash: string
  readonly objects: readonly Manifest[]
}

/**
 * Parses all values of a Secret or ConfigMap, sorted by key. The objects are sorted only within each value.
 * @throws Error when the field `data` is missing, or a value is shorter than 32 bytes or cannot be read as YAML documents with objects or as a
 * JSON list of objects. The error does not quote the value, which may be secret
 */
export function readManifests(source: Secret | ConfigMap, kind: ResourceRef['kind']): Manifests {
  const { data } = source
  if (!data) throw new Error(`failed to get data field from resource ${keyText(keyOf(source))}`)
  const values = Object.keys(data)
    .sort()
    .map((key) => Buffer.from(data[key]!, kind === 'Secret' ? 'base64' : 'utf8'))
  const hash = createHash('sha256')
  for (const value of values) hash.update(value)
  return { hash: `sha256:${hash.digest('hex')}`, objects: values.flatMap(objectsIn) }
}

function objectsIn(value: Buffer): Manifest[] {
  // Upstream reads the first 32 bytes to detect the format, and fails with EOF when there are fewer.
  if (value.length < 32) throw new Error('EOF')
  const text = value.toString('utf8')
  const objects = text.slice(0, 32).trimStart().startsWith('[') ? objectsInList(text) : objectsInDocuments(text)
  return objects.sort((a, b) => orderOf(a) - orderOf(b))
}

function objectsInList(text: string): Manifest[] {
  let items: unknown
  try {
    items = JSON.parse(text)
  } catch {
    throw new Error('failed converting data to objects: not a valid JSON list')
  }
  if (!Array.isArray(items) || !items.every(isRecord))
    throw new Error('failed converting data to objects: not a JSON list of objects')
  return items as Manifest[]
}

function objectsInDocuments(text: string): Manifest[] {
  // As upstream, only spaces and a comment may follow `---` on the same line.
  const lineNumber = text.split('\n').findIndex((line) => /^---\s*[^\s#]/.test(line)) + 1
  if (lineNumber > 0) {
    throw new Error(
      `failed converting data to unstructured objects: failed to read YAML: text after the document separator in line ${lineNumber}`,
    )
  }
  const objects: Manifest[] = []
  for (const document of text.split(/^---[^\n]*(?:\n|$)/m)) {
    const position = objects.length + 1
    const value = withErrorContext(
      `failed converting data to unstructured objects: failed to unmarshal YAML document ${position}`,
      () => readDocument(document),
    )
    if (value) objects.push(value)
  }
  return objects
}

/** Parses one document; returns `undefined` for an empty one. */
function readDocument(text: string): Manifest | undefined {
  let value: unknown
  try {
    value = parseYaml(text, yamlOptions)
  } catch (err) {
    // The parser's message would quote the text.
    const [position] = err instanceof YAMLParseError ? (err.linePos ?? []) : []
    throw new Error(position ? `invalid YAML in line ${position.line}` : 'invalid YAML')
  }
  if (value === null || value === undefined) return undefined
  if (!isRecord(value)) throw new Error('not an object')
  return value as Manifest
}

/**
 * Kinds that are applied first, in this order. Upstream: orderMapping in util/resource. `Endpoint` is upstream's misspelling: objects of the
 * kind Endpoints are therefore not applied first.
 */
const CreationOrder = [
  'Namespace',
  'CustomResourceDefinition',
  'StorageClass',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Secret',
  'ConfigMap',
  'ServiceAccount',
  'LimitRange',
  'Pod',
  'ReplicaSet',
  'Endpoint',
]

function orderOf({ kind }: Manifest): number {
  const index = CreationOrder.indexOf(String(kind))
  return index < 0 ? CreationOrder.length : index
}
