/** URLs. Upstream: apiserver/pkg/cel/library/urls.go, which parses them with `url.ParseRequestURI` and `url.Parse` of Go 1.26. */
import { messageOf } from '../../errors.ts'
import { escapedPath, type GoURL, hostnameOf, parseURL, requestURIProblem, unescapeURL } from '../../go-url.ts'
import { addTo } from '../../lists.ts'
import type { Library } from '../signature.ts'
import { CelList, EvaluationError, LiteralMap, Opaque } from '../value.ts'

class URLValue extends Opaque {
  readonly type = 'kubernetes.URL'
  readonly text: string
  readonly url: GoURL

  constructor(text: string, url: GoURL) {
    super()
    this.text = text
    this.url = url
  }
  equals(other: Opaque): boolean {
    return other instanceof URLValue && other.text === this.text
  }
}

/** As upstream, parses a second time, because only `url.Parse` separates the fragment. */
function parse(text: string): URLValue {
  const conversion = 'URL parse error during conversion from string: '
  const problem = requestURIProblem(text)
  if (problem !== undefined) throw new EvaluationError(conversion + problem)
  try {
    return new URLValue(text, parseURL(text))
  } catch (err) {
    throw new EvaluationError(conversion + messageOf(err))
  }
}

/** As Go, ignores parts with a semicolon or an invalid escape. */
function queryOf({ url: { query } }: URLValue): LiteralMap {
  const values = new Map<string, string[]>()
  for (const part of query.split('&')) {
    if (part === '' || part.includes(';') || /%(?![0-9A-Fa-f]{2})/.test(part)) continue
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(part.replaceAll('+', ' '))!
    addTo(values, unescapeURL(name), unescapeURL(value))
  }
  return new LiteralMap([...values].map(([name, list]) => [name, new CelList(list)] as const))
}

export const url: Library = {
  'url(string): URL': parse,
  'isURL(string): bool': (text: string) => requestURIProblem(text) === undefined,
  'URL.getScheme(): string': ({ url: { scheme } }: URLValue) => scheme,
  'URL.getHost(): string': ({ url: { host } }: URLValue) => host,
  'URL.getHostname(): string': ({ url: { host } }: URLValue) => hostnameOf(host),
  'URL.getPort(): string': ({ url: { host } }: URLValue) => /:(\d*)$/.exec(host)?.[1] ?? '',
  'URL.getEscapedPath(): string': (value: URLValue) => escapedPath(value.url),
  'URL.getQuery(): map<string, list<string>>': queryOf,
}
