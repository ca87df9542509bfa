import type { ContractField } from '@capstan/api'
import { type ConditionType, mirror, type NewCondition } from '@capstan/kube'
import { SeeLogs } from '../see-logs.ts'
import type { Observed } from './observed.ts'

/** Inputs of a condition that mirrors a condition of a provider's object. */
export interface Mirrored<Source extends 'Ready' | 'Available'> {
  /** Kind of the provider's object, for messages. */
  readonly kind: string
  /** Type of the computed condition. */
  readonly as: Omit<ConditionType<string, Reason<NoInfer<Source>>>, 'reasons'>
  /** Type of the condition of the provider's object. */
  readonly source: Source
  /**
   * Contract field that a provider sets to true at the milestone, such as `status.initialization.provisioned`. Only its path is used: in the
   * message of a condition that is False because the milestone was not reached.
   */
  readonly milestone: ContractField<boolean>
  /**
   * Whether the milestone was ever reached, as recorded in the status of the Cluster or Machine. Determines the status of the condition while
   * the provider's object exists without the source condition. The provider's field may have changed since it was recorded.
   */
  readonly reached: boolean
  /** Message of the reason ObjectDeleted for a missing object; if `undefined`, the reason is ObjectDoesNotExist. */
  readonly deleted: string | undefined
}

/** Reasons that the type of the computed condition must have. It may have further reasons. */
type Reason<Source extends string> = Source | `Not${Source}` | 'ObjectDoesNotExist' | 'ObjectDeleted' | 'InternalError'

/**
 * Returns the condition that mirrors a condition of a provider's object. If `observed.invalid` records how the object breaks the contract, this
 * is the message of the condition. Pure.
 */
export function mirroredCondition<Source extends 'Ready' | 'Available'>(
  observed: Observed,
  { kind, as, source, milestone, reached, deleted }: Mirrored<Source>,
): NewCondition {
  switch (observed.state) {
    case 'found': {
      const { external, invalid } = observed
      // Upstream: the message has the v1beta2 path for every contract version.
      const notReached = `${kind} ${milestone.paths.v1beta2} is false`
      const fallback = reached ? as.true(source) : as.false(`Not${source}`, notReached)
      const condition = mirror(external.object, source, { as, trueReason: source, fallback })
      return invalid === undefined ? condition : { ...condition, message: invalid }
    }
    case 'missing':
      return deleted === undefined ? as.false('ObjectDoesNotExist', `${kind} does not exist`) : as.false('ObjectDeleted', deleted)
    case 'none':
    case 'unread':
      return as.unknown('InternalError', SeeLogs)
  }
}
