import tls from 'node:tls'

/**
 * Returns TLS options for connections whose configuration names no certificate authority. The connections trust the authorities of the
 * operating system; on Linux, as in Go, SSL_CERT_FILE and SSL_CERT_DIR name their file and folder. The connections also trust the
 * authorities of NODE_EXTRA_CA_CERTS. If the system has no authorities, or this version of Node cannot read them, the connections trust
 * Node's bundled authorities instead. Call this function once for many connections, because creating the context takes milliseconds.
 */
export function trustSystem(options: Omit<tls.SecureContextOptions, 'ca'> = {}): { readonly secureContext: tls.SecureContext } {
  authorities ??= readAuthorities()
  const ca = authorities.length > 0 ? { ca: authorities } : {}
  return { secureContext: tls.createSecureContext({ ...options, ...ca, allowPartialTrustChain: true }) }
}

let authorities: string[] | undefined

function readAuthorities(): string[] {
  // Absent before Node 22.15, and in Node 23.0 to 23.9.
  const get = tls.getCACertificates as typeof tls.getCACertificates | undefined
  const system = get?.('system') ?? []
  return get && system.length > 0 ? [...new Set([...system, ...get('extra')])] : []
}
