import { expect, test } from 'vitest'
import { demoChangesFor } from './register.ts'

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

test('a DiscoverVariables handler without a GeneratePatches handler adds no patch', () =>
  expect(changes('vars DiscoverVariables')).toEqual(noChanges))

test('a ValidateTopology handler without a GeneratePatches handler is listed as not called', () => {
  expect(changes('check ValidateTopology')).toEqual({ ...noChanges, uncalled: ['check.quota'] })
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

test('handlers of in-place updates set noSurge', () => {
  expect(changes('sets CanUpdateMachineSet').noSurge).toEqual({ workers: true, controlPlane: false })
  expect(changes('machines CanUpdateMachine').noSurge).toEqual({ workers: false, controlPlane: true })
})
