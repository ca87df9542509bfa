/** The steps that reconcilers have in common: lookup, finalizer, pause, phases, status, commit. */
import type { Condition, Kind, KubeObject, NewCondition, ObjectKey, OwnerReference } from '@capstan/kube'
import {
  draft,
  ensureOwnerReference,
  equal,
  hasExactOwnerReference,
  hasFinalizer,
  isDeleting,
  keyText,
  messageOf,
  orAbsent,
  setConditions,
} from '@capstan/kube'
import { commitChanges, patchMetadata } from './commit.ts'
import type { ReconcileContext } from './controller.ts'
import { mergeOutcomes, type Outcome, type Phase, proceed, requeue, runPhases, wait } from './outcome.ts'

type Reconcilable = KubeObject & { spec?: unknown; status?: { conditions?: Condition[]; observedGeneration?: number } }

/** The functions and settings of a reconciler that differ between kinds. The functions are approximately in the order of their use. */
export interface ObjectReconciler<T extends Reconcilable, Related, Scope, IO extends ReconcileContext> {
  readonly kind: Kind<T>
  /** Discards cached data about an object that no longer exists. */
  readonly forget?: (key: ObjectKey, io: IO) => void
  /** Looks up objects that the phases depend on, such as the Cluster. */
  readonly related: (object: T, io: IO) => Promise<Related> | Related
  /** Ends the reconcile early without any write, when no work is left or a dependency is missing. */
  readonly skip?: (object: T, related: Related, io: IO) => Outcome | undefined
  /** Finalizer that is added before the first phase, also to paused objects, so that their deletion waits for this reconciler. */
  readonly finalizer?: string
  /** Returns the Paused condition. While it is True, only this condition and the finalizer are written. */
  readonly paused: (object: T, related: Related) => NewCondition
  /** Makes the scope that phases read and change. `object` is a private draft of the object. */
  readonly scope: (object: T, related: Related, io: IO) => Scope
  readonly phases: (object: T, related: Related) => readonly Phase<Scope, IO>[]
  /** Whether no further phase runs after a phase has failed. Default false. */
  readonly endsAtFailure?: boolean
  /**
   * Writes status and conditions to the draft, even after failed phases. Returns a requeue if the status will change later without a watch
   * event.
   */
  readonly status: (scope: Scope, io: IO, result: PhasesResult<T>) => Outcome
  /** Types of the conditions that the reconciler owns. */
  readonly conditions: readonly string[] | ((scope: Scope) => readonly string[])
  /** Owned condition types of the v1beta1 form. */
  readonly legacyConditions?: readonly string[]
  /** Order of conditions in the list, by type. */
  readonly order: ConditionOrder
  /**
   * Returns the status fields on which other controllers or users act, and those that cannot be computed again because they are stored only
   * in the status, such as times. A change of only other status fields, such as counts and messages, may be postponed, so that one write
   * covers several changes. If absent, all changes are written at once.
   */
  readonly significantFields?: (object: T) => unknown
  /**
   * Whether `status.observedGeneration` is set to the generation after phases without errors. Set it to false for a status without this
   * field, or if the function `status` sets the field. A function returns whether this reconcile has observed the generation completely.
   * Default true.
   */
  readonly observesGeneration?: boolean | ((scope: Scope) => boolean)
}

type ConditionOrder = readonly string[]

/** Argument of `ObjectReconciler.status`, after the phases have run. */
export interface PhasesResult<T> {
  /** The stored object when the phases began. */
  readonly before: T
  /** Errors thrown by the phases. */
  readonly errors: readonly unknown[]
}

/** Reconciles one object. May be called at any time, and any number of times. */
export async function reconcileObject<T extends Reconcilable, Related, Scope, IO extends ReconcileContext>(
  key: ObjectKey,
  io: IO,
  reconciler: ObjectReconciler<T, Related, Scope, IO>,
): Promise<Outcome> {
  const { kind, order } = reconciler
  const cached = io.cache.peek(kind, key)
  if (!cached) {
    reconciler.forget?.(key, io)
    return proceed()
  }
  const related = await reconciler.related(cached, io)
  const skipped = reconciler.skip?.(cached, related, io)
  if (skipped) return skipped
  const before = reconciler.finalizer === undefined ? cached : await ensureFinalizer(io, kind, cached, reconciler.finalizer)
  const paused = reconciler.paused(before, related)
  if (paused.status === 'True') return reportPaused(io, kind, before, paused, order)

  const object = draft(before)
  const scope = reconciler.scope(object, related, io)
  const { outcome, errors } = await runPhases(reconciler.phases(object, related), scope, io, reconciler)

  anticipateGeneration(before, object)
  // The status is written even when a phase failed, so that users see the failure.
  const statusOutcome = reconciler.status(scope, io, { before, errors })
  const { generation } = object.metadata
  const { observesGeneration = true } = reconciler
  const isGenerationObserved = typeof observesGeneration === 'function' ? observesGeneration(scope) : observesGeneration
  if (errors.length === 0 && generation && isGenerationObserved) {
    object.status = { ...object.status, observedGeneration: generation }
  }
  const { conditions, legacyConditions, significantFields } = reconciler
  const postponed = significantFields && errors.length === 0 ? postponeStatus(io, before, object, significantFields) : proceed()
  const owned = typeof conditions === 'function' ? conditions(scope) : conditions
  const options = { conditions: owned, ...(legacyConditions ? { legacyConditions } : {}), cache: io.cache, signal: io.signal }
  try {
    // An object that was deleted during the reconcile needs no status.
    await orAbsent(commitChanges(io.client, kind, before, object, options))
  } catch (err) {
    throw errors.length > 0 ? phaseErrors(kind, key, [...errors, err]) : err
  }
  if (errors.length > 0) throw phaseErrors(kind, key, errors)
  return mergeOutcomes([outcome, statusOutcome, postponed])
}

