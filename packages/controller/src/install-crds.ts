/** Makes an API server serve kinds: creates or updates their CustomResourceDefinitions and waits until it does. */
import type { Client, Clock, DeclaredKind, Input, Random, WebhookClientConfig } from '@capstan/kube'
import { CustomResourceDefinition, customResourceDefinition, isReason, watchObjects } from '@capstan/kube'

export interface InstallOptions {
  readonly clock: Clock
  readonly random: Random
  readonly signal?: AbortSignal
  /** Who converts between versions of a kind; absent: only those are served that are stored. */
  readonly conversion?: WebhookClientConfig
}

/**
 * Installs one definition per kind and resolves when all of them are established.
 *
 * @throws Error naming the definition whose names another one has taken
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
  const done = new AbortController()
  const until = signal ? AbortSignal.any([signal, done.signal]) : done.signal
  for await (const event of watchObjects(client, CustomResourceDefinition, { clock, random, signal: until })) {
    const objects = event.kind === 'replaced' ? event.objects : event.kind === 'applied' ? [event.object] : []
    for (const definition of objects) {
      const conditions = definition.status?.conditions ?? []
      if (conditions.some(({ type, status }) => type === 'Established' && status === 'True'))
        missing.delete(definition.metadata.name)
      const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False')
      if (refused && missing.has(definition.metadata.name)) {
        done.abort()
        throw new Error(`Cannot install CustomResourceDefinition ${definition.metadata.name}: ${refused.message}`)
      }
    }
    if (missing.size === 0) done.abort()
  }
  signal?.throwIfAborted()
}

/** A definition that is there already and says the same is left alone: the patch then changes nothing. */
async function install(client: Client, definition: Input<CustomResourceDefinition>): Promise<void> {
  try {
    await client.create(CustomResourceDefinition, definition)
  } catch (err) {
    if (!isReason(err, 'AlreadyExists')) throw err
    const { metadata, spec } = definition
    const body = { metadata: { labels: metadata.labels ?? {} }, spec }
    await client.patch(CustomResourceDefinition, { name: metadata.name! }, { type: 'merge', body })
  }
}
