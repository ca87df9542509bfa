import {
  legacySummary,
  type LegacyCondition,
  type LegacySummaryOptions,
  type NewLegacyCondition,
  setLegacyConditions,
} from '@capstan/kube'

type WithLegacyConditions = { status?: { deprecated?: { v1beta1?: { conditions?: LegacyCondition[] } } } }

/**
 * Writes v1beta1 conditions on the draft and, with `ready`, the Ready condition that aggregates them. Conditions that were not computed
 * stay: upstream also keeps a legacy condition when a reconcile does not compute it.
 */
export function reportLegacyConditions(
  object: WithLegacyConditions,
  computed: readonly NewLegacyCondition[],
  { now, ready }: { readonly now: number; readonly ready?: LegacySummaryOptions },
): void {
  const current = object.status?.deprecated?.v1beta1?.conditions
  const updated = setLegacyConditions(current, computed, now)
  const summary = ready && legacySummary(updated, ready)
  const conditions = summary ? setLegacyConditions(updated, [summary], now) : updated
  if (conditions.length > 0) reportLegacy(object, { conditions })
}

/** Writes v1beta1 status fields on the draft. */
export function reportLegacy<Fields extends object>(
  object: { status?: { deprecated?: { v1beta1?: Fields } } },
  fields: Fields,
): void {
  const status = (object.status ??= {})
  status.deprecated = { ...status.deprecated, v1beta1: { ...status.deprecated?.v1beta1, ...fields } as Fields }
}
