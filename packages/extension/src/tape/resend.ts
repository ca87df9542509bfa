/** Sends the requests of a tape (a file of recorded hook calls) to an extension and compares its responses with those of the tape. */
import type { Catalog, ClientConfig } from '@capstan/api'
import type { Clock } from '@capstan/kube'
import { callHandler } from '../client/call.ts'
import { targetOf } from '../client/client-config.ts'
import { type Difference, differences } from '../test-kit/differences.ts'
import { HookFailed } from '../client/hook-failed.ts'
import type { HookTransport } from '../client/transport.ts'
import { redact } from './deny-list.ts'
import { shortHandler, type Tape } from './tape.ts'

export interface ResendOptions {
  readonly server: ClientConfig
  readonly catalog: Catalog
  readonly transport: HookTransport
  readonly clock: Clock
  readonly timeoutSeconds: number
  /** Only calls of the handler with this name are repeated. The name does not contain that of the ExtensionConfig. Default: all handlers. */
  readonly handler?: string
  /** Only calls of this hook are repeated. Default: all hooks. */
  readonly hook?: string
  readonly signal?: AbortSignal
}

/** One repeated call of the tape. */
export interface RepeatedCall {
  readonly call: Tape['calls'][number]
  /** Duration of the repeated call in milliseconds. */
  readonly took: number
  /**
   * Differences between the response on the tape and the new response, apart from apiVersion and kind. For a failed call, the
   * problem of its failure is compared in place of a response.
   */
  readonly differences: readonly Difference[]
}

/**
 * Repeats calls one after another in the order of the tape, because an extension may have state. The requests have the redacted
 * values of the tape in place of secrets.
 */
export async function* resendTape(tape: Tape, options: ResendOptions): AsyncGenerator<RepeatedCall> {
  const { server, catalog, transport, clock, timeoutSeconds, signal } = options
  for (const call of tape.calls) {
    if (options.handler !== undefined && shortHandler(call) !== options.handler) continue
    if (options.hook !== undefined && call.hook !== options.hook) continue
    const hook = catalog.find(call.group, call.version, call.hook)
    const startedAt = clock.elapsed()
    let repeated: object
    if (!hook) repeated = { failure: `${call.group}/${call.version}, Hook=${call.hook} is not known here` }
    else {
      try {
        const target = targetOf(server, hook, shortHandler(call))
        repeated = redact(
          await callHandler({ hook, target, timeoutSeconds, request: call.request }, { transport, clock, signal }),
        )
      } catch (err) {
        if (!(err instanceof HookFailed)) throw err
        repeated = { failure: err.problem }
      }
    }
    const recorded = call.failure ? { failure: call.failure.problem } : call.response
    yield { call, took: clock.elapsed() - startedAt, differences: differences(contentOf(recorded!), contentOf(repeated)) }
  }
}

/** Removes apiVersion and kind, which are optional in responses. */
function contentOf(answer: object): object {
  const { apiVersion: _a, kind: _k, ...content } = answer as { apiVersion?: unknown; kind?: unknown }
  return content
}
