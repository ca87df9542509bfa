/**
 * The provider's manager, which runs beside core's: `node manager.ts KUBECONFIG [HOOKS]`. HOOKS is the module with the hooks of one release of
 * the provider, by default `hooks.ts`. The manager calls the handlers that core has discovered.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createCatalog, type Hook, hookCatalog } from '@capstan/api'
import { createManager, installKinds } from '@capstan/controller'
import { createReadOnlyExtensionConfigController } from '@capstan/core'
import { createExtensionClient, httpsHookTransport } from '@capstan/extension'
import { createClient, Namespace, silent, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { Host } from './host.ts'
import { createHostController } from './host-controller.ts'

const [kubeconfig, hooks = new URL('hooks.ts', import.meta.url).pathname] = process.argv.slice(2)
const { hostHooks } = (await import(pathToFileURL(resolve(hooks)).href)) as { hostHooks: readonly Hook[] }

const [clock, random, log] = [systemClock, systemRandom, silent]
const transport = httpsTransport(await loadKubeconfig(kubeconfig!), { clock, random, userAgent: 'host-provider' })
const client = createClient(transport)
await installKinds(client, [Host], { clock, random, signal: AbortSignal.timeout(30_000) })

const extensions = createExtensionClient({
  transport: httpsHookTransport(),
  catalog: createCatalog([...hookCatalog, ...hostHooks]),
  clock,
  log,
  namespaceLabels: async (name) => (await client.get(Namespace, { name })).metadata.labels ?? {},
})
const controllers = [createReadOnlyExtensionConfigController({ extensions }), createHostController({ runtime: extensions })]
const manager = createManager({ client, clock, random, log, controllers })
await manager.start()
console.log(`Host provider ready with ${hostHooks.map(({ name, version }) => `${name} ${version}`).join(', ')}`)

async function stop(): Promise<void> {
  await manager.stop()
  extensions.close()
  transport.close()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop())
