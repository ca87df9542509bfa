/** Declares an extension with its handlers, which are validated before the first call. Upstream: exp/runtime/server, v1.14. */
import type { Hook, RequestOf } from '@capstan/api'
import { hookPath } from '@capstan/api'
import type { Logger } from '@capstan/kube'
import { dnsLabelProblems } from '@capstan/kube'
import type { Answer, AnswerOf } from './answer.ts'

/** Arguments of a handler for each call. */
export interface HandlerCall<H extends Hook = Hook> {
  readonly request: RequestOf<H>
  /** Settings of the ExtensionConfig, overridden by settings of the call, such as those of a patch in a ClusterClass. */
  readonly settings: { readonly [name: string]: string }
  readonly log: Logger
  /** Aborts when the caller no longer waits for the response. */
  readonly signal: AbortSignal
}

export interface HandlerOptions {
  /** Unique within the extension: a DNS label, such as wait-for-quota. */
  readonly name: string
  /** Timeout of a call in seconds, at most 30. Default: 10; 0 means the default, too. */
  readonly timeoutSeconds?: number
  /** With Ignore, core proceeds when a call gets no valid response; it never ignores a response made by `fail`. Default: Fail. */
  readonly failurePolicy?: 'Ignore' | 'Fail'
}

export interface Handler extends HandlerOptions {
  readonly hook: Hook
  handle(call: HandlerCall<never>): Answer | Promise<Answer>
}

export interface Extension {
  /** Name of the extension, for example in log lines. Not part of the protocol. */
  readonly name: string
  readonly handlers: readonly Handler[]
}

/**
 * Declares a handler for a hook. Core calls handlers repeatedly for the same state, so they must be idempotent, quick and
 * deterministic.
 *
 * @example
 * on(BeforeClusterCreate, { name: 'wait-for-quota' }, async ({ request, settings }) =>
 *   (await hasQuota(request.cluster, settings.region)) ? proceedNow() : holdFor(30, 'waiting for quota'))
 */
export const on = <H extends Hook>(
  hook: H,
  options: HandlerOptions,
  handle: (call: HandlerCall<H>) => AnswerOf<H> | Promise<AnswerOf<H>>,
): Handler => ({ ...options, hook, handle: handle as Handler['handle'] })

/**
 * Validates and returns the extension.
 *
 * @throws TypeError if core would reject a name, timeout or failure policy, or if two handlers have the same name; also for a handler that
 *   is not a function, and for a handler of Discovery, to which the server itself responds
 */
export function defineExtension(extension: Extension): Extension {
  const paths = new Set<string>()
  for (const { hook, name, timeoutSeconds, failurePolicy, handle } of extension.handlers) {
    const problems = typeof name === 'string' ? dnsLabelProblems(name) : ['must be a string']
    if (problems.length > 0) throw new TypeError(`handler name ${name} is not valid: ${problems.join('; ')}`)
    if (typeof handle !== 'function') throw new TypeError(`handler ${name} must be a function: on(hook, options, handle)`)
    // Untyped code can pass any value. If a single value is invalid, core rejects all handlers of the extension.
    if (failurePolicy !== undefined && failurePolicy !== 'Ignore' && failurePolicy !== 'Fail') {
      throw new TypeError(`handler ${name} failurePolicy ${String(failurePolicy)} must equal "Ignore" or "Fail"`)
    }
    if (hook.singleton) throw new TypeError(`Cannot handle ${hook.name}: the extension server itself responds to it`)
    if (timeoutSeconds !== undefined && (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 0 || timeoutSeconds > 30)) {
      throw new TypeError(`handler ${name} timeoutSeconds ${timeoutSeconds} must be between 0 and 30`)
    }
    const path = hookPath(hook, name)
    if (paths.has(path)) throw new TypeError(`there is already a handler registered for path ${JSON.stringify(path)}`)
    paths.add(path)
  }
  const names = extension.handlers.map(({ name }) => name)
  const duplicateName = names.find((name, index) => names.indexOf(name) < index)
  if (duplicateName !== undefined) throw new TypeError(`duplicate name for handler ${duplicateName} found`)
  return extension
}
