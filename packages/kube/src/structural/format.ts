/** String formats that an API server validates; unknown formats are ignored. Upstream: kube-openapi strfmt. */
import { parseDuration } from '../duration.ts'
import { requestURIProblem } from '../go-url.ts'

/** Returns the check of a format; `undefined` for an unknown format. */
export function formatCheck(format: string): ((text: string) => boolean) | undefined {
  const name = format === 'datetime' ? 'date-time' : format
  return Object.hasOwn(Formats, name) ? Formats[name as keyof typeof Formats] : undefined
}

const matching = (pattern: RegExp) => (text: string) => pattern.test(text)

const isDate = (text: string): boolean => {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (!parts) return false
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])]
  const date = new Date(Date.UTC(2000, month - 1, day))
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

/**
 * Reports whether a text is a time as in RFC 3339. As upstream, accepts any character instead of the point before the fraction of a second,
 * and any digits in the offset, and rejects second 60.
 */
const isDateTime = (text: string): boolean => {
  const parts = /^(.+?)[tT](\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:[zZ]|[+-]\d{2}:\d{2})$/.exec(text)
  return parts !== null && isDate(parts[1]!) && parts[2]! <= '23' && parts[3]! <= '59' && parts[4]! <= '59'
}

/** Reports whether a text has Go's duration format or, as upstream, contains a number with a unit, such as `3 days`. */
const isDuration = (text: string): boolean => {
  try {
    parseDuration(text)
    return true
  } catch {
    return /\d\s*(?:ns|nano\p{L}*|us|µs|micro\p{L}*|ms|milli\p{L}*|s|sec\p{L}*|m|min\p{L}*|h|hr|hour\p{L}*|d|day\p{L}*|w|wk|week\p{L}*)(?!\p{L})/iu.test(
      text,
    )
  }
}

/** Reports whether a text is an IPv4 address. As upstream, accepts leading zeros. */
const isIPv4 = (text: string): boolean => {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255)
}

const isIPv6 = (text: string): boolean => {
  const [head = '', tail, ...extraParts] = text.split('::')
  if (extraParts.length > 0) return false
  const groups = (side: string) => (side === '' ? [] : side.split(':'))
  const allGroups = tail === undefined ? groups(head) : [...groups(head), ...groups(tail)]
  const last = allGroups.at(-1) ?? ''
  const mapped = last.includes('.')
  if (mapped && !isIPv4(last)) return false
  const count = allGroups.length + (mapped ? 1 : 0)
  const words = mapped ? allGroups.slice(0, -1) : allGroups
  return words.every((word) => /^[0-9a-fA-F]{1,4}$/.test(word)) && (tail === undefined ? count === 8 : count < 8)
}

const isCIDR = (text: string): boolean => {
  const slash = text.lastIndexOf('/')
  const [address, bits] = [text.slice(0, slash), text.slice(slash + 1)]
  if (slash < 0 || !/^\d+$/.test(bits)) return false
  return isIPv4(address) ? Number(bits) <= 32 : isIPv6(address) && Number(bits) <= 128
}

/** Reports whether a text is an absolute URI or an absolute path, as in the first line of an HTTP request. */
const isRequestURI = (text: string): boolean => requestURIProblem(text) === undefined

const isHostname = (text: string): boolean =>
  text.length <= 255 &&
  text.split('.').every((part) => part.length <= 63) &&
  /^(?:[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?|(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63})$/u.test(
    text,
  )

const digitsSum = (digits: readonly number[], weight: (index: number) => number): number =>
  digits.reduce((sum, digit, index) => sum + digit * weight(index), 0)

const isISBN10 = (text: string): boolean => {
  const plain = text.replaceAll(/[\s-]/g, '')
  if (!/^\d{9}[\dX]$/.test(plain)) return false
  const digits = Array.from(plain).map((digit) => (digit === 'X' ? 10 : Number(digit)))
  return digitsSum(digits, (index) => index + 1) % 11 === 0
}

const isISBN13 = (text: string): boolean => {
  const plain = text.replaceAll(/[\s-]/g, '')
  return /^\d{13}$/.test(plain) && digitsSum(Array.from(plain).map(Number), (index) => (index % 2 === 0 ? 1 : 3)) % 10 === 0
}

const isCreditCard = (text: string): boolean => {
  const plain = text.replaceAll(/[^\d]+/g, '')
  if (
    !/^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14})$/.test(
      plain,
    )
  )
    return false
  const doubled = Array.from(plain)
    .map(Number)
    .reverse()
    .map((digit, index) => (index % 2 === 0 ? digit : digit * 2 > 9 ? digit * 2 - 9 : digit * 2))
  return digitsSum(doubled, () => 1) % 10 === 0
}

/** Reports whether a text is a mail address without a name. A quoted part before the `@` may have any characters except quotes and line ends. */
const isMailAddress = matching(
  /^(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\uffff-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\uffff-]+)*|"[^"\r\n]*")@[^\s@<>(),;:"[\]\\]+$/,
)

/** Reports whether a text is a mail address, or a mail address in angle brackets with or without a name: `Name <address>`. */
const isMailbox = (text: string): boolean => {
  const [, name, address] = /^([^<>]*)<([^<>]*)>$/.exec(text) ?? []
  if (name === undefined || address === undefined) return isMailAddress(text)
  return /^(?:"[^"\r\n]*"|[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\u0080-\uffff\s-]*)$/.test(name.trim()) && isMailAddress(address)
}

const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'

const Formats = {
  bsonobjectid: matching(/^[0-9a-fA-F]{24}$/),
  uri: isRequestURI,
  email: isMailbox,
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCIDR,
  mac: matching(
    /^(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}|[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\2){6}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}|[0-9a-fA-F]{12}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$/,
  ),
  uuid: matching(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid3: matching(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i),
  uuid4: matching(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  uuid5: matching(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i),
  isbn: (text: string) => isISBN10(text) || isISBN13(text),
  isbn10: isISBN10,
  isbn13: isISBN13,
  creditcard: isCreditCard,
  ssn: matching(/^\d{3}[- ]\d{2}[- ]\d{4}$/),
  hexcolor: matching(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: matching(
    /^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$/,
  ),
  byte: matching(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/),
  password: () => true,
  date: isDate,
  duration: isDuration,
  'date-time': isDateTime,
  'k8s-short-name': (text: string) => text.length <= 63 && new RegExp(`^${label}$`).test(text),
  'k8s-long-name': (text: string) => text.length <= 253 && new RegExp(`^${label}(?:\\.${label})*$`).test(text),
}
