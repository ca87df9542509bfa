/** Names that say that what they name is a secret. */

/** Any of these within a name, in any case. */
export const secretWords = [
  'passw(?:or)?d',
  'passphrase',
  'secret',
  'token',
  'credential',
  'authorization',
  'bearer',
  'cookie',
  'api[-_. ]?key',
  'access[-_. ]?key',
  'private[-_. ]?key',
  'signing[-_. ]?key',
  'encryption[-_. ]?key',
  'key[-_. ]?data',
  'kube[-_. ]?config',
  'docker[-_. ]?(?:config|cfg)',
].join('|')

const secretWord = new RegExp(secretWords, 'i')

/** Says where a secret is, or how long it holds, not what it is: `dataSecretName`, `secretKeyRef`, `token-auth-file`, `tokenTTL`. */
export const referenceEndings = 'names?|namespace|refs?|kind|mode|file|path|dir|ttl|seconds'

const reference = new RegExp(`(?:${referenceEndings})$`, 'i')

/** Whether a field, a key, a setting or a variable of this name is left out. A prefix such as `example.com/` does not count. */
export function isSecretName(name: string): boolean {
  const own = name.slice(name.lastIndexOf('/') + 1)
  return (secretWord.test(own) && !reference.test(own)) || /[.]key$/i.test(own)
}
