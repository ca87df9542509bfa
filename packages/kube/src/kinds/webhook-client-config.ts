import { s } from '../schema.ts'

/** Address of a webhook: a URL or a Service. */
export interface WebhookClientConfig {
  url?: string
  service?: { namespace: string; name: string; path?: string; port?: number }
  /** CA certificates in PEM format, base64-encoded. */
  caBundle?: string
}

/** Schema of a `WebhookClientConfig`. Required fields are validated in code, with upstream's messages. */
export const webhookClientConfig = s.object({
  url: s.string().optional(),
  service: s
    .object({
      namespace: s.string().optional(),
      name: s.string().optional(),
      path: s.string().optional(),
      port: s.int32().optional(),
    })
    .optional(),
  caBundle: s
    .string({ format: 'byte' })
    .optional()
    .doc('CA certificates in PEM format that verify the certificate of the webhook.'),
})
