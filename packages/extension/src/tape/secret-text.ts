/** Secrets within a text, found by their form, since no name says that they are there. */
import { isSecretName, secretWords } from './secret-names.ts'

/** Stands where a secret was. */
export const Redacted = '[redacted]'

/** The text without secrets. Doing it again changes nothing. */
export function withoutSecrets(text: string): string {
  if (isManifestOfSecrets(text)) return Redacted
  let clean = text
  for (const { pattern, replace } of forms) clean = clean.replace(pattern, replace)
  return clean
}

/** A Secret or a kubeconfig written out, as YAML or JSON among other text: all of it is left out. */
const isManifestOfSecrets = (text: string): boolean =>
  /\bkind\\{0,4}["']?[ \t]{0,9}:[ \t]{0,9}\\{0,4}["']?Secret(?:List)?\b/.test(text) ||
  (/\bkind\\{0,4}["']?[ \t]{0,9}:[ \t]{0,9}\\{0,4}["']?Config\b/.test(text) && /\b(?:users|clusters|contexts)\b/.test(text))

interface Form {
  readonly pattern: RegExp
  readonly replace: (match: string, ...groups: string[]) => string
}

/** What comes after a colon: quoted, a block below it, or the rest of the line. */
const afterColon = String.raw`"(?:[^"\\]|\\.)*"?|'[^']*'?|(?:[|>][-+\d]{0,3}[ \t]*)?(?:\r?\n(?:[ \t]+[^\n]*|[ \t]*- [^\n]*|(?=\r?\n)))+|[^\n]+`
const afterEquals = String.raw`"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&"']+`

/** `password: x`, `api_key=x`, also where the name is quoted, and quoted within quotes. */
const assignment = (sign: string, value: string): Form => ({
  pattern: new RegExp(
    String.raw`((?:${secretWords}|\.key\b)[\w.-]{0,60})(\\{0,4}["']?[ \t]{0,9}${sign}[ \t]{0,9})(${value})`,
    'gi',
  ),
  replace: (match, name, sign, value) => (isSecretName(name!) ? `${name}${sign}${quotedAs(value!)}` : match),
})

/** In the quotes that the secret had, so that what follows it is still told from it. */
function quotedAs(value: string): string {
  const [quote] = /^["']/.exec(value) ?? ['']
  return `${quote}${Redacted}${quote}`
}

const forms: readonly Form[] = [
  // To the end of the text when it is cut off.
  {
    pattern: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    replace: () => Redacted,
  },
  assignment(':', afterColon),
  assignment('=', afterEquals),
  {
    pattern: new RegExp(String.raw`(?<=--[\w-]{0,40})((?:${secretWords})[\w-]{0,40})([ \t]+)(?!--)(${afterEquals})`, 'gi'),
    replace: (match, name, space, value) => (isSecretName(name!) ? `${name}${space}${quotedAs(value!)}` : match),
  },
  { pattern: /\b(bearer[ \t]+)\S+/gi, replace: (_, scheme) => `${scheme}${Redacted}` },
  {
    pattern: /\b(basic[ \t]+)([A-Za-z0-9+/]{4,}={0,2})/gi,
    replace: (match, scheme, value) => (atobOr(value!).includes(':') ? `${scheme}${Redacted}` : match),
  },
  // A JSON Web Token: its header begins with `{"`.
  { pattern: /\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*/g, replace: () => Redacted },
  // A bootstrap token of Kubernetes.
  { pattern: /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, replace: () => Redacted },
  { pattern: /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/]+@/gi, replace: (_, scheme) => `${scheme}${Redacted}@` },
]

function atobOr(text: string): string {
  try {
    return atob(text)
  } catch {
    return ''
  }
}
