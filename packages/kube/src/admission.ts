/**
 * Admission beyond schemas, as functions: the embedded server runs them in-process on every write, the webhook server of a
 * manager answers AdmissionReviews with the same ones.
 */
import type { Reader } from './client.ts'
import type { FieldError } from './errors.ts'
import type { AdmissionContext, DeclaredKind, Kind } from './kind.ts'
import type { KubeObject } from './object.ts'

export interface AdmissionRequest<T extends KubeObject> extends AdmissionContext<T> {
  /** Reads other objects; what it finds may be older than the write under way. */
  readonly reader: Reader
  /** Adds a warning that the client shows to its user. */
  warn(message: string): void
}

/** What one kind asks of admission. Both run for creates and updates; `validate` for deletions too if it names DELETE. */
export interface Admission<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  readonly operations?: readonly AdmissionContext<T>['operation'][]
  /** May change the object, and must give the same answer when run again. */
  default?(object: T, request: AdmissionRequest<T>): void | Promise<void>
  validate?(object: T, request: AdmissionRequest<T>): FieldError[] | Promise<FieldError[]>
}

/** Gathers admission of several kinds in one list, where each member's own type no longer matters. */
export const admission = <T extends KubeObject>(of: Admission<T>): Admission => of as unknown as Admission

/** Admission as the declarations of kinds ask for it: what they default and validate beyond their schemas. */
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
