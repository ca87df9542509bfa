/**
 * Tables, which the server computes for `kubectl get`.
 * Upstream: apiextensions-apiserver/pkg/registry/customresource/tableconvertor and kubernetes/pkg/printers/internalversion, v1.36.
 */
import type { Column, KubeObject, ListMeta, ObjectList, UnknownObject } from '@capstan/kube'
import { ageText, badRequest, formatCheck, isNumeric, isRecord, writeJSON } from '@capstan/kube'
import type { Resource } from '../../registry/resource.ts'
import { nameDescription } from '../../registry/name-column.ts'
import { jsonPath } from './json-path.ts'
import { partialMetadata, withoutEmptyContinue } from './partial-metadata.ts'

const createdDescription =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata'

export type IncludeObject = 'Metadata' | 'Object' | 'None'
type Cell = string | number | bigint | boolean | null

export interface ColumnDefinition {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
}

export interface Table {
  readonly kind: 'Table'
  readonly apiVersion: string
  readonly metadata: Partial<ListMeta>
  /** `null` after the first table of a watch. */
  readonly columnDefinitions: readonly ColumnDefinition[] | null
  readonly rows: readonly { readonly cells: readonly Cell[]; readonly object: object | null }[] | null
}

export interface TableOptions {
  readonly includeObject: IncludeObject
  readonly version: 'v1' | 'v1beta1'
  /** Time at which ages are computed, in milliseconds since the Unix epoch. */
  readonly now: number
}

/** Parses the query parameter includeObject. @throws StatusError BadRequest */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? ''
  if (value === '') return 'Metadata'
  if (value === 'Metadata' || value === 'Object' || value === 'None') return value
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  )
}

/** Returns a list or an object as a Table. */
export function tableOf(resource: Resource, body: KubeObject | ObjectList, options: TableOptions): Table {
  const isList = 'items' in body
  const unsorted = (isList ? body.items : [body]) as unknown as readonly UnknownObject[]
  const objects = resource.order ? unsorted.toSorted(resource.order) : unsorted
  const { resourceVersion } = body.metadata
  const columns = isScale(body) ? scaleColumns : columnsOf(resource)
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: isList ? withoutEmptyContinue(body.metadata) : resourceVersion === undefined ? {} : { resourceVersion },
    columnDefinitions: columns.map(({ definition }) => definition),
    // Upstream: for an empty list, printers return an empty list of rows; built-in kinds without a printer have null instead.
    rows:
      objects.length === 0 && resource.builtin && !resource.printer
        ? null
        : objects.map((object) => ({
            cells: columns.map((column) => column.cell(object, options.now)),
            object: includedObject(object, options),
          })),
  }
}

function includedObject(object: KubeObject, { includeObject, version }: TableOptions): object | null {
  switch (includeObject) {
    case 'Metadata':
      return partialMetadata(object, version)
    case 'Object':
      return object
    case 'None':
      return null
  }
}

interface TableColumn {
  readonly definition: ColumnDefinition
  cell(object: UnknownObject, now: number): Cell
}

const isScale = ({ kind, apiVersion }: KubeObject | ObjectList): boolean => kind === 'Scale' && apiVersion === 'autoscaling/v1'

/** Cache of columns by resource. */
const columnsByResource = new WeakMap<Resource, readonly TableColumn[]>()

function columnsOf(resource: Resource): readonly TableColumn[] {
  let columns = columnsByResource.get(resource)
  if (!columns) columnsByResource.set(resource, (columns = makeColumns(resource)))
  return columns
}

function makeColumns({ builtin, columns, printer, publishedColumns = [] }: Resource): TableColumn[] {
  if (printer) {
    return printer.map((column) => ({
      // Upstream's printers of built-in kinds format ages themselves, in columns of type string.
      definition: definitionOf(
        publishedColumns.find(({ name }) => name === column.name) ??
          (column.type === 'date' ? { ...column, type: 'string' } : column),
        column.name === 'Age' ? createdDescription : '',
      ),
      cell: (object, now) => {
        const cell = column.cell(object, now)
        return column.type === 'date' && cell !== null ? ageText(cell, now) : cell
      },
    }))
  }
  const name: TableColumn = {
    definition: { name: 'Name', type: 'string', format: 'name', description: nameDescription, priority: 0 },
    cell: ({ metadata }) => metadata.name,
  }
  if (columns.length > 0) return [name, ...declaredColumns(columns)]
  const created = { type: 'date', format: '', description: createdDescription, priority: 0 }
  // For built-in kinds without a printer, upstream shows the creation time instead of the age.
  return builtin
    ? [name, { definition: { name: 'Created At', ...created }, cell: ({ metadata }) => metadata.creationTimestamp }]
    : [name, { definition: { name: 'Age', ...created }, cell: ({ metadata }, now) => ageText(metadata.creationTimestamp, now) }]
}

/** Returns the columns before the first one whose JSONPath cannot be read, as upstream. */
function declaredColumns(columns: readonly Column[]): TableColumn[] {
  const readable: TableColumn[] = []
  try {
    for (const column of columns) readable.push(declaredColumn(column))
  } catch {
    return readable
  }
  return readable
}

/** @throws Error when the JSONPath cannot be read */
function declaredColumn(column: Column): TableColumn {
  const find = jsonPath(column.jsonPath)
  return {
    definition: definitionOf(column, `Custom resource definition column (in JSONPath format): ${column.jsonPath}`),
    cell: (object, now) => cellOf(column.type, find(object)[0], now),
  }
}

const definitionOf = (
  { name, type, format, description, priority }: Partial<ColumnDefinition> & { name: string; type: string },
  defaultDescription: string,
): ColumnDefinition => ({
  name,
  type,
  format: format ?? '',
  description: description !== undefined && description !== '' ? description : defaultDescription,
  priority: priority ?? 0,
})

const scaleColumn = (name: string, type: string, cell: TableColumn['cell']): TableColumn => ({
  definition: definitionOf({ name, type }, ''),
  cell,
})

const scaleColumns: readonly TableColumn[] = [
  {
    definition: { name: 'Name', type: 'string', format: 'name', description: nameDescription, priority: 0 },
    cell: ({ metadata }) => metadata.name,
  },
  scaleColumn('Desired', 'integer', ({ spec }) => (spec as { replicas?: number }).replicas ?? 0),
  scaleColumn('Available', 'integer', ({ status }) => (status as { replicas: number }).replicas),
  scaleColumn('Age', 'string', ({ metadata }, now) => ageText(metadata.creationTimestamp, now)),
]

const isTime = (text: string): boolean => formatCheck('date-time')!(text)

/**
 * Converts a value to a cell of the column type. Returns null for a missing value and, unless the column type is string, for a value of another
 * JSON type.
 */
function cellOf(type: Column['type'], value: unknown, now: number): Cell {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'integer':
      return isNumeric(value) ? int64(value) : null
    case 'number':
      return isNumeric(value) ? Number(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      if (typeof value !== 'string') return null
      return value === '' ? '<unknown>' : isTime(value) ? ageText(value, now) : '<invalid>'
    case 'string':
      return typeof value === 'string'
        ? value
        : Array.isArray(value) || isRecord(value)
          ? writeJSON(value)
          : String(value as number | bigint)
  }
}

/** Truncates a number to an integer. As upstream on amd64, a number outside of int64 becomes the lowest int64. */
const int64 = (value: number | bigint): number | bigint =>
  typeof value === 'bigint' ? value : Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2n ** 63n)
