/**
 * Admission functions of kinds, for defaults and rules that schemas cannot express. The embedded server calls them in-process for the
 * operations that they declare, on the object itself or on its scale subresource; the webhook server of a manager calls the same functions
 * for AdmissionReviews.
 */
import type { Reader } from './client.ts'
import type { FieldError } from './errors.ts'
import type { AdmissionContext, DeclaredKind, Kind } from './kind.ts'
import type { KubeObject } from './object.ts'

/** `userInfo` of an AdmissionReview. */
export interface RequestingUser {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: { readonly [key: string]: readonly string[] }
}

export interface AdmissionRequest<T extends KubeObject> extends AdmissionContext<T> {
  /** The requesting user; with impersonation, the impersonated user. */
  readonly userInfo: RequestingUser
  /** Reads stored objects. The result may be stale, and does not contain the current write. */
  readonly reader: Reader
  /** Adds a warning that the client shows to its user. */
  warn(message: string): void
}

/**
 * Declares a webhook for some admission functions of a kind, separate from the webhooks for its other functions. The webhook has
 * conditions, so that an API server does not call it on every write of the kind. The embedded server, which calls the functions in-process,
 * ignores the declaration.
 */
export interface SeparateWebhook {
  /** Distinguishes the webhook from other webhooks of the kind: a lower-case word. */
  readonly name: string
  /** Whether the API server rejects or accepts the request when the webhook cannot be called. */
  readonly failurePolicy: 'Fail' | 'Ignore'
  /** CEL expressions over the request, which the API server evaluates: it calls the webhook only when all are true. */
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[]
}

/** The admission functions of one kind. */
export interface Admission<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  /** Requests for which the functions run; default CREATE and UPDATE. For DELETE, only `validate` runs. */
  readonly operations?: readonly AdmissionContext<T>['operation'][]
  /**
   * Gives these functions a webhook of their own on API servers that call webhooks. All functions of the kind without this field share one
   * mutating webhook (`default`) and one validating webhook (`validate`).
   */
  readonly webhook?: SeparateWebhook
  /** Sets defaults on the object. Must be idempotent. */
  default?(object: T, request: AdmissionRequest<T>): void | Promise<void>
  /** Returns validation errors. For DELETE, `object` is the stored object. */
  validate?(object: T, request: AdmissionRequest<T>): FieldError[] | Promise<FieldError[]>
}

/** Casts the admission of a kind to the general type, for a list of several kinds. */
export const admission = <T extends KubeObject>(functions: Admission<T>): Admission => functions as unknown as Admission

/** Returns the admission functions that the declarations of kinds contain: their `default` and `validate`. */
export const admissionOf = (kinds: readonly DeclaredKind[]): Admission[] =>
  kinds.flatMap((kind) =>
    kind.default || kind.validate
      ? [
          {
            kind,
            operations: ['CREATE', 'UPDATE'] as const,
            default: (object: KubeObject, request: AdmissionRequest<KubeObject>) => kind.default?.(object, request),
            validate: (object: KubeObject, request: AdmissionRequest<KubeObject>) => kind.validate?.(object, request) ?? [],
          },
        ]
      : [],
  )
