/** Checks whether a server is reachable at the address of a webhook. */
import { connect } from 'node:tls'
import { messageOf, type WebhookClientConfig } from '@capstan/kube'

/** Milliseconds to wait for a connection. */
const TimeLimit = 5000

/**
 * Connects as the API server does. Resolves with the error text if the webhook is unreachable, otherwise with undefined. A webhook
 * behind a Service is not checked, because it is reachable only inside the cluster's network.
 */
export async function unreachableReason({ url, caBundle }: WebhookClientConfig): Promise<string | undefined> {
  if (url === undefined) return undefined
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      servername: /^[\d.]+$|:/.test(host) ? '' : host,
      ...(caBundle ? { ca: Buffer.from(caBundle, 'base64') } : {}),
      timeout: TimeLimit,
    })
    const end = (problem: string | undefined) => {
      socket.destroy()
      resolve(problem)
    }
    socket.once('secureConnect', () => end(undefined))
    socket.once('timeout', () => end(`no response within ${TimeLimit / 1000} s`))
    socket.once('error', (err) => end(messageOf(err)))
  })
}
