import type { KubeObject } from '@capstan/kube'

/** Up to this many changes are inserted into the sorted lists one by one; more are merged into them. */
const InsertionLimit = 8
/** Number of unsorted changes at which they are sorted even without a call of `list` or `copy`. */
const MaxUnsorted = 4096

/**
 * Objects of one resource by `namespace/name`, sorted. Sorting is deferred to the next call of `list` or `copy`, or until `MaxUnsorted` keys
 * have changed: inserting a key immediately would move all keys behind it, which in a large table costs more than the rest of a write.
 */
export class Table {
  readonly #byKey: Map<string, KubeObject>
  /** Sorted keys, without the changes since the last sort. */
  #keys: string[]
  /** The objects of `#keys`, in the same order. */
  #objects: KubeObject[]
  /** Keys that changed since the last sort. */
  readonly #unsorted = new Set<string>()

  private constructor(byKey: Map<string, KubeObject>, keys: string[], objects: KubeObject[]) {
    this.#byKey = byKey
    this.#keys = keys
    this.#objects = objects
  }

  static empty(): Table {
    return new Table(new Map(), [], [])
  }

  copy(): Table {
    this.#sortChanges()
    return new Table(new Map(this.#byKey), this.#keys.slice(), this.#objects.slice())
  }

  get size(): number {
    return this.#byKey.size
  }

  get(key: string): KubeObject | undefined {
    return this.#byKey.get(key)
  }

  /** Returns the objects of one namespace, or by default all objects, sorted by key. */
  list(namespace?: string): readonly KubeObject[] {
    this.#sortChanges()
    if (namespace === undefined) return this.#objects.slice()
    // From the first key of the namespace to the first key after the namespace. `0` is the character after `/`.
    return this.#objects.slice(position(this.#keys, `${namespace}/`), position(this.#keys, `${namespace}0`))
  }

  put(key: string, object: KubeObject): void {
    this.#byKey.set(key, object)
    this.#recordChange(key)
  }

  remove(key: string): void {
    if (this.#byKey.delete(key)) this.#recordChange(key)
  }

  #recordChange(key: string): void {
    this.#unsorted.add(key)
    if (this.#unsorted.size === MaxUnsorted) this.#sortChanges()
  }

  #sortChanges(): void {
    if (this.#unsorted.size === 0) return
    if (this.#unsorted.size <= InsertionLimit) for (const key of this.#unsorted) this.#insertOrRemove(key)
    else this.#merge([...this.#unsorted].sort())
    this.#unsorted.clear()
  }

  #insertOrRemove(key: string): void {
    const index = position(this.#keys, key)
    const existingCount = this.#keys[index] === key ? 1 : 0
    const object = this.#byKey.get(key)
    if (object && existingCount) {
      this.#objects[index] = object
    } else if (object) {
      this.#keys.splice(index, 0, key)
      this.#objects.splice(index, 0, object)
    } else {
      this.#keys.splice(index, existingCount)
      this.#objects.splice(index, existingCount)
    }
  }

  #merge(changed: readonly string[]): void {
    const keys: string[] = []
    const objects: KubeObject[] = []
    let next = 0
    const appendChanged = (until: string | undefined) => {
      for (; next < changed.length && (until === undefined || changed[next]! <= until); next++) {
        const object = this.#byKey.get(changed[next]!)
        if (!object) continue
        keys.push(changed[next]!)
        objects.push(object)
      }
    }
    for (const [index, key] of this.#keys.entries()) {
      appendChanged(key)
      // `appendChanged` has replaced or removed the object of this key.
      if (changed[next - 1] === key) continue
      keys.push(key)
      objects.push(this.#objects[index]!)
    }
    appendChanged(undefined)
    this.#keys = keys
    this.#objects = objects
  }
}

/** Returns the index of the first key that is not less than `key`; the number of keys if all are less. */
function position(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  if (high > 0 && keys[high - 1]! < key) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
