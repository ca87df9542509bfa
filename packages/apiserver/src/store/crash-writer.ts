/**
 * The process that `crash-rounds.ts` kills: prints the state that it found, then writes concurrently until it is killed, and prints each
 * acknowledged write.
 */
import { writeSync } from 'node:fs'
import { type KubeObject, systemClock } from '@capstan/kube'
import type { AcknowledgedWrite, FoundState } from './crash-rounds.ts'
import { openDurable } from './durable.ts'

const [, , folder, checkpointAfter, knownRevision] = process.argv as [string, string, string, string, string]
const store = await (await openDurable(folder, { clock: systemClock, checkpointAfter: Number(checkpointAfter) })).store('crash')
const printLine = (line: FoundState | AcknowledgedWrite) => writeSync(1, `${JSON.stringify(line)}\n`)

const since = store.since(Number(knownRevision), 'configmaps')
printLine({
  revision: store.revision,
  objects: store.list('configmaps').map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]),
  changes:
    since.kind === 'changes'
      ? since.changes.map(({ revision, key, object }) => ({ revision, name: key.name, isDeletion: !object }))
      : undefined,
})

const writeForever = async (number: number): Promise<never> => {
  for (let turn = 0; ; turn++) {
    const name = `writer-${number}-${turn % 10}`
    const key = { resource: 'configmaps', namespace: 'default', name }
    const previous = store.get(key)
    const isDeletion = previous !== undefined && turn % 7 === 6
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { padding: 'x'.repeat(turn % 700) } }
    const { revision } = await store.commit({ key, previous, object: isDeletion ? undefined : (object as unknown as KubeObject) })
    printLine({ revision, name, isDeletion })
  }
}
await Promise.all(Array.from({ length: 16 }, (_, number) => writeForever(number)))