/**
 * Resets the status of the draft `after` if its changes may be written later, and returns the requeue for that. `significantFields` is a
 * function as in `ObjectReconciler`.
 */
export function postponeStatus<T extends KubeObject & { status?: unknown }>(
  { postponeTime }: Pick<ReconcileContext, 'postponeTime'>,
  before: T,
  after: T,
  significantFields: (object: T) => unknown,
): Outcome {
  if (equal(before.status, after.status) || !equal(significantFields(before), significantFields(after))) return proceed()
  const ms = postponeTime()
  if (ms === 0) return proceed()
  if (before.status === undefined) delete after.status
  else after.status = before.status
  return requeue(ms, 'further changes of the status')
}

/** Ends the reconcile of a paused object: writes only its Paused condition. */
export async function reportPaused<T extends Reconcilable>(
  { client, cache, clock, signal }: Pick<ReconcileContext, 'client' | 'cache' | 'clock' | 'signal'>,
  kind: Kind<T>,
  before: T,
  condition: NewCondition,
  order: ConditionOrder,
): Promise<Outcome> {
  const after = draft(before)
  const now = clock.now()
  const { generation } = before.metadata
  const conditions = setConditions(before.status?.conditions, [condition], { now, generation, order })
  after.status = { ...after.status, conditions }
  await commitChanges(client, kind, before, after, { conditions: [condition.type], cache, signal })
  return wait(condition.message ?? 'reconciliation is paused')
}

/**
 * Adds the finalizer if it is missing, and returns the stored object. Adds none to an object that is being deleted, because the server would
 * reject the write.
 */
export function ensureFinalizer<T extends KubeObject>(
  io: Pick<ReconcileContext, 'client' | 'cache' | 'signal'>,
  kind: Kind<T>,
  object: T,
  finalizer: string,
): Promise<T> {
  return patchMetadata(io, kind, object, (newest) => {
    if (isDeleting(newest) || hasFinalizer(newest, finalizer)) return undefined
    // Other controllers write this list as well. The resourceVersion protects their entries.
    const { finalizers = [], resourceVersion } = newest.metadata
    return { finalizers: [...finalizers, finalizer], resourceVersion }
  })
}

/**
 * Adds the owner reference, or replaces a reference to the same owner that differs in more than blockOwnerDeletion. Returns the stored
 * object.
 */
export function ensureOwner<T extends KubeObject>(
  io: Pick<ReconcileContext, 'client' | 'cache' | 'signal'>,
  kind: Kind<T>,
  object: T,
  owner: OwnerReference,
): Promise<T> {
  return patchMetadata(io, kind, object, (newest) => {
    if (hasExactOwnerReference(newest, owner)) return undefined
    const owned = draft(newest)
    ensureOwnerReference(owned, owner)
    // As in ensureFinalizer, the resourceVersion protects the entries of others.
    const { ownerReferences, resourceVersion } = owned.metadata
    return { ownerReferences, resourceVersion }
  })
}

/**
 * Sets the generation that the server will assign for spec changes of this reconcile, so that the status, which is written after the spec,
 * reports this generation and needs no second write.
 */
function anticipateGeneration(before: Reconcilable, object: Reconcilable): void {
  const { generation } = before.metadata
  if (generation !== undefined && !equal(before.spec, object.spec)) object.metadata.generation = generation + 1
}

/** Combines the errors of phases, and of the commit after them, into one error. The loop retries the reconcile unless all are TerminalErrors. */
function phaseErrors(kind: Kind, key: ObjectKey, errors: readonly unknown[]): AggregateError {
  const text = errors.map(messageOf).join('; ')
  return new AggregateError(errors, `Cannot reconcile ${kind.kind} ${keyText(key)}: ${text}`)
}
