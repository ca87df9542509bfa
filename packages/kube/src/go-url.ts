/** Parses URLs as Go's net/url 1.26 does. */
import { messageOf, withErrorContext } from './errors.ts'
import { quotedGo } from './go-text.ts'
import { readIPv4, readIPv6 } from './ip-address.ts'

export interface GoURL {
  /** In lower case. */
  readonly scheme: string
  /** The part after the scheme, if it does not begin with a slash. */
  readonly opaque: string
  /** User and password, escaped. */
  readonly userinfo: string | undefined
  /** Host and port, without escapes. */
  readonly host: string
  /** Without escapes. */
  readonly path: string
  /** The path with the escapes of the text. */
  readonly rawPath: string
  readonly query: string
  /** Without escapes. */
  readonly fragment: string
}

/** Parses a text as `url.Parse`. @throws Error with Go's text */
export function parseURL(text: string): GoURL {
  const [reference, fragment] = cut(text, '#')
  const url = withErrorContext(`parse ${quotedGo(reference)}`, () => parseReference(reference))
  return { ...url, fragment: withErrorContext(`parse ${quotedGo(text)}`, () => unescapeURL(fragment)) }
}

/** Returns the error text of `url.ParseRequestURI`, which requires a scheme or a leading slash; `undefined` for a valid text. */
export function requestURIProblem(text: string): string | undefined {
  try {
    withErrorContext(`parse ${quotedGo(text)}`, () => parseReference(text, true))
    return undefined
  } catch (err) {
    return messageOf(err)
  }
}

/** Returns the texts before and after the first separator. Without a separator, the second text is empty. */
function cut(text: string, separator: string): [before: string, after: string] {
  const position = text.indexOf(separator)
  return position < 0 ? [text, ''] : [text.slice(0, position), text.slice(position + separator.length)]
}

/** Parses a URL without its fragment. */
function parseReference(text: string, isRequestURI = false): Omit<GoURL, 'fragment'> {
  if (/[\p{Cc}--[\u0080-\u009f]]/v.test(text)) throw new Error('net/url: invalid control character in URL')
  if (text === '' && isRequestURI) throw new Error('empty url')
  if (text.startsWith(':')) throw new Error('missing protocol scheme')
  const prefix = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0] ?? ''
  const scheme = prefix.slice(0, -1).toLowerCase()
  const [hierarchy, query] = cut(text.slice(prefix.length), '?')
  const url = { scheme, query, opaque: '', userinfo: undefined, host: '', path: '', rawPath: '' }
  if (!hierarchy.startsWith('/') && text !== '*') {
    if (scheme !== '') return { ...url, opaque: hierarchy }
    if (isRequestURI) throw new Error('invalid URI for request')
    if (cut(hierarchy, '/')[0].includes(':')) throw new Error('first path segment in URL cannot contain colon')
  }
  const hasAuthority = scheme === '' ? !isRequestURI && /^\/\/(?!\/)/.test(hierarchy) : hierarchy.startsWith('//')
  const authority = hasAuthority ? /^[^/]*/.exec(hierarchy.slice(2))![0] : undefined
  const rawPath = authority === undefined ? hierarchy : hierarchy.slice(2 + authority.length)
  return { ...url, ...(authority === undefined ? {} : parseAuthority(scheme, authority)), rawPath, path: unescapeURL(rawPath) }
}

function parseAuthority(scheme: string, authority: string): Pick<GoURL, 'userinfo' | 'host'> {
  const end = authority.lastIndexOf('@')
  const host = parseHost(scheme, authority.slice(end + 1))
  return { userinfo: end < 0 ? undefined : parseUserinfo(authority.slice(0, end)), host }
}

function parseUserinfo(userinfo: string): string {
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(userinfo)) throw new Error('net/url: invalid userinfo')
  const [user, password] = cut(userinfo, ':').map((part) => escapeURL(unescapeURL(part), 'user'))
  return userinfo.includes(':') ? `${user}:${password}` : user!
}

