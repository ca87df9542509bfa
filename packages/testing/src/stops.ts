/**
 * Returns the numbers of the writes after which a test stops a process: by default fewer than `sampled`, at equal intervals. With
 * CAPSTAN_STOPS=24, as in CI, every 24th; with CAPSTAN_STOPS=1, all. The last write is never among them.
 */
export function stopsOf(writes: number, sampled: number): number[] {
  const every = Number(process.env.CAPSTAN_STOPS) || Math.ceil(writes / sampled)
  return Array.from({ length: Math.ceil(writes / every) - 1 }, (_, index) => (index + 1) * every)
}
