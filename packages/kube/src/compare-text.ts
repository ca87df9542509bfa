/** Compares strings by UTF-16 code units, as `sort` does by default. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
