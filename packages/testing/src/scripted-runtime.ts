/** A runtime client whose handlers are functions of the test. */
import type { Hook } from '@capstan/api'
import { type CallOptions, HookFailed, type RuntimeClient } from '@capstan/extension'
import type { KubeObject } from '@capstan/kube'

/**
 * Functions that compute the response of a hook's only handler, by the name of the hook. `nth` counts the calls for one object and hook,
 * from 1. `wait` is `retryAfterSeconds` of a blocking hook, by default 0. The fields of `response` are added to the response, and take
 * precedence over `wait` and `message`. With `ignored`, the call fails, and the handler's failure policy ignores the failure. The result
 * `undefined` is a success that does not block.
 */
export type HookScript = {
  readonly [hook: string]: (call: {
    request: Record<string, unknown>
    nth: number
  }) => { wait?: number; message?: string; response?: object; ignored?: true } | undefined
}

/** Returns a runtime client. `handlersFor` returns no handler for a hook that the script does not name; a call of such a hook succeeds. */
export function scriptedRuntime(script: HookScript): RuntimeClient {
  const calls = new Map<string, number>()
  const answer = (hook: Hook, forObject: KubeObject, request: object, { onIgnored }: Pick<CallOptions, 'onIgnored'> = {}) => {
    const key = `${forObject.metadata.uid} ${hook.name}`
    const nth = (calls.get(key) ?? 0) + 1
    calls.set(key, nth)
    const result = script[hook.name]?.({ request: request as Record<string, unknown>, nth }) ?? {}
    const { message = '', wait = 0, response, ignored } = result
    if (ignored) onIgnored?.('scripted.test', new HookFailed('unreachable', 'connection refused'))
    return { status: 'Success', message, ...(hook.blocking ? { retryAfterSeconds: wait } : {}), ...response } as never
  }
  return {
    ready: true,
    handlersFor: (hook: Hook) => Promise.resolve(script[hook.name] ? ['scripted.test'] : []),
    callAll: async (hook, forObject, request, options) => {
      const response = answer(hook, forObject, request, options)
      options?.onAnswer?.('scripted.test', response)
      return response
    },
    call: async (hook, forObject, _handler, request, options) => answer(hook, forObject, request, options),
  }
}
