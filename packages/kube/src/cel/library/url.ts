/** URLs. Upstream: apiserver/pkg/cel/library/urls.go, which accepts the texts that Go's `url.ParseRequestURI` accepts. */
import { addTo } from '../../lists.ts'
import type { Library } from '../signature.ts'
import { CelList, EvaluationError, LiteralMap, Opaque } from '../value.ts'

class URLValue extends Opaque {
  readonly type = 'kubernetes.URL'
  readonly text: string
  readonly scheme: string
  readonly host: string
  readonly path: string
  readonly query: string

  constructor(text: string, { scheme, host, path, query }: Pick<URLValue, 'scheme' | 'host' | 'path' | 'query'>) {
    super()
    this.text = text
    this.scheme = scheme
    this.host = host
    this.path = path
    this.query = query
  }
  equals(other: Opaque): boolean {
    return other instanceof URLValue && other.text === this.text
  }
}

const Form = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?]*))?([^?]*)(?:\?(.*))?$/s

function read(text: string): URLValue | undefined {
  const parts = Form.exec(text)
  if (!parts || text === '' || /\p{Cc}/u.test(text)) return undefined
  const [, scheme, authority, path = '', query = ''] = parts
  // Without a scheme, the text must start with a slash.
  if (scheme === undefined && !text.startsWith('/')) return undefined
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined
  const host = (authority ?? '').replace(/^[^@]*@/, '')
  if (/[ <>"]/.test(host) || !/^(?:\[[0-9A-Fa-f:.%A-Za-z]+\]|[^:[\]]*)(?::\d*)?$/.test(host)) return undefined
  return new URLValue(text, { scheme: (scheme ?? '').toLowerCase(), host, path, query })
}

function parse(text: string): URLValue {
  const value = read(text)
  if (!value)
    throw new EvaluationError(
      `URL parse error during conversion from string: parse ${JSON.stringify(text)}: invalid URI for request`,
    )
  return value
}

function queryOf({ query }: URLValue): LiteralMap {
  const values = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(query)) addTo(values, name, value)
  return new LiteralMap([...values].map(([name, list]) => [name, new CelList(list)] as const))
}

export const url: Library = {
  'url(string): URL': parse,
  'isURL(string): bool': (text: string) => read(text) !== undefined,
  'URL.getScheme(): string': ({ scheme }: URLValue) => scheme,
  'URL.getHost(): string': ({ host }: URLValue) => host,
  'URL.getHostname(): string': ({ host }: URLValue) => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1'),
  'URL.getPort(): string': ({ host }: URLValue) => /:(\d*)$/.exec(host)?.[1] ?? '',
  'URL.getEscapedPath(): string': ({ path }: URLValue) => path,
  'URL.getQuery(): map<string, list<string>>': queryOf,
}
