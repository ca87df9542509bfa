import { createManager, installKinds } from '@capstan/controller'
import { createClient, seededRandom, silent, systemClock } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { lifetimeController } from './controller.ts'
import { Lifetime } from './lifetime.ts'

const clock = systemClock
const random = seededRandom(Date.now())
const transport = httpsTransport(await loadKubeconfig(process.argv[2]!), { clock, random, userAgent: 'lifetime' })
const client = createClient(transport)
await installKinds(client, [Lifetime], { clock, random, signal: AbortSignal.timeout(30_000) })
const manager = createManager({ client, clock, random, log: silent, controllers: [lifetimeController] })
await manager.start()
console.log('lifetime controller started')
process.once('SIGINT', () => void manager.stop().then(() => transport.close()))
