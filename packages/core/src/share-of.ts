/**
 * Returns a number as it is, or a percentage of `total`, rounded. `undefined` for text that is not a percentage. Upstream:
 * intstr.GetScaledValueFromIntOrPercent.
 */
export function shareOf(value: number | string, total: number, round: (share: number) => number): number | undefined {
  if (typeof value === 'number') return value
  const percent = /^([+-]?\d+)%$/.exec(value)?.[1]
  return percent === undefined ? undefined : round((Number(percent) * total) / 100)
}
