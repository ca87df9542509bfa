import tls from 'node:tls'

/**
 * Returns TLS options for connections whose configuration names no certificate authority. Like Go, they trust the authorities of the system,
 * or those of SSL_CERT_FILE and SSL_CERT_DIR; in addition, those of NODE_EXTRA_CA_CERTS. If the system has none, or Node is older than
 * 22.15 and cannot read them, they trust Node's bundled authorities instead. Create the context once for many connections, because that
 * takes milliseconds.
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
