/**
 * After which of a story's writes to stop its process: an even sample, which every day is enough to see a mistake. CAPSTAN_STOPS=8
 * stops after every eighth, as CI does, and 1 after each.
 */
export function stopsOf(writes: number, sampled: number): number[] {
  const every = Number(process.env.CAPSTAN_STOPS) || Math.ceil(writes / sampled)
  return Array.from({ length: Math.ceil(writes / every) - 1 }, (_, index) => (index + 1) * every)
}
