/** Sprig's functions on URLs. Upstream: sprig v3, url.go; Go's net/url 1.26. */
import { isIPv4, isIPv6 } from 'node:net'
import { quote } from '../format.ts'
import type { GoMap, TemplateFunction } from '../value.ts'
import { byteSlice, goFunction, has, kindName, mapOf } from '../value.ts'

export const urlFunctions: Readonly<Record<string, TemplateFunction>> = {
  urlParse: goFunction(['string'], (text) => {
    const url = withContext('unable to parse url', () => parseUrl(text))
    return mapOf(Object.entries({ ...url, userinfo: url.userinfo ?? '', hostname: hostnameOf(url.host) }))
  }),
  urlJoin: goFunction(['map'], (map) =>
    // In upstream's order: of several invalid values, the first one is reported.
    urlText({
      scheme: textAt(map, 'scheme'),
      host: textAt(map, 'host'),
      path: textAt(map, 'path'),
      query: textAt(map, 'query'),
      opaque: textAt(map, 'opaque'),
      fragment: textAt(map, 'fragment'),
      userinfo: normalUserinfo(textAt(map, 'userinfo')),
    }),
  ),
}

interface Url {
  readonly scheme: string
  readonly opaque: string
  /** User and password, escaped. */
  readonly userinfo: string | undefined
  readonly host: string
  readonly path: string
  readonly query: string
  readonly fragment: string
}

const Empty: Url = { scheme: '', opaque: '', userinfo: undefined, host: '', path: '', query: '', fragment: '' }

function withContext<T>(context: string, action: () => T): T {
  try {
    return action()
  } catch (err) {
    throw new Error(`${context}: ${(err as Error).message}`, { cause: err })
  }
}

/** Returns the texts before and after the first separator. Without a separator, the second text is empty. */
function cut(text: string, separator: string): [before: string, after: string] {
  const position = text.indexOf(separator)
  return position < 0 ? [text, ''] : [text.slice(0, position), text.slice(position + separator.length)]
}

function parseUrl(text: string): Url {
  const [reference, fragment] = cut(text, '#')
  const url = withContext(`parse ${quote(reference)}`, () => parseReference(reference))
  return { ...url, fragment: withContext(`parse ${quote(text)}`, () => unescape(fragment)) }
}

/** Parses a URL without its fragment. */
function parseReference(text: string): Url {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new Error('net/url: invalid control character in URL')
  if (text.startsWith(':')) throw new Error('missing protocol scheme')
  const prefix = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0] ?? ''
  const scheme = prefix.slice(0, -1).toLowerCase()
  const [hierarchy, query] = cut(text.slice(prefix.length), '?')
  const url = { ...Empty, scheme, query }
  if (!hierarchy.startsWith('/')) {
    if (scheme !== '') return { ...url, opaque: hierarchy }
    if (cut(hierarchy, '/')[0].includes(':')) throw new Error('first path segment in URL cannot contain colon')
  }
  const hasAuthority = scheme === '' ? /^\/\/(?!\/)/.test(hierarchy) : hierarchy.startsWith('//')
  if (!hasAuthority) return { ...url, path: unescape(hierarchy) }
  const [authority = ''] = /^[^/]*/.exec(hierarchy.slice(2))!
  return { ...url, ...parseAuthority(scheme, authority), path: unescape(hierarchy.slice(2 + authority.length)) }
}

function parseAuthority(scheme: string, authority: string): Pick<Url, 'userinfo' | 'host'> {
  const end = authority.lastIndexOf('@')
  const host = parseHost(scheme, authority.slice(end + 1))
  return { userinfo: end < 0 ? undefined : parseUserinfo(authority.slice(0, end)), host }
}

function parseUserinfo(userinfo: string): string {
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(userinfo)) throw new Error('net/url: invalid userinfo')
  const [user, password] = cut(userinfo, ':').map((part) => escape(unescape(part), OutsideUser))
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
  if (isIPv4(address) && zone === '') throw new Error('invalid IP-literal')
  if (!isIPv6(address) || zone === '%') throw new Error(`invalid host: ParseAddr(${quote(address + zone)}): unable to parse IP`)
  return `[${address}${zone}]${port}`
}

