/** Finds the address at which pods reach a server. Upstream: ResolveBindAddress of k8s.io/apimachinery/pkg/util/net, v0.36. */
import type { networkInterfaces } from 'node:os'

/**
 * Returns the bind address of a server. If other machines cannot use it (loopback or wildcard), returns an address of this machine instead,
 * IPv4 first. If the machine has only loopback and link-local addresses, returns the bind address unchanged, which the API server then does
 * not publish as an endpoint.
 */
export function advertisedAddress(bindAddress: string, interfaces: ReturnType<typeof networkInterfaces>): string {
  if (!/^(?:127\.|0\.0\.0\.0$|::1?$|localhost$)/.test(bindAddress)) return bindAddress
  const addresses = Object.values(interfaces)
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !/^(?:169\.254\.|fe80:)/i.test(address))
  const preferred = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0]
  return preferred?.address ?? bindAddress
}
