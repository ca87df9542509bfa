/** Selects the proxy of a connection from environment variables. Upstream: golang.org/x/net/http/httpproxy. */
import { BlockList, isIP } from 'node:net'
import { NoAnswer } from './hook-failed.ts'

/** Environment variables by name. The names HTTPS_PROXY and NO_PROXY are also read in lower case. */
export type ProxyEnvironment = { readonly [name: string]: string | undefined }

/** Returns the URL of the proxy; `undefined` without HTTPS_PROXY, and for localhost, loopback addresses and hosts in NO_PROXY. */
export function proxyFor({ hostname, port }: URL, env: ProxyEnvironment): string | undefined {
  const proxyUrl = env.HTTPS_PROXY || env.https_proxy
  if (!proxyUrl) return undefined
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || isIn(host, '127.0.0.0/8') || host === '::1') return undefined
  const exceptions = (env.NO_PROXY || env.no_proxy || '').toLowerCase().split(',')
  if (exceptions.some((exception) => isExcepted(exception.trim(), host, port === '' ? '443' : port))) return undefined
  return proxyUrl.includes('://') ? proxyUrl : `http://${proxyUrl}`
}

/**
 * Parses the proxy URL. Errors do not quote it, because it may contain a password.
 *
 * @throws NoAnswer unless the text is a URL with the scheme http or https
 */
export function proxyAt(url: string): URL {
  const proxy = URL.canParse(url) ? new URL(url) : undefined
  if (!proxy) throw new NoAnswer('Unreachable', 'invalid proxy address: the URL in HTTPS_PROXY cannot be parsed')
  if (proxy.protocol === 'http:' || proxy.protocol === 'https:') return proxy
  throw new NoAnswer('Unreachable', `proxyconnect: scheme ${proxy.protocol.slice(0, -1)} of HTTPS_PROXY: expected http or https`)
}

/**
 * Reports whether an entry of NO_PROXY matches the host and port. Entries are `*`; an address; a CIDR; `example.com`, which includes its
 * subdomains; `.example.com` or `*.example.com`, which match only subdomains. Addresses and names may have a port.
 */
function isExcepted(exception: string, host: string, port: string): boolean {
  if (exception === '') return false
  if (exception === '*') return true
  if (exception.includes('/')) return isIn(host, exception)
  const [, name = exception, exceptionPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(exception) ?? []
  if (exceptionPort !== undefined && exceptionPort !== port) return false
  const plain = name.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '')
  if (plain.startsWith('.')) return host.endsWith(plain)
  return host === plain || (!isIP(plain) && host.endsWith(`.${plain}`))
}

function isIn(host: string, range: string): boolean {
  const version = isIP(host)
  const [network = '', bits = ''] = range.split('/')
  if (version === 0 || isIP(network) !== version || !/^\d+$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128)) return false
  const type = version === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, Number(bits), type)
  return list.check(host, type)
}
