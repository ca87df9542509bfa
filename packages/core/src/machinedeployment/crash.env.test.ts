import { Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { memoryStore, type Store } from '@capstan/apiserver'
import { type Kind, seconds, StatusError, type Transport, VirtualClock, withSend } from '@capstan/kube'
import { expect, test } from 'vitest'
import { createClusterWithTemplates, aMachineDeployment, DevConfig, DevMachine, setsEnv, type SetsEnv } from './sets-env.suite.ts'

const key = { namespace: 'default', name: 'workers' }

/** Allows `count` writes, then none, as if the process had crashed. Writes of Events are always allowed, and are not counted. */
function stopAfter(count: number): { between: (transport: Transport) => Transport; writes: () => number } {
  let writes = 0
  return {
    writes: () => writes,
    between: (transport) =>
      withSend(transport, async (request, signal) => {
        const isWrite = !['get', 'list', 'watch'].includes(request.verb) && request.plural !== 'events'
        if (isWrite && ++writes > count) throw new StatusError('ServiceUnavailable', 'the process has stopped')
        return transport.send(request, signal)
      }),
  }
}

/** A server closes its store; this wrapper keeps it open for the next server. */
const keptOpen = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })

async function objectCounts({ client }: SetsEnv): Promise<Record<string, number>> {
  const count = async (kind: Kind) => (await client.list(kind, { namespace: 'default' })).items.length
  return {
    sets: await count(MachineSet),
    machines: await count(Machine),
    infrastructure: await count(DevMachine),
    configs: await count(DevConfig),
  }
}

const complete = { sets: 1, machines: 1, infrastructure: 1, configs: 1 }

/**
 * Creates a deployment, updates it to another version and deletes it. In each of these parts, stops the process after `count` writes, unless
 * the part needs no more writes, and completes the part with a new process.
 */
async function runWithCrashes(count: number): Promise<{ wasStopped: boolean; countsOfParts: Record<string, number>[] }> {
  const store = keptOpen(memoryStore())
  const clock = new VirtualClock()
  const parts: ((env: SetsEnv) => Promise<unknown>)[] = [
    async (env) => {
      await createClusterWithTemplates(env)
      await env.client.create(MachineDeployment, aMachineDeployment({ replicas: 1 }))
    },
    ({ client }) =>
      client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { template: { spec: { version: 'v1.35.0' } } } } }),
    ({ client }) => client.delete(MachineDeployment, key),
  ]
  const countsOfParts: Record<string, number>[] = []
  let wasStopped = false
  let seed = 1
  for (const part of parts) {
    const stop = stopAfter(count)
    const stopped = await setsEnv({ store, clock, between: stop.between, seed: seed++ })
    await part(stopped)
    for (let waited = 0; waited < 60 && stop.writes() <= count; waited += 5) await stopped.advance(seconds(5))
    const isStopped = stop.writes() > count
    if (!isStopped) countsOfParts.push(await objectCounts(stopped))
    await stopped.close()
    if (!isStopped) continue
    wasStopped = true

    const env = await setsEnv({ store, clock, seed: seed++ })
    await env.advance(seconds(60))
    countsOfParts.push(await objectCounts(env))
    await env.close()
  }
  return { wasStopped, countsOfParts }
}

test('controllers that are stopped between any two writes create no object twice and leave none behind', async () => {
  const none = { sets: 0, machines: 0, infrastructure: 0, configs: 0 }
  for (let count = 0; count < 120; count++) {
    const { wasStopped, countsOfParts } = await runWithCrashes(count)
    expect(countsOfParts, `stopped after ${count} writes`).toEqual([complete, complete, none])
    // All writes were allowed, so every stop was tried.
    if (!wasStopped) return
  }
  throw new Error('the deployment causes more writes than expected')
})
