/** Installs CustomResourceDefinitions: creates or updates them and waits until they are established. */
import type { Client, Clock, DeclaredKind, Input, ManagedFieldsEntry, Random, WebhookClientConfig } from '@capstan/kube'
import { CustomResourceDefinition, customResourceDefinition, isReason, orAbsent, watchObjects } from '@capstan/kube'
import { mergedSpec } from './merge-definition.ts'

export interface InstallOptions {
  readonly clock: Clock
  readonly random: Random
  readonly signal?: AbortSignal
  /**
   * Webhook that converts between versions of a kind. If absent, a new CRD has only the storage version of its kind. In any case, an existing
   * CRD keeps further versions that it serves or that may have stored objects. If it has such versions and `conversion` is absent, it also
   * keeps its conversion.
   */
  readonly conversion?: WebhookClientConfig
}

/**
 * Installs one CRD per kind and resolves when all of them are established.
 * @throws Error when the names in a CRD, such as its plural, conflict with the names in another CRD; StatusError when a write fails; the
 * reason of `signal` when it aborts
 */
export async function installKinds(
  client: Client,
  kinds: readonly DeclaredKind[],
  { clock, random, signal, conversion }: InstallOptions,
): Promise<void> {
  const missing = new Set<string>()
  for (const kind of kinds) {
    const definition = customResourceDefinition(kind, conversion)
    missing.add(definition.metadata.name!)
    await install(client, definition)
  }
  const watchEnd = new AbortController()
  const until = signal ? AbortSignal.any([signal, watchEnd.signal]) : watchEnd.signal
  for await (const event of watchObjects(client, CustomResourceDefinition, { clock, random, signal: until })) {
    const objects = event.kind === 'replaced' ? event.objects : event.kind === 'applied' ? [event.object] : []
    for (const definition of objects) {
      const conditions = definition.status?.conditions ?? []
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True'))
        missing.delete(definition.metadata.name)
      const rejected = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False')
      if (rejected && missing.has(definition.metadata.name)) {
        watchEnd.abort()
        throw new Error(`Cannot install CustomResourceDefinition ${definition.metadata.name}: ${rejected.message}`)
      }
    }
    if (missing.size === 0) watchEnd.abort()
  }
  signal?.throwIfAborted()
}

/**
 * Replaces the conversion webhook in the CRDs of these kinds by the webhook `by`, if the present webhook has a URL that `isOurs`
 * accepts. A CRD whose webhook is a Service stays unchanged. Afterwards no field manager owns the new address.
 * @throws StatusError Conflict when a CRD changes at every attempt
 */
export async function replaceConversionUrls(
  client: Client,
  kinds: readonly DeclaredKind[],
  { isOurs, by }: { isOurs(url: string): boolean; readonly by: WebhookClientConfig },
): Promise<void> {
  // Concurrently, because a manager that stops calls this function, and has little time for it.
  await Promise.all(
    kinds.map(async (kind) => {
      const { metadata, spec } = customResourceDefinition(kind, by)
      const name = metadata.name!
      await retryConflicts(async () => {
        const existing = await orAbsent(client.get(CustomResourceDefinition, { name }))
        const url = existing?.spec.conversion?.webhook?.clientConfig?.url
        if (existing === undefined || url === undefined || !isOurs(url) || !spec.conversion) return
        const { resourceVersion } = existing.metadata
        const body = { metadata: { resourceVersion }, spec: { conversion: withAllAddressFields(spec.conversion) } }
        await giveUpOwnership(
          client,
          await client.patch(CustomResourceDefinition, { name }, { type: 'merge', body }, { fieldManager }),
        )
      })
    }),
  )
}

/**
 * Creates or updates the CRD. Afterwards our field manager owns no field except the name, so that another program, such as
 * `kubectl apply --server-side` with upstream's manifests, can change the CRD without a conflict.
 * @throws StatusError Conflict when the CRD changes at every attempt
 */
async function install(client: Client, definition: Input<CustomResourceDefinition>): Promise<void> {
  const name = definition.metadata.name!
  await retryConflicts(async () => {
    const existing = await orAbsent(client.get(CustomResourceDefinition, { name }))
    const written = existing
      ? await update(client, definition, existing)
      : await client.create(CustomResourceDefinition, definition, { fieldManager })
    if (written.metadata.managedFields?.some(ownsFields)) await giveUpOwnership(client, written)
  })
}

async function retryConflicts(write: () => Promise<void>): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await write()
    } catch (err) {
      // Another manager that starts at the same time, or a controller of the server that writes conditions, causes such a conflict.
      if (!isReason(err, 'AlreadyExists', 'Conflict') || attempts === MaxAttempts) throw err
    }
  }
}

const MaxAttempts = 10

/** Updates the existing CRD. With the same content, the patch has no effect. */
function update(
  client: Client,
  { metadata, spec }: Input<CustomResourceDefinition>,
  existing: CustomResourceDefinition,
): Promise<CustomResourceDefinition> {
  const { resourceVersion } = existing.metadata
  const merged = mergedSpec(spec, existing)
  const body = {
    metadata: { labels: metadata.labels ?? {}, resourceVersion },
    spec: { ...merged, ...(merged.conversion ? { conversion: withAllAddressFields(merged.conversion) } : {}) },
  }
  return client.patch(CustomResourceDefinition, { name: metadata.name! }, { type: 'merge', body }, { fieldManager })
}

/**
 * Adds `null` for each field of `clientConfig` that the conversion does not have. The address of a webhook is a URL or a Service, and a merge
 * patch must remove the other fields of the earlier address.
 */
function withAllAddressFields({ webhook, ...conversion }: NonNullable<Input<CustomResourceDefinition>['spec']['conversion']>) {
  if (!webhook) return conversion
  const clientConfig = { url: null, service: null, caBundle: null, ...webhook.clientConfig }
  return { ...conversion, webhook: { ...webhook, clientConfig } }
}

const fieldManager = 'capstan-crds'

const ownsFields = ({ manager, operation }: ManagedFieldsEntry): boolean => manager === fieldManager && operation === 'Update'

/**
 * Replaces the entries of this field manager by one entry that owns only the name: if managedFields were empty, the server would create an
 * entry that owns all fields at the next apply.
 */
async function giveUpOwnership(client: Client, { metadata }: CustomResourceDefinition): Promise<void> {
  const { name, resourceVersion, managedFields = [] } = metadata
  const nameEntry = {
    manager: fieldManager,
    operation: 'Apply',
    apiVersion: 'apiextensions.k8s.io/v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:metadata': { 'f:name': {} } },
  }
  const entriesOfOthers = managedFields.filter((entry) => entry.manager !== fieldManager)
  const body = { metadata: { resourceVersion, managedFields: [...entriesOfOthers, nameEntry] } }
  await client.patch(CustomResourceDefinition, { name }, { type: 'merge', body })
}
