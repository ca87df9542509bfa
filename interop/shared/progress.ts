/** Returns a function that prints a line, preceded by the seconds since `progressSince` was called. */
export function progressSince(): (line: string) => void {
  const startedAt = performance.now()
  return (line) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${line}`)
}
