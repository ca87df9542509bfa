/** The result of a reconcile or of one of its phases. An `Outcome` never describes a failure: a phase that fails throws an error. */
import { smallest } from '@capstan/kube'

/** Whether, when and why the key is reconciled again. No outcome of a phase prevents the following phases from running. */
export type Outcome =
  | { readonly kind: 'proceed' }
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'requeue'; readonly after: number; readonly reason: string }

/** The phase has nothing to wait for. */
export const proceed = (): Outcome => ({ kind: 'proceed' })
/** The phase waits for a change of a watched object, whose watch event enqueues the key again. */
export const wait = (reason: string): Outcome => ({ kind: 'wait', reason })
/** The key is reconciled again after `after` milliseconds. Used for changes that no watch event reports, such as the end of a delay. */
export const requeue = (after: number, reason: string): Outcome => ({ kind: 'requeue', after, reason })

/** Merges outcomes: the earliest requeue; without a requeue, a wait if there is one; otherwise `proceed`. Joins all reasons in order. */
export function mergeOutcomes(outcomes: readonly Outcome[]): Outcome {
  const requeues = outcomes.filter((outcome) => outcome.kind === 'requeue')
  const reasons = outcomes.flatMap((outcome) => (outcome.kind === 'proceed' ? [] : [outcome.reason])).join('; ')
  if (requeues.length > 0) return requeue(smallest(requeues.map((outcome) => outcome.after)), reasons)
  return outcomes.some((outcome) => outcome.kind === 'wait') ? wait(reasons) : proceed()
}

/** One phase of a reconcile. */
export type Phase<Scope, IO> = (scope: Scope, io: IO) => Promise<Outcome>

/** The merged outcomes of the phases that succeeded, and the errors of those that failed. */
export interface PhaseResult {
  readonly outcome: Outcome
  readonly errors: readonly unknown[]
}

/**
 * Runs the phases in order. After a phase has failed, no further phase runs if `endsAtFailure` is true, as in some of upstream's
 * reconcilers; otherwise all further phases run, so that the status covers them.
 */
export async function runPhases<Scope, IO>(
  phases: readonly Phase<Scope, IO>[],
  scope: Scope,
  io: IO,
  { endsAtFailure = false }: { readonly endsAtFailure?: boolean | undefined } = {},
): Promise<PhaseResult> {
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  for (const phase of phases) {
    try {
      outcomes.push(await phase(scope, io))
    } catch (err) {
      errors.push(err)
      if (endsAtFailure) break
    }
  }
  return { outcome: mergeOutcomes(outcomes), errors }
}
