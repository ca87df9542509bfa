import type { ContractField } from '@capstan/api'
import { type ConditionType, mirror, type NewCondition } from '@capstan/kube'
import { SeeLogs } from '../phase-errors.ts'
import { type Observed, read } from './observed.ts'

/** What a condition of ours repeats of a provider's object. */
export interface Mirrored<Source extends 'Ready' | 'Available'> {
  readonly kind: string
  readonly as: Omit<ConditionType<string, Reason<NoInfer<Source>>>, 'reasons'>
  readonly source: Source
  /** Stands in for the source while the object does not report it. */
  readonly milestone: ContractField<boolean>
  /** What to say when the object is not there though it has been; `undefined` when it has not. */
  readonly deleted: string | undefined
}

/** A condition may have others, too. */
type Reason<Source extends string> = Source | `Not${Source}` | 'ObjectDoesNotExist' | 'ObjectDeleted' | 'InternalError'

/** Our condition for what a pass saw of a provider's object. Pure. */
export function mirrored<Source extends 'Ready' | 'Available'>(
  observed: Observed,
  { kind, as, source, milestone, deleted }: Mirrored<Source>,
): NewCondition {
  switch (observed.state) {
    case 'found': {
      const { external } = observed
      const reached = read(external, milestone)
      // Upstream: the message has the path of v1beta2, whatever the contract of the object.
      const notReached = `${kind} ${milestone.paths.v1beta2} is ${reached ?? false}`
      const fallback = reached ? as.true(source) : as.false(`Not${source}`, notReached)
      return mirror(external.object, source, { as, trueReason: source, fallback })
    }
    case 'missing':
      return deleted === undefined ? as.false('ObjectDoesNotExist', `${kind} does not exist`) : as.false('ObjectDeleted', deleted)
    case 'none':
    case 'unread':
      return as.unknown('InternalError', SeeLogs)
  }
}
