/**
 * The API server without HTTP: executes the verbs of `ApiRequest`s. The HTTP layer (`http/`) converts HTTP requests and responses; the
 * in-process transport calls the engine directly.
 */
import type { ApiRequest, KubeObject, ObjectList, Status, WatchEvent } from '@capstan/kube'
import type { Authorizer } from '../auth/authorizer.ts'
import type { Caller } from '../auth/user.ts'
import type { Resource, Resources } from '../registry/resource.ts'

export interface ApiResponse {
  readonly code: number
  readonly body: KubeObject | ObjectList | Status
  /** Texts for `Warning: 299` headers. */
  readonly warnings: readonly string[]
}

/**
 * One accepted watch. It ends after timeoutSeconds, on abort, when unread changes have left the history, and when the resource is no longer
 * served or its storage version or conversion changes. If a conversion webhook fails, the iteration throws its error.
 */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  readonly resource: Resource
  /**
   * Returns the same events in batches of bounded size; an alternative to iterating. Awaits `pace` between two reads of new changes, so
   * that a batch can contain more events.
   */
  batches(pace?: () => Promise<void> | undefined): AsyncIterable<readonly WatchEvent[]>
}

export interface Engine {
  /**
   * Executes every verb but watch. Returned objects have apiVersion and kind. Do not change them: other callers may share them. `ended`
   * returns a signal that aborts when no client waits for the response any more; it is a function, so that most requests create no signal.
   * @throws StatusError
   */
  execute(request: ApiRequest, caller: Caller, ended?: () => AbortSignal): Promise<ApiResponse>
  /**
   * Opens a watch. @throws StatusError when the watch is rejected; as upstream, the HTTP layer sends the reason Expired as an ERROR event
   */
  watch(request: ApiRequest, caller: Caller, signal: AbortSignal): Promise<WatchStream>
  readonly resources: Resources
  /**
   * Authorizes requests. The engine authorizes only actions that depend on the object, such as the creation of an object by an
   * apply, or the permissions that a role grants. The HTTP layer, or an in-process transport with `authorized`, authorizes the
   * request itself.
   */
  readonly authorizer: Authorizer
}
