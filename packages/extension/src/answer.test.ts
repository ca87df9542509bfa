import * as hooks from '@capstan/api'
import { describe, expect, it, test } from 'vitest'
import { fail, holdFor, proceedNow, proceedWith } from './answer.ts'
import { callHook } from './call-hook.ts'
import { defineExtension, on } from './define-extension.ts'

const name = 'one'
const patch = { uid: 'u', patchType: 'JSONPatch', patch: 'W10=' } as const

/** What must not compile is the test here: tsc fails when an error that is expected is not there. */
describe('types', () => {
  test('hooks that block can be held, and have nothing to give', () => {
    const blocking = [
      hooks.BeforeClusterCreate,
      hooks.BeforeClusterUpgrade,
      hooks.BeforeControlPlaneUpgrade,
      hooks.AfterControlPlaneUpgrade,
      hooks.BeforeWorkersUpgrade,
      hooks.AfterWorkersUpgrade,
      hooks.AfterClusterUpgrade,
      hooks.BeforeClusterDelete,
      hooks.UpdateMachine,
    ] as const
    on(hooks.BeforeClusterCreate, { name }, () => holdFor(1, ''))
    on(hooks.BeforeClusterUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.BeforeControlPlaneUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.AfterControlPlaneUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.BeforeWorkersUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.AfterWorkersUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.AfterClusterUpgrade, { name }, () => holdFor(1, ''))
    on(hooks.BeforeClusterDelete, { name }, () => holdFor(1, ''))
    on(hooks.UpdateMachine, { name }, () => holdFor(1, ''))
    // @ts-expect-error BeforeClusterCreate has nothing to give
    on(hooks.BeforeClusterCreate, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error BeforeClusterUpgrade has nothing to give
    on(hooks.BeforeClusterUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error BeforeControlPlaneUpgrade has nothing to give
    on(hooks.BeforeControlPlaneUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error AfterControlPlaneUpgrade has nothing to give
    on(hooks.AfterControlPlaneUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error BeforeWorkersUpgrade has nothing to give
    on(hooks.BeforeWorkersUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error AfterWorkersUpgrade has nothing to give
    on(hooks.AfterWorkersUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error AfterClusterUpgrade has nothing to give
    on(hooks.AfterClusterUpgrade, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error BeforeClusterDelete has nothing to give
    on(hooks.BeforeClusterDelete, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error UpdateMachine has nothing to give
    on(hooks.UpdateMachine, { name }, () => proceedWith({ items: [] }))
    expect(blocking.every((hook) => hook.blocking)).toBe(true)
  })

  test('hooks that do not block cannot be held', () => {
    const others = [
      // @ts-expect-error AfterControlPlaneInitialized cannot be held
      on(hooks.AfterControlPlaneInitialized, { name }, () => holdFor(1, '')),
      // @ts-expect-error GenerateUpgradePlan cannot be held
      on(hooks.GenerateUpgradePlan, { name }, () => holdFor(1, '')),
      // @ts-expect-error GeneratePatches cannot be held
      on(hooks.GeneratePatches, { name }, () => holdFor(1, '')),
      // @ts-expect-error ValidateTopology cannot be held
      on(hooks.ValidateTopology, { name }, () => holdFor(1, '')),
      // @ts-expect-error DiscoverVariables cannot be held
      on(hooks.DiscoverVariables, { name }, () => holdFor(1, '')),
      // @ts-expect-error CanUpdateMachine cannot be held
      on(hooks.CanUpdateMachine, { name }, () => holdFor(1, '')),
      // @ts-expect-error CanUpdateMachineSet cannot be held
      on(hooks.CanUpdateMachineSet, { name }, () => holdFor(1, '')),
    ]
    expect(others.every(({ hook }) => !hook.blocking)).toBe(true)
  })

  test('what a hook is given has its shape', () => {
    on(hooks.GeneratePatches, { name }, () => proceedWith({ items: [patch] }))
    on(hooks.GenerateUpgradePlan, { name }, () => proceedWith({ controlPlaneUpgrades: [{ version: 'v1.34.0' }] }))
    on(hooks.DiscoverVariables, { name }, () =>
      proceedWith({ variables: [{ name: 'a', schema: { openAPIV3Schema: { type: 'string' as const } } }] }),
    )
    on(hooks.CanUpdateMachine, { name }, () => proceedWith({ machinePatch: { patchType: 'JSONPatch' as const, patch: 'W10=' } }))
    on(hooks.CanUpdateMachineSet, { name }, () => proceedNow())
    on(hooks.ValidateTopology, { name }, () => fail('no'))
    // @ts-expect-error a patch is text, not operations
    on(hooks.GeneratePatches, { name }, () => proceedWith({ items: [{ uid: 'u', patchType: 'JSONPatch', patch: [] }] }))
    // @ts-expect-error versions are objects
    on(hooks.GenerateUpgradePlan, { name }, () => proceedWith({ controlPlaneUpgrades: ['v1.34.0'] }))
    // @ts-expect-error a variable has a schema
    on(hooks.DiscoverVariables, { name }, () => proceedWith({ variables: [{ name: 'a' }] }))
    // @ts-expect-error there is no such patch type
    on(hooks.CanUpdateMachine, { name }, () => proceedWith({ machinePatch: { patchType: 'Other', patch: '' } }))
    // @ts-expect-error there is no such patch
    on(hooks.CanUpdateMachineSet, { name }, () => proceedWith({ machineSetPatch: { patchType: 'Other', patch: '' } }))
    // @ts-expect-error ValidateTopology has nothing to give
    on(hooks.ValidateTopology, { name }, () => proceedWith({ items: [] }))
    // @ts-expect-error AfterControlPlaneInitialized has nothing to give
    on(hooks.AfterControlPlaneInitialized, { name }, () => proceedWith({ items: [] }))
  })
})

it('sends what a hook asks for beside the status', async () => {
  const extension = defineExtension({
    name: 'demo',
    handlers: [on(hooks.GeneratePatches, { name }, () => proceedWith({ items: [patch] }))],
  })
  expect(await callHook(extension, hooks.GeneratePatches, { items: [] })).toEqual({
    apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
    kind: 'GeneratePatchesResponse',
    status: 'Success',
    items: [patch],
  })
})
