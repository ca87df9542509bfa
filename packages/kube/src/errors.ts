/**
 * Errors of the Kubernetes API: one table of reasons, one error class, and the field errors of validation.
 * Upstream: k8s.io/apimachinery/pkg/api/errors and pkg/util/validation/field, v0.36.
 */
import { goText } from './go-text.ts'
import { writeJSON } from './json-text.ts'

/** The reasons of the Kubernetes API, each with its usual HTTP code. */
export const StatusReasons = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  ServerTimeout: 500,
  StorageReadError: 500,
  Timeout: 504,
  Unknown: 500,
} as const
export type StatusReason = keyof typeof StatusReasons

/** Returns the reason of a Status; empty when it is absent or not in `StatusReasons`. */
export const knownReason = ({ reason }: Status): StatusReason | '' =>
  reason !== undefined && Object.hasOwn(StatusReasons, reason) ? (reason as StatusReason) : ''

export interface StatusCause {
  reason?: string
  message?: string
  field?: string
}

export interface StatusDetails {
  name?: string
  group?: string
  kind?: string
  uid?: string
  causes?: StatusCause[]
  retryAfterSeconds?: number
}

/** The body of error responses, and of successful responses without an object. */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, unknown>
  status: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: StatusDetails
  code?: number
}

export interface StatusErrorOptions extends ErrorOptions {
  details?: StatusDetails
  /** HTTP code, for the few errors whose code is not the usual code of their reason. */
  code?: number
}

/**
 * Error of the Kubernetes API: thrown by the client when a server returns an error, is unreachable or sends an unusable response, and by
 * the embedded server to return a Status with `status: Failure`. `reason` is empty when the server gives no reason, or one that is not in
 * `StatusReasons`.
 *
 * @example
 * try { await client.get(Machine, key) } catch (err) { if (!isReason(err, 'NotFound')) throw err }
 */
export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly reason: StatusReason | ''
  readonly code: number
  readonly details: StatusDetails | undefined
  /** Warnings that the server sends with the error, as `Warning` headers. */
  warnings: readonly string[] = []

  constructor(reason: StatusReason | '', message: string, options: StatusErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.code = options.code ?? (reason === '' ? 500 : StatusReasons[reason])
    this.details = options.details
  }

  /** Body of the error response. */
  get status(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    }
  }

  static from(status: Status): StatusError {
    return new StatusError(knownReason(status), status.message ?? `the server answered ${status.code ?? 500}`, {
      ...(status.details === undefined ? {} : { details: status.details }),
      ...(status.code === undefined ? {} : { code: status.code }),
    })
  }
}

/** Reports whether `err` is a StatusError with one of `reasons`, even if another copy of this module created it. */
export function isReason(err: unknown, ...reasons: StatusReason[]): err is StatusError {
  return err instanceof Error && err.name === 'StatusError' && reasons.includes((err as StatusError).reason as StatusReason)
}

/** Resolves with the value of `promise`; with `undefined` when it rejects with reason NotFound: the object or its kind does not exist. */
export async function orAbsent<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (err) {
    if (isReason(err, 'NotFound')) return undefined
    throw err
  }
}

/**
 * Reports whether `err`, or one of its causes, means that the server rejected the request, so that the request had no effect. False for
 * server errors and for requests without a response: such a request may have succeeded, so the caller must keep the objects that the
 * request refers to.
 */
export function wasRejected(err: unknown): boolean {
  for (let cause = err; cause instanceof Error; cause = cause.cause) {
    if (cause.name === 'StatusError') return (cause as StatusError).code < 500
  }
  return false
}

/**
 * Error that a retry cannot fix until one of the objects involved changes. A reconcile that fails only with such errors is not retried.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}

/** Resource in error messages: its name with group, as in `machines.cluster.x-k8s.io "m1" not found`. */
export interface NamedResource {
  group: string
  plural: string
}

const resourceText = ({ group, plural }: NamedResource): string => (group === '' ? plural : `${plural}.${group}`)
const detailsOf = ({ group, plural }: NamedResource, name: string): StatusDetails => ({
  name,
  ...(group === '' ? {} : { group }),
  kind: plural,
})

export const notFound = (resource: NamedResource, name: string): StatusError =>
  new StatusError('NotFound', `${resourceText(resource)} "${name}" not found`, { details: detailsOf(resource, name) })

export const alreadyExists = (resource: NamedResource, name: string): StatusError =>
  new StatusError('AlreadyExists', `${resourceText(resource)} "${name}" already exists`, { details: detailsOf(resource, name) })

/** Error for a conflict, with the text `Operation cannot be fulfilled on RESOURCE "NAME": REASON`. */
export const conflict = (
  resource: NamedResource,
  name: string,
  reason = 'the object has been modified; please apply your changes to the latest version and try again',
): StatusError =>
  new StatusError('Conflict', `Operation cannot be fulfilled on ${resourceText(resource)} "${name}": ${reason}`, {
    details: detailsOf(resource, name),
  })

export const badRequest = (message: string): StatusError => new StatusError('BadRequest', message)

// Field errors

export type FieldErrorType =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'InternalError'
  | 'FieldValueTypeInvalid'

/** Validation error of one field. `field` is the full path, such as `spec.topology.workers.machineDeployments[0].class`. */
export interface FieldError {
  readonly type: FieldErrorType
  readonly field: string
  /** The whole text without the field: `Invalid value: "x": must be …`. */
  readonly text: string
}

