/** Calls handlers through a `HookTransport`, reports each call that is not aborted to observers, and records each call as a span. */
import type { Clock } from '@capstan/kube'
import type { Tracer } from '@opentelemetry/api'
import { clientSpan } from '../tracing.ts'
import type { AnyResponse } from './answers.ts'
import { type Call, callHandler } from './call.ts'
import { HookFailed } from './hook-failed.ts'
import type { CallObserver, ObservedCall } from './observed-call.ts'
import type { HookTransport } from './transport.ts'

export interface ObservedCalls {
  /**
   * Makes a call and reports its response or failure to the observers. An aborted call is not reported. `call.hook` has the version that the
   * handler supports, `reported.hook` the version of the caller; the span has the first one, observers get both.
   * @throws HookFailed, or the signal's reason if it aborts
   */
  call(
    call: Call,
    reported: Pick<ObservedCall, 'hook' | 'extensionConfig' | 'handler'>,
    signal: AbortSignal | undefined,
  ): Promise<AnyResponse>
  /** Adds an observer of all later calls. */
  observe(observer: CallObserver): void
}

export function createObservedCalls({
  transport,
  clock,
  tracer,
}: {
  readonly transport: HookTransport
  readonly clock: Clock
  readonly tracer: Tracer
}): ObservedCalls {
  const observers: CallObserver[] = []
  return {
    observe: (observer) => void observers.push(observer),
    call(call, reported, signal) {
      const { hook, target, request } = call
      const { extensionConfig, handler } = reported
      return clientSpan(tracer, { hook, url: target.url, extensionConfig, handler }, async (headers, endSpan) => {
        const [started, startedAt] = [clock.now(), clock.elapsed()]
        let code: number | undefined
        let attempts = 0
        const notify = (outcome: ObservedCall['outcome']) => {
          const observedCall: ObservedCall = {
            ...reported,
            announcedVersion: hook.version,
            isDeprecated: hook.deprecated !== undefined,
            url: target.url,
            started,
            took: clock.elapsed() - startedAt,
            attempts: Math.max(attempts, 1),
            ...(code === undefined ? {} : { code }),
            request,
            outcome,
          }
          for (const observe of observers) observe(observedCall)
        }
        const onStatus = (status: number) => {
          code = status
        }
        const onAttempt = () => {
          attempts++
        }
        try {
          const response: AnyResponse = await callHandler(call, { transport, clock, signal, headers, onStatus, onAttempt })
          notify({ kind: 'response', response })
          endSpan({ code, ...(response.status === 'Success' ? {} : { error: 'ExtensionFailure', message: response.message }) })
          return response
        } catch (err) {
          if (err instanceof HookFailed) notify({ kind: 'failed', code: err.code, problem: err.problem, message: err.message })
          // By OpenTelemetry's semantic conventions, error.type is the status code if the status is the error.
          const error = !(err instanceof HookFailed) ? 'Aborted' : err.code === 'bad-status' ? String(code) : err.problem
          endSpan({ code, error, message: (err as Error).message })
          throw err
        }
      })
    },
  }
}
