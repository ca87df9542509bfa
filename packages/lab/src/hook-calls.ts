/** Reports hook calls as objects, and formats them as lines. */
import type { Hook, ResponseOf } from '@capstan/api'
import type { CallAllOptions, RuntimeClient } from '@capstan/extension'
import type { KubeObject } from '@capstan/kube'
import { keyOf, keyText, messageOf } from '@capstan/kube'
import type { Line } from './narrate.ts'

/** One result of a hook call, and the handlers that have this result. */
export interface HookCall {
  readonly hook: string
  /** Registered names of the handlers with this result; for a failed call, of all handlers of the call. */
  readonly handlers: readonly string[]
  /** The object for which the hook was called, as `Kind namespace/name`. */
  readonly subject: string
  /** The Cluster of the object, as `namespace/name`. */
  readonly cluster: string
  readonly answer:
    | { readonly kind: 'proceed'; readonly message: string }
    | { readonly kind: 'wait'; readonly seconds: number; readonly message: string }
    | { readonly kind: 'failed'; readonly message: string }
    /** The call failed, and the failure policy of the handler is Ignore. */
    | { readonly kind: 'ignored'; readonly message: string }
}

/**
 * Wraps a runtime client and reports its calls: each failure that a failure policy ignores, in a report of its own, and then, in one report,
 * the result of the other handlers or the error of the call.
 */
export function observeHooks(runtime: RuntimeClient, report: (call: HookCall) => void): RuntimeClient {
  const observeCall = async <R>(
    hook: Hook,
    handlers: readonly string[],
    forObject: KubeObject,
    call: (onIgnored: OnIgnored) => Promise<R>,
  ): Promise<R> => {
    const ignored = new Set<string>()
    const record = (names: readonly string[], answer: HookCall['answer']) => {
      if (names.length > 0) report({ hook: hook.name, handlers: names, ...subjectOf(forObject), answer })
    }
    try {
      const response = await call((handler, { message }) => {
        ignored.add(handler)
        record([handler], { kind: 'ignored', message })
      })
      const successful = handlers.filter((handler) => !ignored.has(handler))
      record(successful, resultOf(response as ResponseOf<Hook>))
      return response
    } catch (err) {
      record(handlers, { kind: 'failed', message: messageOf(err) })
      throw err
    }
  }
  return {
    get ready() {
      return runtime.ready
    },
    handlersFor: (hook, forObject) => runtime.handlersFor(hook, forObject),
    onChanged: (listener) => runtime.onChanged?.(listener),
    callAll: async (hook, forObject, request, options) => {
      const handlers = await runtime.handlersFor(hook, forObject)
      return observeCall(hook, handlers, forObject, (onIgnored) =>
        runtime.callAll(hook, forObject, request, { ...options, onIgnored: callBoth(onIgnored, options?.onIgnored) }),
      )
    },
    call: (hook, forObject, handler, request, options) =>
      observeCall(hook, [handler], forObject, (onIgnored) =>
        runtime.call(hook, forObject, handler, request, { ...options, onIgnored: callBoth(onIgnored, options?.onIgnored) }),
      ),
  }
}

type OnIgnored = NonNullable<CallAllOptions['onIgnored']>
const callBoth =
  (first: OnIgnored, second: OnIgnored | undefined): OnIgnored =>
  (handler, error) => {
    first(handler, error)
    second?.(handler, error)
  }

/** Returns the line that describes the result of a hook call. */
export function lineOf({ hook, handlers, answer, subject, cluster }: HookCall): Line {
  const called = `${hook} called on ${handlers.join(', ')}`
  const because = answer.message === '' ? '' : ` (${answer.message})`
  switch (answer.kind) {
    case 'proceed':
      return { subject, cluster, event: 'HookAnswered', text: `${called}: proceed${because}` }
    case 'wait':
      return { subject, cluster, event: 'HookBlocking', text: `${called}: wait ${answer.seconds} s${because}` }
    case 'ignored':
      return {
        subject,
        cluster,
        event: 'HookFailureIgnored',
        text: `${called}: failed, ignored by the failure policy: ${answer.message}`,
      }
    case 'failed':
      return { subject, cluster, event: 'HookFailed', text: failedText({ hook, handlers }, answer.message) }
  }
}

/**
 * Returns the text of the line for a failed call. Removes the parts of the error that the line already contains: the hook, and
 * the handler if there is only one.
 */
function failedText({ hook, handlers }: Pick<HookCall, 'hook' | 'handlers'>, message: string): string {
  const withoutHook = message.replace(/^failed to call extension handlers for hook "[^"]*": /, '')
  const withoutHandler =
    handlers.length === 1 ? withoutHook.replace(/^failed to call extension handler "[^"]*": /, '') : withoutHook
  const [, reason] = /^not called, because (.*)$/s.exec(withoutHandler) ?? []
  const names = handlers.join(', ')
  return reason === undefined
    ? `${hook} called on ${names}: failed: ${withoutHandler}`
    : `${hook} not called on ${names}: ${reason}`
}

function resultOf(response: ResponseOf<Hook>): HookCall['answer'] {
  const { retryAfterSeconds = 0, message = '' } = response as { retryAfterSeconds?: number; message?: string }
  return retryAfterSeconds > 0 ? { kind: 'wait', seconds: retryAfterSeconds, message } : { kind: 'proceed', message }
}

function subjectOf(object: KubeObject): { subject: string; cluster: string } {
  const { namespace, name } = keyOf(object)
  const { clusterName = name } = (object as { readonly spec?: { readonly clusterName?: string } }).spec ?? {}
  return { subject: `${object.kind} ${keyText(keyOf(object))}`, cluster: keyText({ namespace: namespace!, name: clusterName }) }
}
