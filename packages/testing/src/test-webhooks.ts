/** Serves admission functions and conversions as webhooks for a real API server. */
import { configureWebhooks, ConvertPath, removeWebhooks, webhookHandler } from '@capstan/controller'
import { referenceVersions } from '@capstan/core'
import { listen } from '@capstan/extension'
import type { Admission, Client, DeclaredKind, WebhookClientConfig } from '@capstan/kube'
import { admission, ConfigMap, systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface TestWebhooks {
  /** Conversion webhook for CustomResourceDefinitions of several versions. */
  readonly conversion: WebhookClientConfig
  /** Creates the webhook configurations. Resolves when the server calls the webhooks. */
  configure(): Promise<void>
  /** Deletes the configurations, and waits until the server no longer calls the webhooks. Then, or after a failure, stops listening. */
  close(): Promise<void>
}

const name = 'capstan-tests'

/** Serves `admissions`, and conversions of `kinds`, as webhooks on a loopback address. The API server of `client` calls them. */
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
  const called = new Set<string>()
  const allAdmissions = [...admissions, recordCalls(called)]
  const handle = webhookHandler({
    kinds,
    admission: { of: allAdmissions, reader: client },
    apiVersionOf: referenceVersions(client),
  })
  const server = await listen(handle, certified)
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const clientConfigAt = (path: string): WebhookClientConfig => ({ url: `${server.url}${path}`, caBundle })
  /**
   * Repeats a dry run of creating a ConfigMap until `accepts` returns true for the phases (`default`, `validate`) for which the server has
   * called the webhooks. A kube-apiserver begins to call webhooks only a moment after it has stored their configuration, and calls them for
   * a moment after the configuration was deleted.
   */
  async function untilPhases(accepts: (phases: ReadonlySet<string>) => boolean): Promise<void> {
    let failure: unknown
    for (let attempt = 1; attempt <= 1000; attempt++) {
      called.clear()
      try {
        await client.create(ConfigMap, { metadata: { name, namespace: 'default' } }, { dryRun: true })
        if (accepts(called)) return
      } catch (err) {
        // For example, the server still calls the webhooks of an interrupted test, whose process has ended.
        failure = err
      }
      await new Promise((resolve) => void setTimeout(resolve, 20))
    }
    throw new Error('the API server has not applied the change of the webhook configurations of the test', { cause: failure })
  }

  return {
    conversion: clientConfigAt(ConvertPath),
    // Configurations of an interrupted test are replaced.
    async configure() {
      await configureWebhooks(client, name, allAdmissions, clientConfigAt)
      await untilPhases((phases) => phases.size === 2)
    },
    async close() {
      try {
        await removeWebhooks(client, name)
        await untilPhases((phases) => phases.size === 0)
      } finally {
        await server.close()
      }
    },
  }
}

/** Returns admission of ConfigMaps that changes and rejects nothing, and records the phases that the server has called. */
const recordCalls = (called: Set<string>): Admission =>
  admission<ConfigMap>({
    kind: ConfigMap,
    operations: ['CREATE'],
    default: () => void called.add('default'),
    validate: () => {
      called.add('validate')
      return []
    },
  })
