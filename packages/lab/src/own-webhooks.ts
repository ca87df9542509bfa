/** Calls the conversion webhook of an embedded management cluster as a function, and other webhooks over HTTPS. */
import { httpsWebhooks, type WebhookTransport } from '@capstan/apiserver'
import type { ApiServerOptions } from '@capstan/kubernetes-kinds'
import { ConvertPath, webhookHandler } from '@capstan/controller'
import { referenceVersions } from '@capstan/core'
import type { DeclaredKind, Reader, WebhookClientConfig } from '@capstan/kube'

const service = { namespace: 'capstan-system', name: 'capstan-webhook-service' }
const host = `${service.name}.${service.namespace}.svc`

/** Client config of the conversion webhook, for the CustomResourceDefinitions of the `kinds` that are passed to `ownWebhooks`. */
export const ownConversion: WebhookClientConfig = { service: { ...service, path: ConvertPath } }

/**
 * Returns the webhook options of an API server: the transport for webhook requests, and the function that maps the Service of
 * `ownConversion` to a URL. `client` is a function because the server must exist before its client; conversions use it to read the
 * CustomResourceDefinitions of provider kinds. `remoteWebhooks` calls webhooks that users register.
 */
export function ownWebhooks(
  kinds: readonly DeclaredKind[],
  client: () => Reader,
  remoteWebhooks: WebhookTransport = httpsWebhooks(),
): NonNullable<ApiServerOptions['webhooks']> {
  const handle = webhookHandler({ kinds, apiVersionOf: (groupKind) => referenceVersions(client())(groupKind) })
  const transport: WebhookTransport = {
    async post(target, body, signal) {
      if (target.servername !== host) return remoteWebhooks.post(target, body, signal)
      const response = await handle(new Request(target.url, { method: 'POST', body, signal }))
      return {
        status: response.status,
        contentType: response.headers.get('content-type') ?? '',
        body: Buffer.from(await response.arrayBuffer()),
      }
    },
    close: () => remoteWebhooks.close(),
  }
  return {
    transport,
    resolveService: (namespace, name) =>
      namespace === service.namespace && name === service.name ? new URL(`https://${host}`) : undefined,
  }
}
