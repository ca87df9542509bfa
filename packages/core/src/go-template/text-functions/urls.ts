/** Sprig's functions on URLs. Upstream: sprig v3, url.go; Go's net/url 1.26. */
import { escapeURL, type GoURL, hostnameOf, parseURL, withErrorContext } from '@capstan/kube'
import type { GoMap, TemplateFunction } from '../value.ts'
import { goFunction, has, kindName, mapOf } from '../value.ts'
import { isNil, nilPointerError } from './convert.ts'

export const urlFunctions: Readonly<Record<string, TemplateFunction>> = {
  urlParse: goFunction(['string'], (text) => {
    const { rawPath: _, ...url } = withErrorContext('unable to parse url', () => parseURL(text))
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

type Parts = Omit<GoURL, 'rawPath'>

function textAt(map: GoMap, key: string): string {
  if (!has(map, key)) return ''
  const value = map[key]
  if (isNil(value)) throw nilPointerError()
  if (typeof value === 'string') return value
  throw new Error(`unable to parse ${key} key, must be of type string, but ${kindName(value)} found`)
}

function normalUserinfo(userinfo: string): string | undefined {
  if (userinfo === '') return undefined
  return withErrorContext('unable to parse userinfo in dict', () => parseURL(`proto://${userinfo}@host`)).userinfo
}

function urlText({ scheme, opaque, userinfo, host, path, query, fragment }: Parts): string {
  const prefix = scheme === '' ? '' : `${scheme}:`
  const suffix = (query === '' ? '' : `?${query}`) + (fragment === '' ? '' : `#${escapeURL(fragment, 'fragment')}`)
  if (opaque !== '') return prefix + opaque + suffix
  return prefix + hierarchyText({ scheme, userinfo, host, path }) + suffix
}

function hierarchyText({ scheme, userinfo, host, path }: Pick<Parts, 'scheme' | 'userinfo' | 'host' | 'path'>): string {
  const escapedPath = path === '*' ? path : escapeURL(path, 'path')
  const user = userinfo === undefined ? '' : `${userinfo}@`
  if (host !== '' || user !== '') {
    const separator = host !== '' && path !== '' && !path.startsWith('/') ? '/' : ''
    return `//${user}${escapeURL(host, 'host')}${separator}${escapedPath}`
  }
  if (scheme !== '') return path === '' ? '' : `//${escapedPath}`
  // Without `./`, a first segment with a colon would be read as a scheme.
  return escapedPath.split('/', 1)[0]!.includes(':') ? `./${escapedPath}` : escapedPath
}
