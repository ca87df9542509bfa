/** Checks whether a server responds at the address of a webhook. */
import { connect } from 'node:tls'
import { messageOf, type WebhookClientConfig } from '@capstan/kube'

/** Milliseconds to wait for a server. */
const Limit = 5000

/**
 * Connects as the API server does. Resolves with the error for an unreachable webhook; one behind a Service counts as reachable, since only
 * the cluster's network can connect to it.
 */
export async function whyUnanswered({ url, caBundle }: WebhookClientConfig): Promise<string | undefined> {
  if (url === undefined) return undefined
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      servername: /^[\d.]+$|:/.test(host) ? '' : host,
      ...(caBundle ? { ca: Buffer.from(caBundle, 'base64') } : {}),
      timeout: Limit,
    })
    const end = (why: string | undefined) => {
      socket.destroy()
      resolve(why)
    }
    socket.once('secureConnect', () => end(undefined))
    socket.once('timeout', () => end(`no answer within ${Limit / 1000} s`))
    socket.once('error', (err) => end(messageOf(err)))
  })
}
