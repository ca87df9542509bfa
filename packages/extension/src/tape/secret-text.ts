/** Redacts the secrets in a text. A secret is recognized by its form, such as `password: x`. */
import { referenceEndings, secretWords } from './secret-names.ts'

/** Replacement of a secret. */
export const Redacted = '[redacted]'

/** Redacts the secrets that have one of `forms`. Replaces the whole text if it contains a Secret or kubeconfig. Idempotent. */
export function withoutSecrets(text: string): string {
  // Every form contains one of these characters.
  if (!/[\s:=.]/.test(text)) return text
  if (isManifestOfSecrets(text)) return Redacted
  let clean = text
  for (const { pattern, replace } of forms) clean = clean.replace(pattern, replace)
  return clean
}

/** Whether the text contains a Secret, a SecretList or a kubeconfig as YAML or JSON. */
const isManifestOfSecrets = (text: string): boolean =>
  text.includes('kind') &&
  (/\bkind\\{0,4}["']?[ \t]{0,9}:[ \t]{0,9}\\{0,4}["']?Secret(?:List)?\b/.test(text) ||
    (/\bkind\\{0,4}["']?[ \t]{0,9}:[ \t]{0,9}\\{0,4}["']?Config\b/.test(text) && /\b(?:users|clusters|contexts)\b/.test(text)))

/**
 * A form of secrets. Repetitions in the pattern are limited, or have one start and cannot backtrack, so that the search takes linear time for
 * any text.
 */
interface Form {
  readonly pattern: RegExp
  readonly replace: (match: string, ...groups: (string | undefined)[]) => string
}

const quoted = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"?|'[^']*'?`
/** The value after a colon: a quoted text, an indented block or a list on the next lines, or the rest of the line. */
const afterColon = String.raw`${quoted}|(?:[|>][-+\d]{0,3}[ \t]{0,9})?(?:\r?\n(?:[ \t]+[^\n]*|- [^\n]*|(?=\r?\n)))+|[^\n]+`
const afterEquals = String.raw`${quoted}|[^\s,;&"']+`
const secretName = String.raw`(?:(?:${secretWords})(?![\w.-]{0,60}?(?:${referenceEndings})(?![\w.-]))|\.key\b)[\w.-]{0,60}`
const separator = (one: string): string => String.raw`\\{0,4}["']?[ \t]{0,9}${one}[ \t]{0,9}`

const forms: readonly Form[] = [
  // A private key, or the rest of the text if the key is cut off.
  {
    pattern: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    replace: () => Redacted,
  },
  // `password: x`, `api_key=x`, `--token x`, also where the name is in quotes or in escaped quotes.
  {
    pattern: new RegExp(
      `(${secretName})(?:(${separator(':')})(${afterColon})|(${separator('=')})(${afterEquals})|(?<=--[\\w-]{0,100})([ \\t]{1,9})(?!--)(${afterEquals}))`,
      'gi',
    ),
    replace: (_, name, colon, line, equals, word, space, argument) =>
      `${name}${colon ?? equals ?? space}${quotedAs((line ?? word ?? argument)!)}`,
  },
  { pattern: /\b(bearer[ \t]{1,9})\S+/gi, replace: (_, scheme) => `${scheme}${Redacted}` },
  {
    pattern: /\b(basic[ \t]{1,9})([A-Za-z0-9+/]{4,}={0,2})/gi,
    replace: (match, scheme, value) => (Buffer.from(value!, 'base64').includes(':') ? `${scheme}${Redacted}` : match),
  },
  // Parts that are joined by dots, among them a JSON Web Token.
  { pattern: /(?<![\w-])[\w-]+(?:\.[\w-]*)+/g, replace: withoutToken },
  // A bootstrap token of Kubernetes.
  { pattern: /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, replace: () => Redacted },
  // The user and password of a URL.
  { pattern: /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/]+@/gi, replace: (_, scheme) => `${scheme}${Redacted}@` },
]

/**
 * Redacts the first JSON Web Token, and the parts behind it. The token begins with a header, JSON in base64: `{"` and a letter become a text
 * that begins with `eyJ`. The payload is the next part.
 */
function withoutToken(text: string): string {
  const parts = text.split('.')
  let start = 0
  for (const [index, part] of parts.entries()) {
    const header = part.search(/\beyJ[\w-]{5}/)
    const payload = parts[index + 1] ?? ''
    if (header >= 0 && payload.length >= 5) return text.slice(0, start + header) + Redacted
    start += part.length + 1
  }
  return text
}

/** Keeps the quotes of the secret, so that its end can be recognized. */
function quotedAs(value: string): string {
  const [quote] = /^["']/.exec(value) ?? ['']
  return `${quote}${Redacted}${quote}`
}
