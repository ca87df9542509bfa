/** Calls one registered handler: in its version of the hook, with its timeout, and through its circuit breaker. */
import { type Catalog, type Hook, hookApiVersion } from '@capstan/api'
import { type Clock, seconds } from '@capstan/kube'
import type { AnyResponse } from './answers.ts'
import { Breaker, type BreakerLimits } from './breaker.ts'
import { type Target, targetOf } from './client-config.ts'
import { defaultTimeout } from './discovery.ts'
import { HookFailed, isOutage } from './hook-failed.ts'
import type { ObservedCalls } from './observe-calls.ts'
import type { Registration } from './registry.ts'

export interface RegisteredCallsOptions {
  readonly catalog: Catalog
  readonly observedCalls: ObservedCalls
  readonly clock: Clock
  readonly limits: BreakerLimits | undefined
}

export class RegisteredCalls {
  readonly #options: RegisteredCallsOptions
  readonly #breakers = new Map<string, Breaker>()
  readonly #targets = new WeakMap<Registration, Target>()

  constructor(options: RegisteredCallsOptions) {
    this.#options = options
  }

  /** Breakers of called handlers, by registered name. */
  get breakers(): ReadonlyMap<string, Breaker> {
    return this.#breakers
  }

  /** Resets the breakers of handlers whose name `matches`, because the handlers may have a new address. */
  resetBreakers(matches: (name: string) => boolean): void {
    for (const name of this.#breakers.keys()) if (matches(name)) this.#breakers.delete(name)
  }

  /**
   * Calls the handler and returns the response in the version of `hook`. The status of the response may be Failure.
   *
   * @throws HookFailed if the handler cannot be called, the call fails, or its response is invalid; the signal's reason if the
   *   signal aborts
   */
  async call(
    hook: Hook,
    registration: Registration,
    request: object,
    settings: Registration['settings'],
    signal: AbortSignal | undefined,
  ): Promise<AnyResponse> {
    const { catalog, observedCalls } = this.#options
    const { name, version, extensionConfig, timeoutSeconds, failurePolicy } = registration
    const registered = catalog.find(hook.group, version, hook.name)
    if (!registered) throw new HookFailed('conversion', `http call failed: ${hook.group}/${version} of ${hook.name} is not known`)
    const call = {
      hook: registered,
      target: this.#targetFor(registration, registered),
      timeoutSeconds: timeoutSeconds || defaultTimeout,
      // Settings are added after the conversion: they are the same in all versions.
      request: {
        ...convertOrFail('request', hook, registered, () => catalog.requestDown(hook, registered, request)),
        ...(Object.keys(settings).length === 0 ? {} : { settings }),
      },
    }
    const response = await this.#breakerOf(name).run(
      () => observedCalls.call(call, { hook, extensionConfig, handler: name }, signal),
      (err) => err instanceof HookFailed && isOutage(err),
      // With the policy Ignore, failures for other objects must not make this call fail: the policy does not cover
      // `unavailable`, the error of an open breaker.
      { maxWait: seconds(call.timeoutSeconds), signal, callWhenOpen: failurePolicy === 'Ignore' },
    )
    return convertOrFail('response', registered, hook, () => catalog.responseUp(registered, hook, response))
  }

  #breakerOf(name: string): Breaker {
    const existing = this.#breakers.get(name)
    if (existing) return existing
    const created = new Breaker(this.#options.clock, this.#options.limits)
    this.#breakers.set(name, created)
    return created
  }

  #targetFor(registration: Registration, registered: Hook): Target {
    const { clientConfig, handler, extensionConfig } = registration
    const existing = this.#targets.get(registration)
    if (existing) return existing
    const target = { ...targetOf(clientConfig, registered, handler), extensionConfig }
    this.#targets.set(registration, target)
    return target
  }
}

/**
 * Converts a request or response. Conversions are code of the hook's author: an error in them is a failed call, and does not end
 * the process.
 */
function convertOrFail<T>(what: 'request' | 'response', from: Hook, to: Hook, convert: () => T): T {
  try {
    return convert()
  } catch (err) {
    const versions = `from ${hookApiVersion(from)} to ${hookApiVersion(to)}`
    const message = `http call failed: failed to convert ${what} ${versions}: ${(err as Error).message}`
    throw new HookFailed('conversion', message, { cause: err })
  }
}
