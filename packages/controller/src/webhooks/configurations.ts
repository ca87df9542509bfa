/** Tells an API server which webhooks to ask: MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */
import type { Admission, Client, Input, Webhook, WebhookClientConfig } from '@capstan/kube'
import { isReason, MutatingWebhookConfiguration, orAbsent, ValidatingWebhookConfiguration } from '@capstan/kube'
import { admittedKinds, operationsOf, type Phase } from './admission-review.ts'
import { admissionPath } from './handler.ts'

/** Where a webhook of a manager is, by its path. */
export type WebhookPlace = (path: string) => WebhookClientConfig

const configurations = [
  ['default', MutatingWebhookConfiguration],
  ['validate', ValidatingWebhookConfiguration],
] as const

/** Has the API server ask for `admissions` from now on, under the configurations of this name, in place of what they said before. */
export async function configureWebhooks(
  client: Client,
  name: string,
  admissions: readonly Admission[],
  place: WebhookPlace,
): Promise<void> {
  for (const [phase, kind] of configurations) {
    const webhooks = webhooksOf(admissions, phase, place)
    try {
      await client.create(kind, { metadata: { name }, webhooks } as Input<MutatingWebhookConfiguration>)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists')) throw err
      await client.patch(kind, { name }, { type: 'merge', body: { webhooks } })
    }
  }
}

export async function removeWebhooks(client: Client, name: string): Promise<void> {
  for (const [, kind] of configurations) await orAbsent(client.delete(kind, { name }))
}

/** Upstream: the names, and that a write is refused when nobody answers. */
const webhooksOf = (admissions: readonly Admission[], phase: Phase, place: WebhookPlace): Webhook[] =>
  admittedKinds(admissions).flatMap((admitted) => {
    const { kind } = admitted
    const operations = operationsOf(admitted, phase)
    if (operations.length === 0) return []
    return {
      name: `${phase === 'default' ? 'default' : 'validation'}.${kind.kind.toLowerCase()}.${kind.group || 'core'}`,
      clientConfig: place(admissionPath(phase, kind)),
      rules: [{ operations, apiGroups: [kind.group], apiVersions: [kind.version], resources: [kind.plural] }],
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      sideEffects: 'None',
      timeoutSeconds: 10,
      admissionReviewVersions: ['v1'],
    }
  })
