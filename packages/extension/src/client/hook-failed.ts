/** Errors of hook calls and of discovery. */
import type { HookProblem } from './hook-problems.ts'

/**
 * - `not-ready`: the handlers of all ExtensionConfigs, or of one that selects the object, are not known yet
 * - `not-registered`: no handler has the name; or none was named, and the server does not have exactly one for the hook; or a tape has no
 *   response for the request
 * - `wrong-hook`: the handler with the name is for another hook
 * - `namespace`: the namespace of the object could not be read, or the handler does not select the object
 * - `bad-url`: the ExtensionConfig has no valid address
 * - `bad-ca`: the caBundle of the ExtensionConfig contains no certificate
 * - `unavailable`: the handler was not called, because earlier calls failed or too many are in progress
 * - `unreachable`: no connection, a TLS error, or no complete HTTP response on the connection
 * - `timeout`: no complete response in time
 * - `bad-status`: a response with another status code than 200
 * - `bad-answer`: a response that is too long, is not JSON, or does not match the hook's schema; in tests of extensions, also one whose
 *   patches cannot be applied
 * - `conversion`: request or response could not be converted between hook versions
 * - `failure`: the extension returned Failure, or a value that its field does not allow, such as a negative retryAfterSeconds
 * - `unknown-status`: the extension returned neither Success nor Failure
 * - `bad-discovery`: the list of handlers is invalid
 */
export type HookFailureCode =
  | 'not-ready'
  | 'not-registered'
  | 'wrong-hook'
  | 'namespace'
  | 'bad-url'
  | 'bad-ca'
  | 'unavailable'
  | 'unreachable'
  | 'timeout'
  | 'bad-status'
  | 'bad-answer'
  | 'conversion'
  | 'failure'
  | 'unknown-status'
  | 'bad-discovery'

const problemOf: { readonly [code in HookFailureCode]: HookProblem } = {
  'not-ready': 'NotReady',
  'not-registered': 'NotRegistered',
  'wrong-hook': 'WrongHook',
  namespace: 'NamespaceNotMatched',
  'bad-url': 'BadURL',
  'bad-ca': 'CABundle',
  unavailable: 'BreakerOpen',
  unreachable: 'Unreachable',
  timeout: 'Timeout',
  'bad-status': 'UnexpectedStatus',
  'bad-answer': 'Garbage',
  conversion: 'Conversion',
  failure: 'ExtensionFailure',
  'unknown-status': 'UnknownStatus',
  'bad-discovery': 'InvalidDiscovery',
}

/** A failed call. The message begins with the outermost context and ends with the cause. It is upstream's if upstream has this failure. */
export class HookFailed extends Error {
  override readonly name = 'HookFailed'
  readonly code: HookFailureCode
  readonly problem: HookProblem

  /**
   * Name of the ExtensionConfig that was never discovered and selects the object. Set only for `not-ready`; `undefined` while the handlers
   * of all ExtensionConfigs are unknown.
   */
  readonly extensionConfig: string | undefined

  constructor(
    code: HookFailureCode,
    message: string,
    options: ErrorOptions & { problem?: HookProblem | undefined; extensionConfig?: string | undefined } = {},
  ) {
    super(message, options)
    this.extensionConfig = options.extensionConfig
    this.code = code
    this.problem = options.problem ?? problemOf[code]
  }

  /** Returns the same failure with `context` before its message. */
  within(context: string): HookFailed {
    const { cause = this, problem, extensionConfig } = this
    return new HookFailed(this.code, `${context}: ${this.message}`, { cause, problem, extensionConfig })
  }
}

/** Adds `context` to a HookFailed that `act` throws. */
export function withContext<T>(context: string, act: () => T): T {
  try {
    return act()
  } catch (err) {
    throw err instanceof HookFailed ? err.within(context) : err
  }
}

/** Adds `context` to a HookFailed with which the promise rejects. */
export async function withContextAsync<T>(context: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (err) {
    throw err instanceof HookFailed ? err.within(context) : err
  }
}

/** Error of a transport for a call without a complete response. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly problem: HookProblem

  constructor(problem: HookProblem, message: string, options?: ErrorOptions) {
    super(message, options)
    this.problem = problem
  }
}

/** Whether the failure is a failure of the server or the connection, rather than of the request. */
export const isOutage = ({ code }: Pick<HookFailed, 'code'>): boolean => outages.has(code)

const outages: ReadonlySet<HookFailureCode> = new Set(['unreachable', 'timeout', 'bad-status', 'bad-answer'])

/**
 * Whether the failure policy Ignore covers the failure: the call failed, its response could not be decoded, or request or
 * response could not be converted. It does not cover `unavailable`, because calls for other objects cause that failure: they must
 * not make core skip the handler for this object.
 */
export const isIgnorable = ({ code }: Pick<HookFailed, 'code'>): boolean => ignorable.has(code)

const ignorable: ReadonlySet<HookFailureCode> = new Set(['unreachable', 'timeout', 'bad-status', 'bad-answer', 'conversion'])
