/** Orders texts by their UTF-16 code units, as `sort` does unless told otherwise: where text is not all that an order goes by. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
