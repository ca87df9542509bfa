/** Creates, updates and deletes the MutatingWebhookConfiguration and ValidatingWebhookConfiguration of a manager. */
import type { Admission, Client, Input, Webhook, WebhookClientConfig } from '@capstan/kube'
import { isReason, MutatingWebhookConfiguration, orAbsent, ValidatingWebhookConfiguration } from '@capstan/kube'
import { admittedKinds, operationsOf, type Phase } from './admission-review.ts'
import { admissionPath } from './handler.ts'

/** Returns the client configuration of a manager's webhook for its path. */
export type WebhookClientConfigFor = (path: string) => WebhookClientConfig

const configurations = [
  ['default', MutatingWebhookConfiguration],
  ['validate', ValidatingWebhookConfiguration],
] as const

/** Creates both webhook configurations with this name and the webhooks for `admissions`, or replaces the webhooks of existing ones. */
export async function configureWebhooks(
  client: Client,
  name: string,
  admissions: readonly Admission[],
  clientConfigFor: WebhookClientConfigFor,
): Promise<void> {
  for (const [phase, kind] of configurations) {
    const webhooks = webhooksOf(admissions, phase, clientConfigFor)
    try {
      await client.create(kind, { metadata: { name }, webhooks } as Input<MutatingWebhookConfiguration>)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists')) throw err
      await client.patch(kind, { name }, { type: 'merge', body: { webhooks } })
    }
  }
}

/** Deletes both webhook configurations with this name, if they exist. */
export async function removeWebhooks(client: Client, name: string): Promise<void> {
  await Promise.all(configurations.map(([, kind]) => orAbsent(client.delete(kind, { name }))))
}

/**
 * Returns the webhooks for one phase. Their names are `default.KIND.GROUP` or `validation.KIND.GROUP`, as upstream except for the mutating
 * webhook of ExtensionConfigs, where upstream's name has another group. As upstream, the default failure policy is `Fail`. Admission
 * functions that declare a webhook of their own choose the first part of its name.
 */
const webhooksOf = (admissions: readonly Admission[], phase: Phase, clientConfigFor: WebhookClientConfigFor): Webhook[] =>
  admittedKinds(admissions).flatMap((admitted) => {
    const { kind, webhook } = admitted
    const operations = operationsOf(admitted, phase)
    if (operations.length === 0) return []
    return {
      name: `${webhook?.name ?? (phase === 'default' ? 'default' : 'validation')}.${kind.kind.toLowerCase()}.${kind.group || 'core'}`,
      clientConfig: clientConfigFor(admissionPath(phase, admitted)),
      rules: [{ operations, apiGroups: [kind.group], apiVersions: [kind.version], resources: [kind.plural] }],
      failurePolicy: webhook?.failurePolicy ?? 'Fail',
      matchPolicy: 'Equivalent',
      sideEffects: 'None',
      timeoutSeconds: 10,
      admissionReviewVersions: ['v1'],
      ...(webhook ? { matchConditions: [...webhook.matchConditions] } : {}),
    }
  })