function checkPort(port: string): void {
  if (!/^(?::[0-9]*)?$/.test(port)) throw new Error(`invalid port ${quote(port)} after host`)
}

/** Returns the host without its port and without brackets. */
const hostnameOf = (host: string): string => host.replace(/:[0-9]*$/, '').replace(/^\[(.*)\]$/s, '$1')

const escapeError = (text: string): Error => new Error(`invalid URL escape ${quote(byteSlice(text, 0, 3))}`)

function unescape(text: string): string {
  const invalid = /%(?![0-9A-Fa-f]{2})/.exec(text)
  if (invalid) throw escapeError(text.slice(invalid.index))
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString())
}

const OutsideHost = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"]+/g

/** Unescapes a host, where only `%` and bytes beyond ASCII may be escaped. */
function unescapeHost(host: string): string {
  // eslint-disable-next-line no-control-regex
  const invalid = /%(?![0-9A-Fa-f]{2})|%(?!25)[0-7]|(?![A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%])[\u0000-\u007f]/.exec(host)
  if (!invalid) return unescape(host)
  if (invalid[0].startsWith('%')) throw escapeError(host.slice(invalid.index))
  throw new Error(`invalid character ${quote(invalid[0])} in host name`)
}

/** Unescapes a zone. Only `%`, the space and the characters allowed in a host may be escaped there. */
function unescapeZone(zone: string): string {
  const Escape = /%[0-9A-Fa-f]{2}/g
  const invalid = zone.match(Escape)?.find((code) => {
    const char = unescape(code)
    return char !== '%' && char !== ' ' && escape(char, OutsideHost) !== char
  })
  if (invalid !== undefined) throw escapeError(invalid)
  unescapeHost(zone.replace(Escape, ''))
  return unescape(zone)
}

const OutsidePath = /[^A-Za-z0-9\-._~$&+,/:;=@]+/g
const OutsideUser = /[^A-Za-z0-9\-._~$&+,;=]+/g
const OutsideFragment = /[^A-Za-z0-9\-._~$&+,/:;=?@!()*]+/g

/** Escapes the bytes of the characters that `outside` matches. */
const escape = (text: string, outside: RegExp): string =>
  text.replace(outside, (chars) => Buffer.from(chars).toString('hex').toUpperCase().replace(/../g, '%$&'))

function textAt(map: GoMap, key: string): string {
  if (!has(map, key)) return ''
  const value = map[key]
  if (value === null || value === undefined) throw new Error('runtime error: invalid memory address or nil pointer dereference')
  if (typeof value === 'string') return value
  throw new Error(`unable to parse ${key} key, must be of type string, but ${kindName(value)} found`)
}

function normalUserinfo(userinfo: string): string | undefined {
  if (userinfo === '') return undefined
  return withContext('unable to parse userinfo in dict', () => parseUrl(`proto://${userinfo}@host`)).userinfo
}

function urlText({ scheme, opaque, userinfo, host, path, query, fragment }: Url): string {
  const prefix = scheme === '' ? '' : `${scheme}:`
  const suffix = (query === '' ? '' : `?${query}`) + (fragment === '' ? '' : `#${escape(fragment, OutsideFragment)}`)
  if (opaque !== '') return prefix + opaque + suffix
  return prefix + hierarchyText({ scheme, userinfo, host, path }) + suffix
}

function hierarchyText({ scheme, userinfo, host, path }: Pick<Url, 'scheme' | 'userinfo' | 'host' | 'path'>): string {
  const escapedPath = path === '*' ? path : escape(path, OutsidePath)
  const user = userinfo === undefined ? '' : `${userinfo}@`
  if (host !== '' || user !== '') {
    const separator = host !== '' && path !== '' && !path.startsWith('/') ? '/' : ''
    return `//${user}${escape(host, OutsideHost)}${separator}${escapedPath}`
  }
  if (scheme !== '') return path === '' ? '' : `//${escapedPath}`
  // Without `./`, a first segment with a colon would be read as a scheme.
  return cut(escapedPath, '/')[0].includes(':') ? `./${escapedPath}` : escapedPath
}
