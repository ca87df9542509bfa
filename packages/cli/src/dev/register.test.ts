import { createCatalog, type ExtensionConfig, HandlerOverridesAnnotation, hookCatalog } from '@capstan/api'
import { checkDiscovery } from '@capstan/extension'
import { createClient, type Transport, type WatchEvent } from '@capstan/kube'
import { expect, test } from 'vitest'
import { demoChangesFor, register } from './register.ts'

test.each([
  ['without options', {}, {}],
  ['with a timeout and a failure policy', { timeoutSeconds: 5, failurePolicy: 'Ignore' }, {}],
  ['with a timeout of 0, for which core uses the default', { timeoutSeconds: 0 }, {}],
  [
    'whose timeout and failure policy an operator overrides',
    { timeoutSeconds: 5 },
    { timeoutSeconds: 20, failurePolicy: 'Ignore' },
  ],
] as const)('register resolves when core has discovered a handler %s', async (_, handlerOptions, override) => {
  const apiVersion = 'hooks.runtime.cluster.x-k8s.io/v1alpha1'
  const handler = { name: 'gate', hook: 'BeforeClusterCreate', apiVersion, ...handlerOptions }
  const requestHook = { apiVersion, hook: handler.hook }
  const discovered = checkDiscovery(
    'quota',
    [{ name: handler.name, requestHook, ...handlerOptions } as never],
    createCatalog(hookCatalog),
  )
  const object: ExtensionConfig = {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: {
      name: 'quota',
      uid: 'quota',
      resourceVersion: '1',
      creationTimestamp: '',
      annotations: { [HandlerOverridesAnnotation]: JSON.stringify({ gate: override }) },
    },
    spec: { clientConfig: { url: 'https://127.0.0.1:9443' } },
    status: {
      conditions: [{ type: 'Discovered', status: 'True', reason: 'Discovered', message: '', lastTransitionTime: '' }],
      handlers: discovered.map((found) => ({ ...found, ...override })),
    },
  }
  const transport: Transport = {
    send: () => Promise.resolve(object),
    watch: () => Promise.resolve(events(object)),
    close() {},
  }
  const served = { name: 'quota', url: 'https://127.0.0.1:9443', settings: {}, handlers: [handler], load: '1' }
  const { signal } = new AbortController()
  await expect(register(createClient(transport), served, signal)).resolves.toBeUndefined()
})

/** Yields the object, and rejects when `register` waits for another one. */
async function* events(object: ExtensionConfig): AsyncGenerator<WatchEvent> {
  yield { type: 'MODIFIED', object }
  throw new Error('register waits for another event')
}

const changes = (...handlers: string[]) =>
  demoChangesFor(
    'quota',
    handlers.map((handler) => {
      const [name, hook] = handler.split(' ') as [string, string]
      return { name, hook, apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1' }
    }),
  )
const noChanges = { patches: [], noSurge: { workers: false, controlPlane: false }, uncalled: [] }

test('lifecycle hooks require no change of the ClusterClass', () => {
  expect(changes('wait BeforeClusterCreate', 'keep BeforeClusterDelete')).toEqual(noChanges)
})

test('handlers of ValidateTopology and DiscoverVariables without a GeneratePatches handler are listed as not called', () => {
  const uncalled = ['check.quota', 'vars.quota']
  expect(changes('check ValidateTopology', 'vars DiscoverVariables')).toEqual({ ...noChanges, uncalled })
})

test('a second handler of GenerateUpgradePlan is listed as not called', () => {
  expect(changes('plan GenerateUpgradePlan', 'other GenerateUpgradePlan').uncalled).toEqual(['other.quota'])
})

test('adds patches that refer to all topology mutation handlers, and an upgrade field that refers to the GenerateUpgradePlan handler', () => {
  const handlers = [
    'a GeneratePatches',
    'b GeneratePatches',
    'check ValidateTopology',
    'vars DiscoverVariables',
    'plan GenerateUpgradePlan',
  ]
  expect(changes(...handlers)).toEqual({
    ...noChanges,
    patches: [
      {
        name: 'quota',
        external: {
          generatePatchesExtension: 'a.quota',
          validateTopologyExtension: 'check.quota',
          discoverVariablesExtension: 'vars.quota',
        },
      },
      { name: 'quota-2', external: { generatePatchesExtension: 'b.quota' } },
    ],
    upgrade: { external: { generateUpgradePlanExtension: 'plan.quota' } },
  })
})

test('CanUpdateMachineSet handlers set noSurge for workers, CanUpdateMachine handlers for the control plane', () => {
  expect(changes('sets CanUpdateMachineSet').noSurge).toEqual({ workers: true, controlPlane: false })
  expect(changes('machines CanUpdateMachine').noSurge).toEqual({ workers: false, controlPlane: true })
})
