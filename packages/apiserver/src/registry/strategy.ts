/** Strategies: rules for creating, updating and deleting objects of a kind. Upstream: rest.RESTCreateStrategy and its siblings. */
import type { Clock, FieldError, Random, UnknownObject, Verb, Work } from '@capstan/kube'
import type { Authorizer } from '../auth/authorizer.ts'
import type { User } from '../auth/user.ts'
import type { PendingWrites } from '../store/pending.ts'
import type { Store } from '../store/store.ts'

/** A write as strategies receive it. */
export interface WriteContext {
  readonly subresource: string | undefined
  readonly verb: Verb
  /** Namespace of the request. */
  readonly namespace: string | undefined
  /** Parts of the server that executes the write. */
  readonly server: WriteServices
  readonly caller: User
  readonly warn: (text: string) => void
}

/** Parts of a server that strategies use. */
export interface WriteServices {
  readonly store: Store
  readonly pending: PendingWrites
  readonly clock: Clock
  readonly random: Random
  readonly authorizer: Authorizer
  /** State that the package of built-in kinds keeps for each server. The server itself does not read it. */
  readonly kindState: unknown
}

/** Rules for creating, updating and deleting objects of a kind. `T` is the type of decoded objects. */
export interface Strategy<T = UnknownObject> {
  /**
   * Whether `metadata.generation` counts changes of all parts except metadata and, if there is a status subresource, the status. If it is a
   * function, changes for which the function returns true count, too, such as changes of labels; it is not called for a write of /status. The
   * request to delete an object also counts, except for kinds with `markDeleted`.
   */
  readonly generation?: boolean | ((object: T, old: T) => boolean)
  /** Whether a create keeps the status, although there is a status subresource. */
  readonly statusOnCreate?: boolean
  /** Whether a PUT of an object that does not exist creates it. */
  readonly createsOnUpdate?: boolean
  /** Whether a deletion that removes an object returns the object instead of a Status. */
  readonly returnsDeleted?: boolean
  /** Warning for a deletion without a propagation policy. For kinds with this warning, such a deletion has the policy `Orphan`. */
  readonly orphanWarning?: string
  /** Validates a name or, if `isPrefix`, a generateName; returns error messages. */
  nameProblems(name: string, isPrefix: boolean): string[]
  /** Prunes from a draft the unknown fields that the schema cannot detect; returns their paths. */
  pruneUnknown?(object: T): string[]
  /** Part of decoding: normalizes a draft to the form that the server stores. */
  normalize?(object: T): void
  /** Part of decoding: sets defaults. In managedFields, they belong to the client as if it had sent them, except in an apply. */
  default?(object: T, old: T | undefined): void
  /** Part of decoding, after the defaults: replaces parts of the draft by equal frozen parts of `sent` (the body) or `old`, and so shares them. */
  reuseFrozen?(object: T, sent: unknown, old: T | undefined): void
  /** Changes the draft after `authorize` and before its validation: for example, sets fields that only the server sets. */
  prepare?(object: T, old: T | undefined, context: WriteContext): void
  /** Escalation check of roles and bindings. @throws StatusError Forbidden if the caller lacks a permission, NotFound for a missing role */
  authorize?(object: T, old: T | undefined, context: WriteContext): void
  /** Fields excluded from managedFields, by subresource ('' for none). Default: fields that clients cannot set there. Upstream: resetFields. */
  readonly resetFields?: { readonly [subresource: string]: readonly (readonly string[])[] }
  /** Resets the parts of a draft that a subresource does not write, instead of the default (`keepOtherParts`). */
  readonly subresourceWrites?: { readonly [subresource: string]: (object: T, old: T) => void }
  /** Returns the grace period of a deletion in seconds, from the requested one. */
  gracePeriod?(object: T, requested: number | undefined): number
  /** Records in the object, for example in its status, that its deletion was requested. `now` is the time of the request. */
  markDeleted?(object: T, now: string): void
  /** Whether the object has finalizers outside of metadata. Its deletion waits for them as well. */
  hasFurtherFinalizers?(object: T): boolean
  /** Validates an object. Kinds with long lists validate in pieces; the object does not change between them. */
  validate?(object: T, old: T | undefined, context: WriteContext): FieldError[] | Work<FieldError[]>
  /** Returns warnings for a valid object. */
  warnings?(object: T, old: T | undefined, context: WriteContext): string[]
}
