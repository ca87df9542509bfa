/** Determines the address and certificate authorities of an extension server. Upstream: internal/runtime/client, urlForExtension and getHTTPClient, v1.14. */
import type { ClientConfig, Hook } from '@capstan/api'
import { hookPath } from '@capstan/api'
import { HookFailed } from './hook-failed.ts'

/** The URL of a hook or handler, and the certificate authorities that verify its server. */
export interface Target {
  readonly url: URL
  /** PEM of the trusted certificate authorities. Default: the authorities of the system. */
  readonly ca?: string
  /** Name of the server's ExtensionConfig, for transports that distinguish servers by more than their URL. */
  readonly extensionConfig?: string
}

/** Returns the target of a hook's handler; without `handler`, of the hook itself. @throws HookFailed `bad-url` or `bad-ca` */
export function targetOf(config: ClientConfig, hook: Hook, handler?: string): Target {
  const url = baseUrl(config)
  // Merges slashes, as upstream's path.Join does. The URL parser has already resolved `.` and `..`.
  url.pathname = `${url.pathname}${hookPath(hook, handler)}`.replace(/\/{2,}/g, '/')
  return { url, ...(config.caBundle ? { ca: certificatesIn(config.caBundle) } : {}) }
}

function certificatesIn(caBundle: string): string {
  const ca = atob(caBundle)
  // Node accepts a CA bundle without certificates, which would trust no server. Upstream: k8s.io/client-go/transport, rootCertPool.
  if (/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(ca)) return ca
  const reason = 'failed to create tls config: unable to load root certificates: unable to parse bytes as PEM block'
  throw new HookFailed('bad-ca', `failed to get http client: ${reason}`)
}

function baseUrl({ service, url }: ClientConfig): URL {
  if (service) {
    const { name, namespace, port, path } = service
    return new URL(`https://${name}.${namespace}.svc${port === undefined ? '' : `:${port}`}${path ?? ''}`)
  }
  if (!url) throw badUrl('at least one of service and url should be defined in config')
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed) throw badUrl(`failed to parse url from clientConfig: parse ${JSON.stringify(url)}: invalid URL`)
  if (parsed.protocol !== 'https:') throw badUrl(`expected https scheme, got ${parsed.protocol.slice(0, -1)}`)
  return parsed
}

const badUrl = (reason: string): HookFailed =>
  new HookFailed('bad-url', `failed to get http client: failed to compute URL: ${reason}`)
