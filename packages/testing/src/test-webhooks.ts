/** Admission in code and conversions, on a server that is not ours: the same functions behind webhooks. */
import { configureWebhooks, ConvertPath, removeWebhooks, webhookHandler } from '@capstan/controller'
import { referenceVersions } from '@capstan/core'
import { listen } from '@capstan/extension'
import type { Admission, Client, DeclaredKind, WebhookClientConfig } from '@capstan/kube'
import { admission, ConfigMap, systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface TestWebhooks {
  /** For the definitions of kinds in several versions. */
  readonly conversion: WebhookClientConfig
  /** Has the server ask for admission from now on: resolves once it does. */
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
  const asked = new Set<string>()
  const all = [...admissions, whetherAsked(asked)]
  const handle = webhookHandler({
    kinds,
    admission: { of: all, reader: client },
    apiVersionOf: referenceVersions(client),
  })
  const server = await listen(handle, certified)
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const place = (path: string): WebhookClientConfig => ({ url: `${server.url}${path}`, caBundle })
  return {
    conversion: place(ConvertPath),
    // A test that was cut short has left its own: they are replaced.
    async configure() {
      await configureWebhooks(client, name, all, place)
      // Upstream: a server takes configurations over a moment after it has stored them.
      for (let attempt = 1; asked.size < 2; attempt++) {
        if (attempt > 1) await new Promise((resolve) => void setTimeout(resolve, 20))
        try {
          await client.create(ConfigMap, { metadata: { name, namespace: 'default' } }, { dryRun: true })
        } catch (err) {
          // It still asks a test that was cut short.
          if (attempt >= 1000) throw err
        }
      }
    },
    async close() {
      await removeWebhooks(client, name)
      await server.close()
    },
  }
}

/** Admission that changes and refuses nothing, and notes which phases the server has asked for. */
const whetherAsked = (asked: Set<string>): Admission =>
  admission<ConfigMap>({
    kind: ConfigMap,
    operations: ['CREATE'],
    default: () => void asked.add('default'),
    validate: () => {
      asked.add('validate')
      return []
    },
  })
