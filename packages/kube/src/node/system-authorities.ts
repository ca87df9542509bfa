import tls from 'node:tls'

/**
 * Returns the options of connections to servers that are verified as Go's programs do where a configuration names no authority: by the
 * authorities of the system, or of SSL_CERT_FILE and SSL_CERT_DIR, and also of NODE_EXTRA_CA_CERTS. On a system without any, and in a
 * Node before 22.15, those that come with Node. Connections share the context, because it takes milliseconds to load.
 */
export function trustSystem(options: Omit<tls.SecureContextOptions, 'ca'> = {}): { readonly secureContext: tls.SecureContext } {
  authorities ??= readAuthorities()
  const ca = authorities.length > 0 ? { ca: authorities } : {}
  return { secureContext: tls.createSecureContext({ ...options, ...ca, allowPartialTrustChain: true }) }
}

let authorities: string[] | undefined

function readAuthorities(): string[] {
  // Absent in older versions of Node.
  const get = tls.getCACertificates as typeof tls.getCACertificates | undefined
  const system = get?.('system') ?? []
  return get && system.length > 0 ? [...new Set([...system, ...get('extra')])] : []
}