function parseHost(scheme: string, host: string): string {
  const bracket = host.lastIndexOf('[')
  if (bracket > 0) throw new Error('invalid IP-literal')
  if (bracket === 0) return parseAddress(host)
  // For schemes other than http and https, Go allows several colons in the host, because URLs of databases may list several hosts.
  const colon = scheme === 'http' || scheme === 'https' ? host.indexOf(':') : host.lastIndexOf(':')
  if (colon >= 0) checkPort(host.slice(colon))
  return unescapeHost(host)
}

/** Parses an IPv6 address in brackets, with an optional zone and port. */
function parseAddress(host: string): string {
  const end = host.lastIndexOf(']')
  if (end < 0) throw new Error("missing ']' in host")
  const port = host.slice(end + 1)
  checkPort(port)
  const [, escapedAddress = '', escapedZone = ''] = /^(.*?)(%25.*)?$/s.exec(host.slice(1, end))!
  const address = unescapeHost(escapedAddress)
  const zone = unescapeZone(escapedZone)
  if (readIPv4(address) !== undefined && zone === '') throw new Error('invalid IP-literal')
  if (readIPv6(address) === undefined || zone === '%')
    throw new Error(`invalid host: ParseAddr(${quotedGo(address + zone)}): unable to parse IP`)
  return `[${address}${zone}]${port}`
}

function checkPort(port: string): void {
  if (!/^(?::[0-9]*)?$/.test(port)) throw new Error(`invalid port ${quotedGo(port)} after host`)
}

/** Unescapes a host, where only `%` and bytes beyond ASCII may be escaped. */
function unescapeHost(host: string): string {
  const invalid = /%(?![0-9A-Fa-f]{2})|%(?!25)[0-7]|(?![A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%])\p{ASCII}/u.exec(host)
  if (!invalid) return unescapeURL(host)
  if (invalid[0].startsWith('%')) throw escapeError(host.slice(invalid.index))
  throw new Error(`invalid character ${quotedGo(invalid[0])} in host name`)
}

/** Unescapes a zone. Only `%`, the space and the characters allowed in a host may be escaped there. */
function unescapeZone(zone: string): string {
  const Escape = /%[0-9A-Fa-f]{2}/g
  const invalid = zone.match(Escape)?.find((code) => {
    const char = unescapeURL(code)
    return char !== '%' && char !== ' ' && escapeURL(char, 'host') !== char
  })
  if (invalid !== undefined) throw escapeError(invalid)
  unescapeHost(zone.replace(Escape, ''))
  return unescapeURL(zone)
}

/** Decodes the escapes of a text. Bytes that are not UTF-8 become U+FFFD. @throws Error with Go's text for an invalid escape */
export function unescapeURL(text: string): string {
  const invalid = /%(?![0-9A-Fa-f]{2})/.exec(text)
  if (invalid) throw escapeError(text.slice(invalid.index))
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) =>
    new TextDecoder().decode(Uint8Array.from(escapes.slice(1).split('%'), (hex) => Number.parseInt(hex, 16))),
  )
}

/** The error names the first three bytes. */
const escapeError = (text: string): Error =>
  new Error(`invalid URL escape ${quotedGo(new TextDecoder().decode(new TextEncoder().encode(text).slice(0, 3)))}`)

/** Characters that Go escapes by default in each part of a URL. */
const Escaped = {
  user: /[^A-Za-z0-9\-._~$&+,;=]+/g,
  host: /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"]+/g,
  path: /[^A-Za-z0-9\-._~$&+,/:;=@]+/g,
  fragment: /[^A-Za-z0-9\-._~$&+,/:;=?@!()*]+/g,
} as const

/** Escapes a text for a part of a URL. */
export const escapeURL = (text: string, part: keyof typeof Escaped): string =>
  text.replace(Escaped[part], (characters) =>
    Array.from(new TextEncoder().encode(characters), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )

/**
 * Returns the escaped path: as in the text of the URL, if each character is allowed in a path; otherwise with the escapes that are
 * necessary by default.
 */
export const escapedPath = ({ path, rawPath }: GoURL): string =>
  /^[A-Za-z0-9\-._~!$&'()*+,;=:@[\]/%]*$/.test(rawPath) ? rawPath : escapeURL(path, 'path')

/** Returns the host without its port and without brackets. */
export const hostnameOf = (host: string): string => host.replace(/:[0-9]*$/, '').replace(/^\[(.*)\]$/s, '$1')
