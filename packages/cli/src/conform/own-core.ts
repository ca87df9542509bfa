/** Runs the core controllers for `capstan conform`, and installs the kinds of core that the API server lacks. */
import { coreKinds } from '@capstan/api'
import { createManager, installKinds } from '@capstan/controller'
import {
  type Client,
  type Clock,
  CustomResourceDefinition,
  type Logger,
  orAbsent,
  type Random,
  resourceName,
  seconds,
} from '@capstan/kube'
import { createProviders, lateDefaults, memoryStores, providerAdmission } from '@capstan/lab'
import { rejectBesideUpstream } from '../manager/leader-election.ts'

export interface OwnCoreOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Installs missing core kinds and starts the core controllers.
 *
 * @returns a function that stops core and removes the kinds that were installed
 * @throws UsageError while upstream's core manager renews its leader election Lease
 */
export async function startOwnCore({ client, clock, random, log, signal }: OwnCoreOptions): Promise<() => Promise<void>> {
  await rejectBesideUpstream(client, { clock, signal })
  const { items } = await client.list(CustomResourceDefinition, { signal })
  const present = new Set(items.map(({ metadata }) => metadata.name))
  const missing = coreKinds.filter((kind) => !present.has(resourceName(kind)))
  await installKinds(client, missing, { clock, random, signal })
  const providers = createProviders({
    names: ['core'],
    client,
    clock,
    random,
    log,
    stores: memoryStores(),
    // Not used: this process simulates no workload clusters. Core connects to workload clusters over HTTPS.
    endpoint: { host: '', port: 0 },
  })
  const controllers = [...providers.controllers, ...lateDefaults(providerAdmission(), coreKinds)]
  const manager = createManager({ client, clock, random, log, controllers })
  await manager.start()
  return async () => {
    await manager.stop()
    await providers.close()
    const timeout = AbortSignal.timeout(seconds(60))
    for (const kind of missing) {
      await orAbsent(client.delete(CustomResourceDefinition, { name: resourceName(kind) }, { signal: timeout }))
    }
  }
}
