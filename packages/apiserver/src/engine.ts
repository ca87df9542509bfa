/**
 * The API server without HTTP: verbs over `ApiRequest`. The HTTP edge (`http/`) translates to and from it, the in-process
 * transport calls it directly.
 */
import type {
  ApiRequest,
  Column,
  JSONSchema,
  KubeObject,
  ObjectList,
  ScaleSubresource,
  Status,
  UnknownObject,
  Verb,
  WatchEvent,
} from '@capstan/kube'
import type { Authorizer } from './auth/authorizer.ts'

/** Somebody as the server knows them. Upstream: k8s.io/apiserver/pkg/authentication/user, Info. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  /** What else authentication found out, such as `authentication.kubernetes.io/credential-id`. */
  readonly extra?: { readonly [key: string]: readonly string[] }
}

/** Who asks. Decided by authentication at the HTTP edge; in-process callers say who they are. */
export interface Caller extends User {
  /** User-Agent up to the first '/': the field manager of writes that name none. */
  readonly agent: string
}

export interface Answer {
  readonly code: number
  readonly body: KubeObject | ObjectList | Status
  /** Texts for `Warning: 299` headers. */
  readonly warnings: readonly string[]
}

/** One accepted watch. Iterating ends when the server ends it (timeoutSeconds, slow reader) or the signal aborts. */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  readonly resource: Resource
  /**
   * The same events, those that wait together: never so many that a slow reader of them would be a burden. Instead of iterating. Before some
   * are taken, what `pace` answers is waited for: meanwhile there may be more.
   */
  batches(pace?: () => Promise<void> | undefined): AsyncIterable<readonly WatchEvent[]>
}

export interface Engine {
  /** Every verb but watch. Failures are thrown as StatusError. Objects in the answer are frozen, shared, and carry their type. */
  execute(request: ApiRequest, caller: Caller, signal?: AbortSignal): Promise<Answer>
  /**
   * Opens a watch. What the server refuses is thrown as StatusError here; a start that is too old (`Expired`) as well, but on the
   * wire it is an ERROR event of a stream that was accepted.
   */
  watch(request: ApiRequest, caller: Caller, signal: AbortSignal): Promise<WatchStream>
  readonly resources: Resources
  /**
   * Who may do what. Whoever lets callers in asks it about each request. The engine asks only where it takes the object to know:
   * may an apply create, may a role be given.
   */
  readonly authorizer: Authorizer
}

/** One resource in one served version: what discovery, OpenAPI, tables and the verbs need to know of it. */
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
  /** Built into the server, or defined by a CustomResourceDefinition: answers differ in small ways. */
  readonly builtin: boolean
  readonly schema: JSONSchema
  readonly columns: readonly Column[]
  /** Columns that the server computes, as it does for built-in kinds; they take the place of `columns`. */
  readonly printer: readonly PrinterColumn[] | undefined
  /** In which order tables list objects; absent: as they come. */
  readonly order?: (a: UnknownObject, b: UnknownObject) => number
  readonly statusSubresource: boolean
  readonly scale: ScaleSubresource | undefined
  readonly storageVersion: string
  /** The group of that version, where it is another one. */
  readonly storageGroup?: string
  /** What can be done with it; everything when absent. Questions to the server can only be asked: `create`. */
  readonly verbs?: readonly Verb[]
  /** The subresources of a built-in kind; custom resources have what `statusSubresource` and `scale` say. */
  readonly subresources?: readonly Subresource[]
  /** Under which name the schema of a built-in kind is published, such as `io.k8s.api.core.v1.Pod`. */
  readonly component?: string
  /** Warning sent with every answer when the version is deprecated. */
  readonly deprecation: string | undefined
}

export interface Subresource {
  readonly name: string
  /** Group and version are empty where they are those of the resource. */
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  readonly verbs: readonly string[]
}

/** A column of `kubectl get` whose cells are code. */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  readonly priority?: number
  /** `null` where there is nothing to show. Times are RFC 3339: whoever makes the table turns them into ages. */
  cell(object: UnknownObject, now: number): string | number | boolean | null
}

/** Every resource that is served right now. Changes when CustomResourceDefinitions do. */
export interface Resources {
  find(group: string, version: string, plural: string): Resource | undefined
  list(): readonly Resource[]
  /** Grows with every change, so that documents made from the list can be kept until it does. */
  readonly generation: number
}
