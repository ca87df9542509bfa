/** Admission in code and conversions, on a server that is not ours: the same functions behind webhooks. */
import { configureWebhooks, ConvertPath, removeWebhooks, webhookHandler } from '@capstan/controller'
import { listen } from '@capstan/extension'
import type { Admission, Client, DeclaredKind, WebhookClientConfig } from '@capstan/kube'
import { systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface TestWebhooks {
  /** For the definitions of kinds in several versions. */
  readonly conversion: WebhookClientConfig
  /** Has the server ask for admission from now on. */
  configure(): Promise<void>
  /** Takes the configurations away again and stops listening. */
  close(): Promise<void>
}

const name = 'capstan-tests'

/** Serves `admissions` on loopback, and conversions of `kinds`, for the server of `client`. */
export async function testWebhooks(
  client: Client,
  admissions: readonly Admission[],
  kinds: readonly DeclaredKind[],
): Promise<TestWebhooks> {
  const authority = await makeAuthority(systemClock, { commonName: name })
  const certified = await issueCertificate(authority, systemClock, {
    commonName: name,
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  const server = await listen(webhookHandler({ kinds, admission: { of: admissions, reader: client } }), certified)
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const place = (path: string): WebhookClientConfig => ({ url: `${server.url}${path}`, caBundle })
  return {
    conversion: place(ConvertPath),
    // A test that was cut short has left its own: they are replaced.
    configure: () => configureWebhooks(client, name, admissions, place),
    async close() {
      await removeWebhooks(client, name)
      await server.close()
    },
  }
}
