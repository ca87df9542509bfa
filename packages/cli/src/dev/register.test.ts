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
const nothing = { patches: [], noSurge: { workers: false, controlPlane: false }, uncalled: [] }

test('hooks that are called for every Cluster need no change of the class', () => {
  expect(changes('wait BeforeClusterCreate', 'keep BeforeClusterDelete')).toEqual(nothing)
})

test('variables without a patch add no patch', () => expect(changes('vars DiscoverVariables')).toEqual(nothing))

test('handlers that validate are not called without a handler that generates patches', () => {
  expect(changes('check ValidateTopology')).toEqual({ ...nothing, uncalled: ['check.quota'] })
})

test('a patch names each handler of topology mutation, and the class names the handler of upgrade plans', () => {
  const handlers = [
    'a GeneratePatches',
    'b GeneratePatches',
    'check ValidateTopology',
    'vars DiscoverVariables',
    'plan GenerateUpgradePlan',
  ]
  expect(changes(...handlers)).toEqual({
    ...nothing,
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

test('handlers of in-place updates set maxSurge to 0, so that each Machine is updated', () => {
  expect(changes('sets CanUpdateMachineSet').noSurge).toEqual({ workers: true, controlPlane: false })
  expect(changes('machines CanUpdateMachine').noSurge).toEqual({ workers: false, controlPlane: true })
})
