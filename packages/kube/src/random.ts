/** Source of random numbers, always passed as an argument. `seededRandom` makes runs repeatable, including the names of objects. */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number
}

export const systemRandom: Random = { next: () => Math.random() }

/** A small, fast generator (mulberry32) with a repeatable sequence for each seed. Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
    },
  }
}

/** Returns a separate generator, whose use does not change the further sequence of `random`. */
export const forkRandom = (random: Random): Random => seededRandom(Math.floor(random.next() * 2 ** 32))

/** Letters and digits of generated names. Upstream: k8s.io/apimachinery/pkg/util/rand, without vowels, so that names rarely contain words. */
const NameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** Returns a random suffix, as Kubernetes appends it to `generateName`. */
export function randomSuffix(random: Random, length = 5): string {
  let suffix = ''
  for (let i = 0; i < length; i++) suffix += NameAlphabet[Math.floor(random.next() * NameAlphabet.length)]
  return suffix
}

/** Returns a version 4 UUID. */
export function randomUUID(random: Random): string {
  let hex = ''
  for (let i = 0; i < 32; i++) {
    const digit = Math.floor(random.next() * 16)
    hex += (i === 12 ? 4 : i === 16 ? 8 + (digit % 4) : digit).toString(16)
  }
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
