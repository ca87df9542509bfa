import {
  legacySummary,
  type LegacyCondition,
  type LegacySummaryOptions,
  type NewLegacyCondition,
  setLegacyConditions,
} from '@capstan/kube'

type WithLegacyConditions = { status?: { deprecated?: { v1beta1?: { conditions?: LegacyCondition[] } } } }

/**
 * Writes conditions in the form of v1beta1 on the draft, and with `ready` also the Ready that sums them up. What was not computed
 * stays: upstream leaves a legacy condition as it is while a pass has nothing new to say of it.
 */
export function reportLegacyConditions(
  object: WithLegacyConditions,
  computed: readonly NewLegacyCondition[],
  { now, ready }: { readonly now: number; readonly ready?: LegacySummaryOptions },
): void {
  const before = object.status?.deprecated?.v1beta1?.conditions
  const settled = setLegacyConditions(before, computed, now)
  const summary = ready && legacySummary(settled, ready)
  const conditions = summary ? setLegacyConditions(settled, [summary], now) : settled
  if (conditions.length > 0) reportLegacy(object, { conditions })
}

/** Writes fields of the status in the form of v1beta1 on the draft. */
export function reportLegacy<Fields extends object>(
  object: { status?: { deprecated?: { v1beta1?: Fields } } },
  fields: Fields,
): void {
  const status = (object.status ??= {})
  status.deprecated = { ...status.deprecated, v1beta1: { ...status.deprecated?.v1beta1, ...fields } as Fields }
}
