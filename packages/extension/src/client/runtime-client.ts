/** What core needs of the Runtime SDK: to call the handlers registered for a hook and get one answer. Upstream: exp/runtime/client. */
import type { Hook, RequestOf, ResponseOf } from '@capstan/api'
import type { KubeObject } from '@capstan/kube'

/** What a caller gives; apiVersion, kind and settings are filled in per handler. */
export type CallInput<H extends Hook> = Omit<RequestOf<H>, 'apiVersion' | 'kind' | 'settings'>

export interface RuntimeClient {
  /** True once every ExtensionConfig has been tried after the start: before, "no handler" means nothing. */
  readonly ready: boolean
  /** Names (`handler.extensionconfig`) registered for the hook that match the object's namespace, in the order of calling. */
  handlersFor(hook: Hook, forObject: KubeObject): Promise<readonly string[]>
  /**
   * Calls every matching handler in order and joins the answers: shortest retry, messages in order.
   * @throws HookFailed on the first handler that fails, unless its failure policy is Ignore and nothing but the transport failed
   */
  callAll<H extends Hook>(hook: H, forObject: KubeObject, request: CallInput<H>, options?: CallAllOptions): Promise<ResponseOf<H>>
  /**
   * Calls one handler by its registered name, as ClusterClasses name them.
   * @throws HookFailed when it is not registered, is for another hook or namespace, or fails
   */
  call<H extends Hook>(
    hook: H,
    forObject: KubeObject,
    handler: string,
    request: CallInput<H>,
    options?: CallOptions,
  ): Promise<ResponseOf<H>>
  /** Tells `listener` the name of each ExtensionConfig whose handlers, settings or address are other ones from now on, or gone. */
  onChanged?(listener: (extensionConfig: string) => void): void
}

export interface CallAllOptions {
  readonly signal?: AbortSignal
  /** Told of each handler before it is called, by its registered name. */
  onCall?(handler: string): void
  /** Told what each handler answered, by its registered name, before the answers are joined. */
  onAnswer?(handler: string, response: { readonly message?: string; readonly retryAfterSeconds?: number }): void
}

export interface CallOptions {
  /** Over those of the ExtensionConfig. */
  readonly settings?: { readonly [name: string]: string }
  readonly signal?: AbortSignal
}
