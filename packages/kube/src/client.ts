/**
 * One client for every API server. A `Transport` sends its requests. The transport of the embedded server calls the verbs directly, without
 * JSON, and returns frozen, shared objects; the transport of `kube/node` uses HTTPS. Controllers work with both.
 */
import type { Json } from './json.ts'
import type { Kind } from './kind.ts'
import { typeMeta } from './kind.ts'
import type { KubeObject, ObjectKey, ObjectList, ObjectMeta } from './object.ts'

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml'

/** Query parameters of the API, under their names in the API. The verb determines which parameters apply. */
export interface RequestOptions {
  labelSelector?: string
  fieldSelector?: string
  resourceVersion?: string
  resourceVersionMatch?: 'Exact' | 'NotOlderThan'
  limit?: number
  continue?: string
  allowWatchBookmarks?: boolean
  sendInitialEvents?: boolean
  timeoutSeconds?: number
  dryRun?: boolean
  fieldManager?: string
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore'
  force?: boolean
}

/** One request to an API server, independent of the transport. */
export interface ApiRequest {
  readonly verb: Verb
  readonly group: string
  readonly version: string
  /**
   * Empty for a `get` of the APIResourceList of the group and version (see `kindFinder`). If group and version are empty, too, the request
   * gets the path `/`.
   */
  readonly plural: string
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
  readonly options?: RequestOptions
  /**
   * The object to create or update, the patch, or DeleteOptions. The transport never changes the body. It copies the parts that it keeps,
   * except frozen parts.
   */
  readonly body?: unknown
  /**
   * Messages of field validation about duplicate fields in the text of the body and, for a JSON patch, also about unknown members of its
   * operations. The parsed body no longer contains the duplicates.
   */
  readonly duplicates?: readonly string[]
  /**
   * Only for a JSON body with duplicate fields: the paths of all fields in the order of the text. A duplicate field is listed each time it
   * occurs.
   */
  readonly fieldPaths?: readonly string[]
  readonly patchType?: PatchType
  /** The caller of a list needs only the metadata of items, so the transport of `kube/node` requests only metadata. */
  readonly metadataOnly?: true
  /**
   * Called immediately before the request is sent, also when the transport sends it again. If it throws, the request is not sent and rejects
   * with that error. Not every transport calls it for watches. With this function a manager makes sure that it is still the leader: a transport
   * may let requests wait, for example for a connection.
   */
  readonly beforeSend?: () => void
}

export interface WatchEvent<T extends KubeObject = KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: T
}

/**
 * Sends requests to one API server. Rejected requests and failed connections, also those of watches, throw a StatusError. An error of
 * `beforeSend` is thrown unchanged. `send` rejects with the reason of its signal if the signal aborts before the request is sent or, over
 * HTTPS, before the response is complete.
 */
export interface Transport {
  send(request: ApiRequest, signal?: AbortSignal): Promise<unknown>
  /** Resolves once the server has accepted the watch; the iterable ends when the server ends the stream or `signal` aborts. */
  watch(request: ApiRequest, signal: AbortSignal): Promise<AsyncIterable<WatchEvent>>
  close(): void
}

/** Returns `transport` with another `send`. */
export const withSend = (transport: Transport, send: Transport['send']): Transport => ({
  send,
  watch: (request, signal) => transport.watch(request, signal),
  close: () => transport.close(),
})

export interface ListOptions {
  namespace?: string
  /** Grammar of `kubectl get -l`. */
  labelSelector?: string
  fieldSelector?: string
  resourceVersion?: string
  resourceVersionMatch?: 'Exact' | 'NotOlderThan'
  /** Items per page; absent: all in one response. */
  limit?: number
  continue?: string
  /** The caller reads only the metadata of items: they may be PartialObjectMetadata. */
  metadataOnly?: true
  signal?: AbortSignal
}

export interface WatchOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  resourceVersion?: string
  resourceVersionMatch?: 'NotOlderThan'
  sendInitialEvents?: boolean
  allowWatchBookmarks?: boolean
  timeoutSeconds?: number
  signal: AbortSignal
}

export interface WriteOptions {
  subresource?: 'status' | 'scale'
  dryRun?: boolean
  fieldManager?: string
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore'
  signal?: AbortSignal
}

export interface DeleteOptions {
  preconditions?: { uid?: string; resourceVersion?: string }
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  gracePeriodSeconds?: number
  dryRun?: boolean
  signal?: AbortSignal
}

export type Patch =
  | { readonly type: 'json'; readonly operations: readonly JsonPatchOperation[] }
  | { readonly type: 'merge'; readonly body: unknown }
  | { readonly type: 'strategic'; readonly body: unknown }

/** Operation of a JSON patch (RFC 6902). */
export type JsonPatchOperation =
  | { op: 'add' | 'replace' | 'test'; path: string; value: Json }
  | { op: 'remove'; path: string }
  | { op: 'move' | 'copy'; from: string; path: string }

/** Input for creating or applying an object: the client adds apiVersion and kind, and the server sets the remaining metadata. */
export type Input<T extends KubeObject> = Omit<T, 'apiVersion' | 'kind' | 'metadata'> & {
  apiVersion?: string
  kind?: string
  metadata: Partial<ObjectMeta>
}

export interface Reader {
  /** Returns the object. @throws StatusError NotFound when it does not exist; see `orAbsent` */
  get<T extends KubeObject>(kind: Kind<T>, key: ObjectKey, options?: { signal?: AbortSignal }): Promise<T>
  list<T extends KubeObject>(kind: Kind<T>, options?: ListOptions): Promise<ObjectList<T>>
}

