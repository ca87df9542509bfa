/** Converts objects between v1beta2 and older API versions, by upstream's Go types (`recorded-types.ts`) and by rules. */
import { type GroupKind, isRecord, type KubeObject, type ObjectMeta } from '@capstan/kube'
import { ConversionDataAnnotation } from '../core/well-known.ts'
import { decode, encodeStruct, fieldsOf, isList, isMap, isPointer, isStruct, nonZero, type Struct, zeroOf } from './go-types.ts'
import { restoreZero, copyRestored } from './restore.ts'
import { type ConversionScope, type Move, ruleOf } from './rules.ts'

/** Rules for the objects of a kind, in addition to the rules for their Go types. */
export interface KindRule {
  /** Whether the older version contains the object of v1beta2 in an annotation. */
  readonly keepsData?: true
  /** Paths of v1beta2 that get `false` or `0` only if the object in the annotation has this value there. */
  readonly zeros?: readonly string[]
  /** Paths of v1beta2 whose values come from the object in the annotation, if there is one, regardless of the value in the older version. */
  readonly restores?: readonly string[]
  /** Converts metadata to v1beta2. May also set fields of `stored` that follow from the metadata. */
  metadataUp?(metadata: ObjectMeta, stored: Struct): ObjectMeta
  /** Converts metadata to the older version. */
  metadataDown?(metadata: ObjectMeta, stored: Struct): ObjectMeta
}

/** Conversion of the objects of a kind between an older version and v1beta2. */
export interface Conversion {
  /** Go type of the older version. */
  readonly older: string
  /** Go type of v1beta2, the version in which objects are stored. */
  readonly stored: string
  /** apiVersion of the object of v1beta2. */
  readonly storedVersion: string
  readonly rule: KindRule
}

/** A converted object without apiVersion and kind, which the caller adds. */
export type Converted = Struct & { readonly metadata: ObjectMeta }

const fieldsOutsideBody = new Set(['apiVersion', 'kind', 'metadata'])
const isOutsideBody = (field: string): boolean => fieldsOutsideBody.has(field)

/** Converts an object of an older version to v1beta2. */
export function toStored({ older, stored, rule }: Conversion, object: KubeObject): Converted {
  const noScope: ConversionScope = { namespace: undefined, apiVersionOf: () => '' }
  const value = convertStruct('up', older, stored, bodyOf(older, object), noScope)
  let { metadata } = object
  const data = rule.keepsData ? metadata.annotations?.[ConversionDataAnnotation] : undefined
  const restored = data === undefined ? undefined : bodyOf(stored, parseData(data))
  for (const path of rule.zeros ?? []) restoreZero(value, restored, path)
  if (data !== undefined) metadata = withoutAnnotation(metadata, ConversionDataAnnotation)
  metadata = rule.metadataUp?.(metadata, value) ?? metadata
  if (restored) for (const path of rule.restores ?? []) copyRestored(value, restored, path)
  return { ...encodeStruct(stored, bodyOf(stored, value), isOutsideBody), metadata: withoutEmpty(metadata) }
}

/** Converts an object of v1beta2 to an older version. */
export function fromStored(
  { older, stored, storedVersion, rule }: Conversion,
  object: KubeObject,
  apiVersionOf: (kind: GroupKind) => string,
): Converted {
  const body = bodyOf(stored, object)
  const { namespace } = object.metadata
  const value = convertStruct('down', older, stored, body, { namespace, apiVersionOf })
  let metadata = rule.metadataDown?.(object.metadata, body) ?? object.metadata
  if (rule.keepsData) {
    const { kind } = object
    const storedObject = encodeStruct(stored, { ...body, kind, apiVersion: storedVersion }, (field) => field === 'metadata')
    metadata = { ...metadata, annotations: { ...metadata.annotations, [ConversionDataAnnotation]: goJSON(storedObject) } }
  }
  return { ...encodeStruct(older, bodyOf(older, value), isOutsideBody), metadata: withoutEmpty(metadata) }
}

/** Decodes all fields except apiVersion, kind and metadata as Go does. */
function bodyOf(type: string, object: object): Struct {
  const { apiVersion: _v, kind: _k, metadata: _m, ...body } = object as Struct
  return decode(`*${type}`, body) as Struct
}

function parseData(data: string): object {
  try {
    const value: unknown = JSON.parse(data)
    if (isRecord(value)) return value
  } catch {}
  throw new Error(
    `annotation ${ConversionDataAnnotation} does not contain a JSON object: remove it, or restore its earlier value`,
  )
}

