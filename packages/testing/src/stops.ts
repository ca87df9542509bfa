/**
 * Returns the writes after which to stop a process: by default an even sample. CAPSTAN_STOPS=8 returns every eighth write, as in CI, and 1
 * returns all. `fewer` divides the number of an even sample that CAPSTAN_STOPS asks for.
 */
export function stopsOf(writes: number, sampled: number, fewer = 1): number[] {
  const requested = Number(process.env.CAPSTAN_STOPS)
  const every = requested > 1 ? requested * fewer : requested || Math.ceil(writes / sampled)
  return Array.from({ length: Math.ceil(writes / every) - 1 }, (_, index) => (index + 1) * every)
}
