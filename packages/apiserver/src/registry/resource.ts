/** Served resources as discovery, OpenAPI, tables and verbs use them. */
import type { Column, JSONSchema, ScaleSubresource, UnknownObject, Verb } from '@capstan/kube'

/** One served version of a resource, with the data that discovery, OpenAPI, tables and verbs need. */
export interface Resource {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly listKind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  /** Whether it is built-in rather than defined by a CustomResourceDefinition. Responses differ in details. */
  readonly builtin: boolean
  readonly schema: JSONSchema
  readonly columns: readonly Column[]
  /** Columns computed by code, as for built-in kinds; they replace `columns`. */
  readonly printer: readonly PrinterColumn[] | undefined
  /** Sort order of tables; default: as stored. */
  readonly order?: (a: UnknownObject, b: UnknownObject) => number
  readonly statusSubresource: boolean
  readonly scale: ScaleSubresource | undefined
  readonly storageVersion: string
  /** Group of the storage version, if it is not `group`. */
  readonly storageGroup?: string
  /** Supported verbs; default: all. Review kinds support only `create`. */
  readonly verbs?: readonly Verb[]
  /** Subresources of a built-in kind; those of custom resources follow from `statusSubresource` and `scale`. */
  readonly subresources?: readonly Subresource[]
  /** Name under which the schema of a built-in kind is published, such as `io.k8s.api.core.v1.Pod`. */
  readonly component?: string
  /** Upstream's descriptions of the table columns except name and age. They are matched with `printer` by column name. */
  readonly publishedColumns?: readonly PublishedColumn[]
  /** Priority of the group in discovery, highest first; default: the priority of custom resources. */
  readonly groupPriority?: number
  /** Warning sent with every response when the version is deprecated. */
  readonly deprecation: string | undefined
}

export interface Subresource {
  readonly name: string
  /** Group and version are empty when they are those of the resource. */
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  readonly verbs: readonly string[]
}

/** Name, type and description of a column. */
export interface PublishedColumn {
  readonly name: string
  readonly type: string
  readonly description: string
  readonly format?: string
  readonly priority?: number
}

/** A column of `kubectl get` that code computes. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  readonly priority?: number
  /** Returns `null` for an empty cell. Times are RFC 3339; the table shows them as ages. */
  cell(object: UnknownObject, now: number): string | number | boolean | null
}

/** The fields of each message by its name: `number name type keep`, separated by commas; see scripts/tools/protobuf-messages.ts. */
export interface ProtobufMessages {
  readonly [message: string]: string
}

/** All resources that are served now; changes with CustomResourceDefinitions. */
export interface Resources {
  find(group: string, version: string, plural: string): Resource | undefined
  list(): readonly Resource[]
  /** The built-in `autoscaling/v1` Scale, the format of the scale subresource of any kind. */
  readonly scale: Resource
  /** Protobuf messages of built-in kinds. */
  readonly protobufMessages: ProtobufMessages
  /** Built-in OpenAPI schemas with these names, and all schemas that they refer to. */
  schemas(names: Iterable<string>): ReadonlyMap<string, object>
  /** Whether a subresource opens a connection to a container, a node or a Service instead of reading or writing an object. */
  isConnection(subresource: string | undefined): boolean
  /** Increases with every change, so that documents made from the list can be cached until then. */
  readonly generation: number
}
