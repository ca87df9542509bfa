/**
 * The API server without HTTP: verbs over `ApiRequest`. The HTTP layer (`http/`) converts its requests and responses, the in-process
 * transport calls it directly.
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

/** One accepted watch. Iterating ends when the server ends it (timeoutSeconds, expired history) or the signal aborts. */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  readonly resource: Resource
  /**
   * The same events in batches of bounded size, an alternative to iterating. Awaits `pace` before it takes the next batch, so that more
   * events can be batched.
   */
  batches(pace?: () => Promise<void> | undefined): AsyncIterable<readonly WatchEvent[]>
}

export interface Engine {
  /** Executes every verb but watch. Errors are thrown as StatusError. Returned objects are frozen, shared, and have apiVersion and kind. */
  execute(request: ApiRequest, caller: Caller, signal?: AbortSignal): Promise<ApiResponse>
  /**
   * Opens a watch. Throws a StatusError when it is rejected. For an expired start (`Expired`) the HTTP layer sends an ERROR event instead.
   */
  watch(request: ApiRequest, caller: Caller, signal: AbortSignal): Promise<WatchStream>
  readonly resources: Resources
  /**
   * Authorizes requests. The caller of the engine authorizes each request; the engine itself authorizes only actions that depend on the
   * object, such as the create of an apply, or the permissions that a role grants.
   */
  readonly authorizer: Authorizer
}
