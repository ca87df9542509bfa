/** Operations on lists of any length. `push(...list)` and `Math.max(...list)` overflow the stack with some 100,000 elements. */

/** Appends the elements of `lists` to `target`, in order. */
export function appendAll<T>(target: T[], ...lists: readonly Iterable<T>[]): void {
  for (const list of lists) for (const element of list) target.push(element)
}

/** Appends an element to the list of a key. Creates the list if it does not exist. */
export function addTo<K, T>(lists: Map<K, T[]>, key: K, element: T): void {
  const list = lists.get(key)
  if (list) list.push(element)
  else lists.set(key, [element])
}

/** Returns, for each key, whether an equal key precedes it. */
export function repeats(keys: readonly unknown[]): boolean[] {
  const seenKeys = new Set<unknown>()
  return keys.map((key) => {
    const isRepeated = seenKeys.has(key)
    seenKeys.add(key)
    return isRepeated
  })
}

/** Merges records into one; of members with the same name, the last member wins. */
export function merged<T>(records: Iterable<Readonly<Record<string, T>> | undefined>): Record<string, T> {
  const result: Record<string, T> = {}
  for (const record of records) Object.assign(result, record)
  return result
}

/** Returns the largest number, or -Infinity for an empty list, like `Math.max(...numbers)`. */
export function largest(numbers: Iterable<number>): number {
  let result = Number.NEGATIVE_INFINITY
  for (const value of numbers) result = Math.max(result, value)
  return result
}

/** Returns the smallest number, or Infinity for an empty list, like `Math.min(...numbers)`. */
export function smallest(numbers: Iterable<number>): number {
  let result = Number.POSITIVE_INFINITY
  for (const value of numbers) result = Math.min(result, value)
  return result
}
