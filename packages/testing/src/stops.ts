/**
 * Returns the numbers of the writes after which a test stops a process that sends `writes` writes in total. The first write has the number
 * 1, and the last write is never included. By default, fewer than `sampled` numbers at equal intervals; with CAPSTAN_STOPS=24 every 24th
 * write, with CAPSTAN_STOPS=1 every write except the last.
 */
export function stopsOf(writes: number, sampled: number): number[] {
  const every = Number(process.env.CAPSTAN_STOPS) || Math.ceil(writes / sampled)
  return Array.from({ length: Math.ceil(writes / every) - 1 }, (_, index) => (index + 1) * every)
}
