import { Cluster, Machine } from '@capstan/api'
import { controller, proceed, watches } from '@capstan/controller'
import { createClient, type Logger, Secret, silent, StatusError, type Transport, VirtualClock } from '@capstan/kube'
import { LocalMachine } from '@capstan/local'
import { expect, test } from 'vitest'
import { awaitKinds } from './missing-kinds.ts'

const localMachineController = controller<LocalMachine>({
  name: 'localmachine',
  for: LocalMachine,
  owns: [Secret],
  watches: [watches(Machine, () => []), watches(Cluster, () => [])],
  reconcile: () => Promise.resolve(proceed()),
})

/** Prepares options with a fake API server that serves only the resources `served`, and forbids lists of the resources `forbidden`. */
function setup(served: readonly string[], forbidden: readonly string[] = []) {
  const clock = new VirtualClock()
  const resources = new Set(served)
  const warnings: unknown[] = []
  const log: Logger = { ...silent, warn: (_, fields) => void warnings.push(fields?.missing) }
  const transport: Transport = {
    send: ({ plural }) => {
      if (forbidden.includes(plural)) return Promise.reject(new StatusError('Forbidden', 'not for this user'))
      if (resources.has(plural)) return Promise.resolve({ metadata: {}, items: [] })
      return Promise.reject(new StatusError('NotFound', 'the server could not find the requested resource'))
    },
    watch: () => Promise.reject(new Error('not watched here')),
    close() {},
  }
  const abort = new AbortController()
  const { signal } = abort
  const options = {
    client: createClient(transport),
    controllers: [localMachineController],
    own: [LocalMachine],
    clock,
    log,
    signal,
  }
  const advance = async (ms: number) => {
    const end = clock.now() + ms
    do await new Promise((resolve) => setImmediate(resolve))
    while (clock.step(end))
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { options, advance, resources, warnings, abort }
}

test('fails with the names of the kinds that are still missing after a minute', async () => {
  const { options, advance, warnings } = setup(['secrets', 'clusters'])
  const outcome = awaitKinds(options).then(
    () => 'done',
    (err: unknown) => err,
  )
  await advance(59_000)
  expect(await Promise.race([outcome, Promise.resolve('waiting')])).toBe('waiting')
  expect(warnings).toEqual(['machines.cluster.x-k8s.io (v1beta2)'])
  await advance(3000)
  expect(await outcome).toMatchObject({
    name: 'UsageError',
    message: 'The API server does not serve machines.cluster.x-k8s.io (v1beta2), which the controllers need',
    hint: expect.stringContaining('capstan manifests core'),
  })
})

test('waits for kinds that another manager installs meanwhile', async () => {
  const { options, advance, resources } = setup(['secrets', 'clusters'])
  const waiting = awaitKinds(options)
  await advance(30_000)
  resources.add('machines')
  await advance(3000)
  await waiting
})

test('does not wait for kinds that this manager installs or has no permission to list', async () => {
  const { options, warnings } = setup(['machines', 'clusters'], ['secrets'])
  await awaitKinds(options)
  expect(warnings).toEqual([])
})

test("waits for the provider's own kinds if the manager does not install them, until the signal aborts", async () => {
  const { options, advance, abort, warnings } = setup(['secrets', 'clusters', 'machines'])
  const waiting = awaitKinds({ ...options, own: [] }).catch((err: unknown) => err)
  await advance(1000)
  expect(warnings).toEqual(['localmachines.infrastructure.capstan.dev (v1alpha1)'])
  abort.abort(new Error('stopped'))
  await advance(3000)
  expect(await waiting).toMatchObject({ message: 'stopped' })
})
