/** Why a call of a hook, or of discovery, did not end well. */
import type { HookProblem } from './hook-problems.ts'

/**
 * - `not-ready`: extensions are not all known yet
 * - `not-registered`, `wrong-hook`: no such handler
 * - `namespace`: the namespace of the object could not be read, or is not one that the handler is for
 * - `bad-url`: the ExtensionConfig does not say where the server is
 * - `unavailable`: not called, because earlier calls did not get through or too many are under way
 * - `unreachable`: no connection, or TLS refused
 * - `timeout`: no answer in time
 * - `bad-status`: an answer that is not 200
 * - `bad-answer`: an answer that is too long or not what the hook says
 * - `conversion`: request or response could not be brought to the version of the other side
 * - `failure`: the extension answered Failure
 * - `unknown-status`: the extension answered neither Success nor Failure
 * - `bad-discovery`: the list of handlers breaks its rules
 */
export type HookFailureCode =
  | 'not-ready'
  | 'not-registered'
  | 'wrong-hook'
  | 'namespace'
  | 'bad-url'
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

/** A failed call. The message is upstream's, from the outermost context to the cause. */
export class HookFailed extends Error {
  override readonly name = 'HookFailed'
  readonly code: HookFailureCode
  readonly problem: HookProblem

  /** The ExtensionConfig with unknown handlers; only for `not-ready`. */
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

  /** The same failure, seen from further out. */
  within(context: string): HookFailed {
    const { cause = this, problem, extensionConfig } = this
    return new HookFailed(this.code, `${context}: ${this.message}`, { cause, problem, extensionConfig })
  }
}

/** Why there was no answer at all, as transports know it. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly problem: HookProblem

  constructor(problem: HookProblem, message: string, options?: ErrorOptions) {
    super(message, options)
    this.problem = problem
  }
}

/** Failures that speak of the server or of the way to it, not of what was asked. */
export const isOutage = ({ code }: Pick<HookFailed, 'code'>): boolean => outages.has(code)

const outages: ReadonlySet<HookFailureCode> = new Set(['unreachable', 'timeout', 'bad-status', 'bad-answer'])

/**
 * Failures covered by the failure policy Ignore: the call failed, or the response was invalid. Not `unavailable`: a hook is skipped only
 * after its handler was called for this very object.
 */
export const isIgnorable = ({ code }: Pick<HookFailed, 'code'>): boolean => ignorable.has(code)

const ignorable: ReadonlySet<HookFailureCode> = new Set([
  'bad-url',
  'unreachable',
  'timeout',
  'bad-status',
  'bad-answer',
  'conversion',
])
