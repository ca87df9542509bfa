/** Returns the writes after which to stop a process: by default an even sample. CAPSTAN_STOPS=8 returns every eighth write, as in CI, and 1 returns all. */
export function stopsOf(writes: number, sampled: number): number[] {
  const every = Number(process.env.CAPSTAN_STOPS) || Math.ceil(writes / sampled)
  return Array.from({ length: Math.ceil(writes / every) - 1 }, (_, index) => (index + 1) * every)
}
