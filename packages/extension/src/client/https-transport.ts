/** Calls extension servers over HTTPS with persistent connections. Upstream: internal/runtime/client, v1.14. */
import type { LookupFunction } from 'node:net'
import { type Clock, systemClock } from '@capstan/kube'
import type { Target } from './client-config.ts'
import { NotHandled } from './connection-errors.ts'
import { HostConnections } from './host-connections.ts'
import { type ProxyEnvironment, proxyFor } from './proxy.ts'
import type { HookTransport } from './transport.ts'

export interface ClientCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
}

export interface HttpsHookTransport extends HookTransport {
  /** Uses this certificate for new connections. Existing connections get no further calls. */
  present(client: ClientCertificate): void
}

export interface HttpsHookTransportOptions {
  /** Client certificate for every server that requests one. */
  readonly client?: ClientCertificate | undefined
  /** Resolves host names. Default: the system's resolver. */
  readonly lookup?: LookupFunction
  /** Environment with HTTPS_PROXY, NO_PROXY and DISABLE_HTTP2. If absent, these variables are ignored. */
  readonly env?: ProxyEnvironment
  /** Default: the system clock. */
  readonly clock?: Clock
}

/** Creates a transport. Only calls to the same host with the same certificate authorities share connections. */
export function httpsHookTransport(options: HttpsHookTransportOptions = {}): HttpsHookTransport {
  const { lookup, env = {}, clock = systemClock } = options
  const hosts = new Map<string, HostConnections>()
  const protocols = env.DISABLE_HTTP2 ? ['http/1.1'] : ['h2', 'http/1.1']
  let { client } = options

  const hostOf = (target: Target): HostConnections => {
    const key = hostKey(target)
    const existing = hosts.get(key)
    if (existing) return existing
    const host = new HostConnections(target, { client, lookup, proxy: proxyFor(target.url, env), protocols, clock })
    hosts.set(key, host)
    return host
  }
  const retire = (isWanted: (key: string) => boolean): void => {
    for (const [key, host] of hosts) {
      if (isWanted(key)) continue
      hosts.delete(key)
      host.retire()
    }
  }

  return {
    async post(target, body, signal, headers = {}, onAttempt) {
      const call = { url: target.url, payload: Buffer.from(body), headers, signal }
      for (let attempts = 1; ; attempts++) {
        onAttempt?.()
        try {
          return await hostOf(target).exchange(call)
        } catch (err) {
          if (!(err instanceof NotHandled)) throw err
          if (signal.aborted) throw signal.reason
          if (attempts >= err.tries) throw err.reason
        }
      }
    },
    retain(targets) {
      const keysOfTargets = new Set(targets.map(hostKey))
      retire((key) => keysOfTargets.has(key))
    },
    present(next) {
      client = next
      retire(() => false)
    },
    close() {
      for (const host of hosts.values()) host.destroy()
      hosts.clear()
    },
  }
}

const hostKey = ({ url, ca }: Target): string => `${url.host}/${ca ?? ''}`
