/**
 * Returns `value` if it is a number, or the rounded share of `total` if it is a percentage such as `25%`; `undefined` for other text.
 * Upstream: intstr.GetScaledValueFromIntOrPercent.
 */
export function shareOf(value: number | string, total: number, round: (share: number) => number): number | undefined {
  if (typeof value === 'number') return value
  const percent = /^([+-]?\d+)%$/.exec(value)?.[1]
  return percent === undefined ? undefined : round((Number(percent) * total) / 100)
}
