import { createHash } from 'node:crypto'

/** Letters and digits of generated names. Upstream: k8s.io/apimachinery/pkg/util/rand. */
const Alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/**
 * The five characters that end a generated name, computed from what the object is for. A pass that was stopped after it created
 * an object comes to the same name again, and so finds the object instead of making a second one; objects of another Cluster,
 * even one of the same name, get other names. They look as random as upstream's.
 */
export function nameSuffix(...purpose: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(purpose)).digest()
  let suffix = ''
  for (let i = 0; i < 5; i++) suffix += Alphabet[digest.readUInt32BE(i * 4) % Alphabet.length]
  return suffix
}
