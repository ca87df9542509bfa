/** Fields of the v1beta1 status that v1beta2 contains under `status.deprecated`. */
import type { Infer, ObjectOfShape, Schema, Shape } from '@capstan/kube'
import { s } from '@capstan/kube'
import { shortText } from './limits.ts'

export const legacyConditions = s
  .list(
    s.object({
      type: s.string(shortText),
      status: s.string(),
      severity: s.string({ maxLength: 32 }).optional(),
      lastTransitionTime: s.timestamp(),
      reason: s.string(shortText).optional(),
      message: s.string({ minLength: 1, maxLength: 10240 }).optional(),
    }),
  )
  .doc('Conditions in the format of v1beta1.')
export type LegacyCondition = Infer<typeof legacyConditions>[number]

/** Fields of kinds that report terminal failures. */
export const legacyFailure = {
  failureReason: s.string().optional().doc('Reason of a terminal failure: one word, for programs.'),
  failureMessage: s.string({ minLength: 1, maxLength: 10240 }).optional().doc('Message of a terminal failure, for people.'),
}

type LegacyStatus<Fields extends Shape> = {
  v1beta1?: { conditions?: LegacyCondition[] } & ObjectOfShape<Fields>
}

/** Declares `status.deprecated` of a kind. `fields` are the fields of `v1beta1` in it, in addition to `conditions`. */
export const legacyStatus = <const Fields extends Shape = {}>(fields?: Fields): Schema<LegacyStatus<Fields>, true> =>
  s
    .of<LegacyStatus<Fields>>(
      s.object({ v1beta1: s.object({ conditions: legacyConditions.optional(), ...fields }).optional() }).json,
    )
    .optional()
    .doc('Status of v1beta1, kept while v1beta1 is served.')
