/** Runs the controllers of this provider against a management cluster. `--crds` prints the CustomResourceDefinitions instead. */
import { parseArgs } from 'node:util'
import { createManager, installKinds } from '@capstan/controller'
import { createClient, customResourceDefinition, type Logger, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, inClusterAccess, loadKubeconfig } from '@capstan/kube/node'
import { memoryCloud } from './cloud.ts'
import { controllers, kinds } from './provider.ts'

const { values: flags } = parseArgs({
  options: {
    kubeconfig: { type: 'string' },
    namespace: { type: 'string' },
    'watch-filter': { type: 'string' },
    crds: { type: 'boolean' },
  },
})

if (flags.crds) {
  const items = kinds.map((kind) => customResourceDefinition(kind))
  console.log(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 2))
} else await run()

async function run(): Promise<void> {
  const access = flags.kubeconfig === undefined ? await inClusterAccess(process.env) : await loadKubeconfig(flags.kubeconfig)
  const [clock, random] = [systemClock, systemRandom]
  const transport = httpsTransport(access, { clock, random, userAgent: 'sample' })
  const client = createClient(transport)
  const log = logger({})
  await installKinds(client, kinds, { clock, random })
  console.log(`Installed ${kinds.length} CustomResourceDefinitions, waiting for those of Cluster API`)
  const filter = flags['watch-filter']
  const manager = createManager({
    client,
    clock,
    random,
    log,
    controllers: controllers(memoryCloud()),
    ...(flags.namespace === undefined ? {} : { namespace: flags.namespace }),
    ...(filter === undefined
      ? {}
      : { eventFilter: ({ metadata }) => metadata.labels?.['cluster.x-k8s.io/watch-filter'] === filter }),
  })
  await manager.start()
  console.log(`Provider ready against ${access.server}`)
  await Promise.race([
    manager.ended,
    new Promise((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
    }),
  ])
  await manager.stop()
  transport.close()
}

/** Writes one JSON line per entry to stderr; omits debug entries. */
function logger(bound: object): Logger {
  const write = (level: string) => (message: string, fields?: object) =>
    console.error(
      JSON.stringify({ level, message, ...bound, ...fields }, (_, value: unknown) =>
        value instanceof Error ? value.message : value,
      ),
    )
  return {
    debug: () => {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields: object) => logger({ ...bound, ...fields }),
  }
}
