/** Names of fields and keys with secrets. */

/**
 * Regular expression, as text, for the words in names of secrets; for use with the flag `i`. A name with such a word is not the name of a
 * secret if it ends with one of `referenceEndings`.
 */
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

/**
 * Regular expression, as text, for the suffixes of names that contain one of `secretWords` although their values are not
 * secret: `dataSecretName`, `secretKeyRef`, `token-auth-file`, `tokenTTL`.
 */
export const referenceEndings = 'names?|namespace|refs?|kind|mode|file|path|dir|ttl|seconds'

const reference = new RegExp(`(?:${referenceEndings})$`, 'i')

/**
 * Whether a field, key, setting or variable with this name is redacted: by `secretWords`, or because it ends with `.key`. A
 * prefix such as `example.com/` is ignored.
 */
export function isSecretName(name: string): boolean {
  const localName = name.slice(name.lastIndexOf('/') + 1)
  return (secretWord.test(localName) && !reference.test(localName)) || /[.]key$/i.test(localName)
}
