/** The process that `crash.suite.ts` kills: writes from many hands at once, and says on stdout what has been acknowledged. */
import { writeSync } from 'node:fs'
import { type KubeObject, systemClock } from '@capstan/kube'
import { openDurable } from './durable.ts'

const [, , folder, round] = process.argv as [string, string, string, string]
const store = await (await openDurable(folder, { clock: systemClock })).store('crash')

const hand = async (number: number): Promise<never> => {
  for (let turn = 0; ; turn++) {
    const name = `hand-${number}-${turn % 20}`
    const key = { resource: 'configmaps', namespace: 'default', name }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { round, padding: 'x'.repeat(turn % 700) } }
    const { revision } = await store.commit({ key, previous: store.get(key), object: object as unknown as KubeObject })
    writeSync(1, `${name} ${revision}\n`)
  }
}
await Promise.all(Array.from({ length: 16 }, (_, number) => hand(number)))