/** Formats a value as field errors of Kubernetes print it: strings quoted, objects and lists as JSON, numbers as in Go. */
function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value !== 'object') return typeof value === 'number' ? goText(value) : writeJSON(value)
  // Cached, because each item of a list may cause an error whose value is the whole list.
  let text = texts.get(value)
  if (text === undefined) texts.set(value, (text = writeJSON(value)))
  return text
}
const texts = new WeakMap<object, string>()

const withDetail = (head: string, detail: string): string => (detail === '' ? head : `${head}: ${detail}`)

export const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  type: 'FieldValueInvalid',
  field,
  text: withDetail(`Invalid value: ${valueText(value)}`, detail),
})
/**
 * Appends an error for each detail. Errors after the first 10,000 have no text, because a response only counts them, and a list may
 * have a million invalid elements.
 */
export function addInvalid(errors: FieldError[], field: string, value: unknown, details: readonly string[]): void {
  for (const detail of details) errors.push(errors.length < MaxFieldErrors ? invalid(field, value, detail) : errorWithoutText)
}
/** Appends the error that `make` creates. After the first 10,000 errors, appends an error without text instead of calling `make`. */
export function addError(errors: FieldError[], make: () => FieldError): void {
  errors.push(errors.length < MaxFieldErrors ? make() : errorWithoutText)
}
export const typeInvalid = (field: string, value: unknown, detail: string): FieldError => ({
  type: 'FieldValueTypeInvalid',
  field,
  text: withDetail(`Invalid value: ${valueText(value)}`, detail),
})
export const required = (field: string, detail = ''): FieldError => ({
  type: 'FieldValueRequired',
  field,
  text: withDetail('Required value', detail),
})
export const forbidden = (field: string, detail: string): FieldError => ({
  type: 'FieldValueForbidden',
  field,
  text: withDetail('Forbidden', detail),
})
export const duplicate = (field: string, value: unknown): FieldError => ({
  type: 'FieldValueDuplicate',
  field,
  text: `Duplicate value: ${valueText(value)}`,
})
export const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  type: 'FieldValueNotSupported',
  field,
  text: withDetail(
    `Unsupported value: ${valueText(value)}`,
    supported.length === 0 ? '' : `supported values: ${[...supported].map((s) => JSON.stringify(s)).join(', ')}`,
  ),
})
export const tooLong = (field: string, max: number): FieldError => ({
  type: 'FieldValueTooLong',
  field,
  text: `Too long: may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`,
})
export const tooMany = (field: string, count: number, max: number): FieldError => ({
  type: 'FieldValueTooMany',
  field,
  text: `Too many: ${count}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
})

/** Maximum number of field errors in one response. Each takes about 300 bytes, and a body of 3 MB may cause a million. */
const MaxFieldErrors = 10_000
const errorWithoutText: FieldError = { type: 'FieldValueInvalid', field: '', text: '' }

/**
 * Maximum total length, in characters, of the field errors in one response, without the first error. Most responses stay below it: the
 * errors quote values of the request, which has at most 3 MB.
 */
const MaxErrorCharacters = 10_000_000

/** Returns the field errors whose texts fit into one response: at least the first. */
function fittingErrors(fieldErrors: readonly FieldError[]): readonly FieldError[] {
  let characters = 0
  for (const [index, { field, text }] of fieldErrors.entries()) {
    if (index === 0) continue
    characters += field.length + text.length
    if (index === MaxFieldErrors || characters > MaxErrorCharacters) return fieldErrors.slice(0, index)
  }
  return fieldErrors
}

/**
 * Returns the 422 error for one or more field errors, with the text of a real API server. Contains at most 10,000 field errors; all but the
 * first have at most ten million characters in total. The message contains the number of the errors that are left out.
 */
export function invalidObject(
  kind: { group: string; kind: string },
  name: string,
  fieldErrors: readonly FieldError[],
): StatusError {
  const errors = fittingErrors(fieldErrors)
  // Upstream: equal field errors appear once in the message, but each in the causes.
  const lines = [...new Set(errors.map((e) => `${e.field}: ${e.text}`))]
  if (fieldErrors.length > errors.length) lines.push(`and ${fieldErrors.length - errors.length} more errors`)
  const text = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const kindText = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
  return new StatusError('Invalid', `${kindText} ${JSON.stringify(name)} is invalid: ${text}`, {
    details: {
      ...(name === '' ? {} : { name }),
      ...(kind.group === '' ? {} : { group: kind.group }),
      ...(kind.kind === '' ? {} : { kind: kind.kind }),
      causes: errors.map((e) => ({ reason: e.type, message: e.text, field: e.field })),
    },
  })
}

/** Returns the message of a thrown value, for error texts and logs. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : (JSON.stringify(thrown) ?? 'undefined')

/**
 * Runs `act` and returns its result. If it throws, or its promise rejects, throws a new error: the message is `context`, a colon and the
 * original message, and the original error is the cause. The new error is a TerminalError if the original is one.
 */
export function withErrorContext<T>(context: string, act: () => T): T {
  const rethrow = (err: unknown): never => {
    const Wrapped = err instanceof TerminalError ? TerminalError : Error
    throw new Wrapped(`${context}: ${messageOf(err)}`, { cause: err })
  }
  try {
    const result = act()
    return result instanceof Promise ? (result.catch(rethrow) as T) : result
  } catch (err) {
    return rethrow(err)
  }
}

/**
 * Runs `act`. An error that it throws becomes a TerminalError: for decisions that give the same error for the same objects, so that
 * trying again is useless until one of the objects changes.
 */
export function withTerminalErrors<T>(act: () => T): T {
  try {
    return act()
  } catch (err) {
    throw new TerminalError(messageOf(err), { cause: err })
  }
}
