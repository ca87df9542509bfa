/** The runtime client that core needs: calls the handlers registered for a hook and returns one response. Upstream: exp/runtime/client. */
import type { Hook, RequestOf, ResponseOf } from '@capstan/api'
import type { KubeObject } from '@capstan/kube'
import type { HookFailed } from './hook-failed.ts'

/** The request without apiVersion, kind and settings, which are set for each handler. */
export type CallInput<H extends Hook> = Omit<RequestOf<H>, 'apiVersion' | 'kind' | 'settings'>

export interface RuntimeClient {
  /**
   * Whether discovery was attempted for every ExtensionConfig since the start, or skipped because the ExtensionConfig is paused. While
   * false, a result of `handlersFor` may lack handlers.
   */
  readonly ready: boolean
  /**
   * Returns the names (`handler.extensionconfig`) of the hook's handlers whose selectors match the object, in the order of calling.
   * @throws HookFailed if the matching handlers are unknown
   */
  handlersFor(hook: Hook, forObject: KubeObject): Promise<readonly string[]>
  /**
   * Calls every matching handler in order and aggregates the responses: shortest retry time above 0, messages in order.
   * @throws HookFailed if the matching handlers are unknown, or if a call fails and the handler's failure policy does not cover the
   *   failure (see `isIgnorable`); later handlers are then not called. The signal's reason if it aborts
   */
  callAll<H extends Hook>(hook: H, forObject: KubeObject, request: CallInput<H>, options?: CallAllOptions): Promise<ResponseOf<H>>
  /**
   * Calls one handler by its registered name (`handler.extensionconfig`), which ClusterClasses use.
   * @throws HookFailed if the handler is not registered, is for a different hook, or does not select the object; if one of these
   *   facts is unknown; or if the call fails and the handler's failure policy does not cover the failure. The signal's reason if it
   *   aborts
   */
  call<H extends Hook>(
    hook: H,
    forObject: KubeObject,
    handler: string,
    request: CallInput<H>,
    options?: CallOptions,
  ): Promise<ResponseOf<H>>
  /**
   * Calls `listener` with the name of an ExtensionConfig when its handlers, selectors, settings or address change after all
   * ExtensionConfigs were registered at the start, when it is removed, and when hooks no longer fail because it was never discovered.
   */
  onChanged?(listener: (extensionConfig: string) => void): void
}

export interface CallAllOptions {
  readonly signal?: AbortSignal
  /** Called before each handler call, with the registered name. */
  onCall?(handler: string): void
  /**
   * Called with the response of each handler and its registered name, before responses are aggregated. For an ignored failure,
   * the response has neither message nor retry time above 0.
   */
  onAnswer?(handler: string, response: { readonly message?: string; readonly retryAfterSeconds?: number }): void
  /** Called for each failed call that the handler's failure policy ignores, with the registered name. */
  onIgnored?(handler: string, error: HookFailed): void
}

export interface CallOptions {
  /** Settings that override settings of the ExtensionConfig. */
  readonly settings?: { readonly [name: string]: string }
  readonly signal?: AbortSignal
  /** Called if the call failed and the handler's failure policy ignores the failure. */
  onIgnored?(handler: string, error: HookFailed): void
}