/**
 * The verbs of the Kubernetes API. Returned objects are frozen and may be shared: take a `draft` before changing one.
 *
 * @throws StatusError for each request that the server rejects, and for transport failures, such as ServiceUnavailable and Timeout
 */
export interface Client extends Reader {
  watch<T extends KubeObject>(kind: Kind<T>, options: WatchOptions): Promise<AsyncIterable<WatchEvent<T>>>
  create<T extends KubeObject>(kind: Kind<T>, object: Input<T>, options?: WriteOptions): Promise<T>
  update<T extends KubeObject>(kind: Kind<T>, object: T, options?: WriteOptions): Promise<T>
  patch<T extends KubeObject>(kind: Kind<T>, key: ObjectKey, patch: Patch, options?: WriteOptions): Promise<T>
  /** Server-side apply. `fieldManager` becomes an owner of the fields that `object` sets. */
  apply<T extends KubeObject>(
    kind: Kind<T>,
    object: Input<T>,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<T>
  /**
   * Deletes the object. Returns it when finalizers or a grace period delay the deletion, and for the kinds whose deleted object the API server
   * returns, such as Pod and Namespace; otherwise `undefined`.
   */
  delete<T extends KubeObject>(kind: Kind<T>, key: ObjectKey, options?: DeleteOptions): Promise<T | undefined>
  deleteCollection(
    kind: Kind,
    selection: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>,
    options?: DeleteOptions,
  ): Promise<void>
  /** Transport of the client, for requests that the verbs above do not cover. */
  readonly transport: Transport
}

/** Creates a client. `defaults.fieldManager` is the field manager of writes that name none. */
export function createClient(transport: Transport, defaults: { fieldManager?: string } = {}): Client {
  const target = (kind: Kind, namespace?: string, name?: string, subresource?: string) => {
    // As client-go. The request for one object would otherwise reach all objects: a get would be a list, a delete would delete them all.
    if (name === '') throw new Error('resource name may not be empty')
    return {
      group: kind.group,
      version: kind.version,
      plural: kind.plural,
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name }),
      ...(subresource === undefined ? {} : { subresource }),
    }
  }
  const writeOptions = ({ dryRun, fieldManager = defaults.fieldManager, fieldValidation }: WriteOptions): RequestOptions => ({
    ...(dryRun ? { dryRun } : {}),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(fieldValidation === undefined ? {} : { fieldValidation }),
  })
  const withTypeMeta = <T extends KubeObject>(kind: Kind<T>, object: Input<T>): Input<T> => ({ ...object, ...typeMeta(kind) })

  return {
    transport,
    async get(kind, key, options = {}) {
      return (await transport.send({ verb: 'get', ...target(kind, key.namespace, key.name) }, options.signal)) as never
    },
    async list(kind, { namespace, signal, metadataOnly, ...options } = {}) {
      const request = { verb: 'list', ...target(kind, namespace), options, ...(metadataOnly && { metadataOnly }) } as const
      return (await transport.send(request, signal)) as never
    },
    async watch(kind, { namespace, signal, ...options }) {
      return (await transport.watch({ verb: 'watch', ...target(kind, namespace), options }, signal)) as never
    },
    async create(kind, object, options = {}) {
      const { namespace, name } = object.metadata
      const request = target(kind, namespace, options.subresource ? name : undefined, options.subresource)
      return (await transport.send(
        { verb: 'create', ...request, options: writeOptions(options), body: withTypeMeta(kind, object) },
        options.signal,
      )) as never
    },
    async update(kind, object, options = {}) {
      const { namespace, name } = object.metadata
      return (await transport.send(
        { verb: 'update', ...target(kind, namespace, name, options.subresource), options: writeOptions(options), body: object },
        options.signal,
      )) as never
    },
    async patch(kind, key, patch, options = {}) {
      return (await transport.send(
        {
          verb: 'patch',
          ...target(kind, key.namespace, key.name, options.subresource),
          options: writeOptions(options),
          patchType:
            patch.type === 'json'
              ? 'application/json-patch+json'
              : `application/${patch.type === 'merge' ? 'merge' : 'strategic-merge'}-patch+json`,
          body: patch.type === 'json' ? patch.operations : patch.body,
        },
        options.signal,
      )) as never
    },
    async apply(kind, object, options) {
      const { namespace, name } = object.metadata
      return (await transport.send(
        {
          verb: 'patch',
          ...target(kind, namespace, name, options.subresource),
          options: { ...writeOptions(options), ...(options.force ? { force: true } : {}) },
          patchType: 'application/apply-patch+yaml',
          body: withTypeMeta(kind, object),
        },
        options.signal,
      )) as never
    },
    async delete(kind, key, { signal, dryRun, ...body } = {}) {
      const response = (await transport.send(
        { verb: 'delete', ...target(kind, key.namespace, key.name), options: dryRun ? { dryRun } : {}, body: deleteBody(body) },
        signal,
      )) as { kind?: string }
      return response.kind === 'Status' ? undefined : (response as never)
    },
    async deleteCollection(kind, { namespace, ...selection }, { signal, dryRun, ...body } = {}) {
      await transport.send(
        {
          verb: 'deletecollection',
          ...target(kind, namespace),
          options: { ...selection, ...(dryRun ? { dryRun } : {}) },
          body: deleteBody(body),
        },
        signal,
      )
    },
  }
}

const deleteBody = (options: Omit<DeleteOptions, 'signal' | 'dryRun'>) => ({
  kind: 'DeleteOptions',
  apiVersion: 'v1',
  ...options,
})
