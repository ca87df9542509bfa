/** Finds the address at which pods reach a server. Upstream: ResolveBindAddress of k8s.io/apimachinery/pkg/util/net, v0.36. */
import type { networkInterfaces } from 'node:os'

/**
 * Returns the address that a server listens on, or, where others cannot reach that, one of the machine. Without a network it stays as it
 * is: a loopback address is not published.
 */
export function advertisedAddress(bindAddress: string, interfaces: ReturnType<typeof networkInterfaces>): string {
  if (!/^(?:127\.|0\.0\.0\.0$|::1?$|localhost$)/.test(bindAddress)) return bindAddress
  const addresses = Object.values(interfaces)
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !/^(?:169\.254\.|fe80:)/i.test(address))
  const preferred = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0]
  return preferred?.address ?? bindAddress
}