/** Returns metadata without fields that are empty lists or maps, which Go does not write. */
function withoutEmpty(metadata: ObjectMeta): ObjectMeta {
  const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value))) as unknown as ObjectMeta
}

export function withoutAnnotation(metadata: ObjectMeta, name: string): ObjectMeta {
  const { [name]: _, ...annotations } = metadata.annotations ?? {}
  const { annotations: _a, ...rest } = metadata
  return Object.keys(annotations).length === 0 ? rest : { ...rest, annotations }
}

/** Formats JSON as Go does, which also escapes `<`, `>`, `&`, U+2028 and U+2029. */
const goJSON = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** `up` converts from the older version to v1beta2, `down` from v1beta2. */
type Direction = 'up' | 'down'

function convertStruct(direction: Direction, older: string, stored: string, value: Struct, scope: ConversionScope): Struct {
  const [from, to] = direction === 'up' ? [older, stored] : [stored, older]
  const { moves = [], skip, up, down } = ruleOf(older, stored)
  const converted: Struct = {}
  const sources = new Map(fieldsOf(from).map((field) => [field.name, field.type]))
  for (const { name, type } of fieldsOf(to)) {
    const source = sources.get(name)
    if (source === undefined || skip?.has(name)) continue
    const field = convertField(direction, source, type, value[name], scope)
    if (field !== undefined) converted[name] = field
  }
  for (const move of moves) applyMove(direction, move, value, converted, scope)
  if (direction === 'up') up?.(value, converted)
  else down?.(value, converted, scope)
  return converted
}

function convertField(direction: Direction, from: string, to: string, value: unknown, scope: ConversionScope): unknown {
  const target = to.replace(/^\*/, '')
  if (value === undefined) {
    // In Go, a struct without a pointer always exists: its fields may get values in the other version even when the struct is empty.
    if (isStruct(from) && isStruct(to)) return nonZero(convertValue(direction, from, to, {}, scope) as Struct)
    // Upstream converts zeros of older versions to pointers to zero. If this is wrong for a field, `zeros` of the kind's rule removes the
    // value.
    const pointsAtZero = direction === 'up' && isPointer(to) && !isPointer(from) && (target === 'bool' || target === 'int')
    return pointsAtZero ? zeroOf(target) : undefined
  }
  return convertValue(direction, from.replace(/^\*/, ''), target, value, scope)
}

function convertValue(direction: Direction, from: string, to: string, value: unknown, scope: ConversionScope): unknown {
  const convertedItem = (item: unknown) => convertItem(direction, from.slice(2), to.slice(2), item, scope)
  if (isList(to)) return (value as unknown[]).map(convertedItem)
  if (isMap(to)) return Object.fromEntries(Object.entries(value as Struct).map(([key, item]) => [key, convertedItem(item)]))
  if (!isStruct(to) || from === to) return value
  const [older, stored] = direction === 'up' ? [from, to] : [to, from]
  return convertStruct(direction, older, stored, value as Struct, scope)
}

/** Converts an item of a list or map. If only one version has pointers, `null` is converted to a struct without fields, and vice versa. */
function convertItem(direction: Direction, from: string, to: string, value: unknown, scope: ConversionScope): unknown {
  if (isPointer(from) && !isPointer(to) && value === null) return {}
  const converted = convertValue(direction, from.replace(/^\*/, ''), to.replace(/^\*/, ''), value, scope)
  return isPointer(to) && !isPointer(from) && isRecord(converted) && Object.keys(converted).length === 0 ? null : converted
}

function applyMove(
  direction: Direction,
  { older, stored, converter }: Move,
  value: Struct,
  converted: Struct,
  scope: ConversionScope,
): void {
  const [from, to] = direction === 'up' ? [older, stored] : [stored, older]
  const source = valueAt(value, from)
  if (source === undefined && !(converter?.always && direction === 'down')) return
  let target = source
  if (converter) target = direction === 'up' ? converter.up(source) : converter.down(source, scope)
  if (target !== undefined) setAt(converted, to, target)
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value)
}

function setAt(value: Struct, path: readonly string[], to: unknown): void {
  let inner = value
  for (const name of path.slice(0, -1)) inner = (isRecord(inner[name]) ? inner[name] : (inner[name] = {})) as Struct
  inner[path.at(-1)!] = to
}
