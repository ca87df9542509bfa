/**
 * Tests types: tsc fails if an expected error is missing. For each hook: valid responses, then type errors, such as a blocking response
 * of a hook that cannot block, content (fields such as patches) that the response does not have, and fields that the request does not have.
 */
import * as hooks from '@capstan/api'
import type { CallInput, RuntimeClient } from '../client/runtime-client.ts'
import { expect, expectTypeOf, test } from 'vitest'
import { type AnswerOf, fail, holdFor, proceedNow, proceedWith } from './answer.ts'
import { callHook } from '../test-kit/call-hook.ts'
import { type Extension, on } from './define-extension.ts'

const one = { name: 'one' }
const steps = { controlPlaneUpgrades: [{ version: 'v1.34.0' }], workersUpgrades: [{ version: 'v1.34.0' }] }
const patch = { patchType: 'JSONPatch', patch: 'W10=' } as const
const item = { uid: 'u', ...patch }
const text = { openAPIV3Schema: { type: 'string' } } as const
const unknownType = { openAPIV3Schema: { type: 'text' } } as const

test('Discovery', () => {
  // The server itself responds to Discovery, so its responses are declared without a handler.
  type Answer = hooks.ResponseOf<typeof hooks.Discovery>
  const handler = { name: 'a', requestHook: { apiVersion: 'v', hook: 'h' }, timeoutSeconds: 1, failurePolicy: 'Ignore' } as const
  const fine: Answer = { status: 'Success', handlers: [handler] }
  // @ts-expect-error unknown failure policy
  const policy: Answer = { status: 'Success', handlers: [{ ...handler, failurePolicy: 'Maybe' }] }
  // @ts-expect-error the list is named handlers
  const items: Answer = { status: 'Success', items: [] }
  // @ts-expect-error the status is missing
  const withoutStatus: Answer = { handlers: [] }
  // @ts-expect-error Discovery cannot block
  on(hooks.Discovery, one, () => holdFor(1, ''))
  expect([fine, policy, items, withoutStatus]).toHaveLength(4)
})

test('BeforeClusterCreate', () => {
  on(hooks.BeforeClusterCreate, one, () => proceedNow())
  on(hooks.BeforeClusterCreate, one, () => fail('no'))
  on(hooks.BeforeClusterCreate, one, async ({ request }) => holdFor(1, request.cluster.metadata.name))
  // @ts-expect-error the response has no content
  on(hooks.BeforeClusterCreate, one, () => proceedWith({ items: [] }))
  // @ts-expect-error a response must be made by a function such as proceedNow
  on(hooks.BeforeClusterCreate, one, () => ({ status: 'Success' }))
  // @ts-expect-error a handler must return a response
  on(hooks.BeforeClusterCreate, one, () => undefined)
  // @ts-expect-error the request has no version
  on(hooks.BeforeClusterCreate, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('AfterControlPlaneInitialized', () => {
  on(hooks.AfterControlPlaneInitialized, one, () => proceedNow('hello'))
  // @ts-expect-error the hook cannot block
  on(hooks.AfterControlPlaneInitialized, one, () => holdFor(1, ''))
  // @ts-expect-error an asynchronous handler cannot block either
  on(hooks.AfterControlPlaneInitialized, one, async () => holdFor(1, ''))
  // @ts-expect-error the response has no content
  on(hooks.AfterControlPlaneInitialized, one, () => proceedWith({ retryAfterSeconds: 5 }))
  // @ts-expect-error the request has no version
  on(hooks.AfterControlPlaneInitialized, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('BeforeClusterUpgrade', () => {
  on(hooks.BeforeClusterUpgrade, one, ({ request }) =>
    holdFor(1, `${request.fromKubernetesVersion} ${request.toKubernetesVersion}`),
  )
  on(hooks.BeforeClusterUpgrade, one, ({ request }) => proceedNow(request.workersUpgrades?.[0]?.version))
  // @ts-expect-error the response has no content
  on(hooks.BeforeClusterUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has fromKubernetesVersion and toKubernetesVersion
  on(hooks.BeforeClusterUpgrade, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('BeforeControlPlaneUpgrade', () => {
  on(hooks.BeforeControlPlaneUpgrade, one, ({ request }) => holdFor(1, request.toKubernetesVersion))
  // @ts-expect-error the response has no content
  on(hooks.BeforeControlPlaneUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has fromKubernetesVersion and toKubernetesVersion
  on(hooks.BeforeControlPlaneUpgrade, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('AfterControlPlaneUpgrade', () => {
  on(hooks.AfterControlPlaneUpgrade, one, ({ request }) => holdFor(1, request.kubernetesVersion))
  // @ts-expect-error the response has no content
  on(hooks.AfterControlPlaneUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has kubernetesVersion, the version after the upgrade
  on(hooks.AfterControlPlaneUpgrade, one, ({ request }) => proceedNow(request.toKubernetesVersion))
})

test('BeforeWorkersUpgrade', () => {
  on(hooks.BeforeWorkersUpgrade, one, ({ request }) => holdFor(1, request.toKubernetesVersion))
  // @ts-expect-error the response has no content
  on(hooks.BeforeWorkersUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has fromKubernetesVersion and toKubernetesVersion
  on(hooks.BeforeWorkersUpgrade, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('AfterWorkersUpgrade', () => {
  on(hooks.AfterWorkersUpgrade, one, ({ request }) => holdFor(1, request.kubernetesVersion))
  // @ts-expect-error the response has no content
  on(hooks.AfterWorkersUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has kubernetesVersion, the version after the upgrade
  on(hooks.AfterWorkersUpgrade, one, ({ request }) => proceedNow(request.toKubernetesVersion))
})

test('AfterClusterUpgrade', () => {
  on(hooks.AfterClusterUpgrade, one, ({ request }) => holdFor(1, request.kubernetesVersion))
  // @ts-expect-error the response has no content
  on(hooks.AfterClusterUpgrade, one, () => proceedWith(steps))
  // @ts-expect-error the request has no further upgrades
  on(hooks.AfterClusterUpgrade, one, ({ request }) => proceedNow(request.workersUpgrades))
})

test('BeforeClusterDelete', () => {
  on(hooks.BeforeClusterDelete, one, () => holdFor(1, ''))
  // @ts-expect-error the response has no content
  on(hooks.BeforeClusterDelete, one, () => proceedWith({ items: [] }))
  // @ts-expect-error the request has no version
  on(hooks.BeforeClusterDelete, one, ({ request }) => proceedNow(request.kubernetesVersion))
})

test('GenerateUpgradePlan', () => {
  on(hooks.GenerateUpgradePlan, one, () => proceedWith(steps))
  on(hooks.GenerateUpgradePlan, one, () => proceedNow())
  // @ts-expect-error the hook cannot block
  on(hooks.GenerateUpgradePlan, one, () => holdFor(1, ''))
  // @ts-expect-error each step is an object with a version
  on(hooks.GenerateUpgradePlan, one, () => proceedWith({ controlPlaneUpgrades: ['v1.34.0'] }))
  // @ts-expect-error unknown field beside a known one
  on(hooks.GenerateUpgradePlan, one, () => proceedWith({ workersUpgrades: [], machinePoolUpgrades: [] }))
  // @ts-expect-error the request has two current versions: one of the control plane and one of the workers
  on(hooks.GenerateUpgradePlan, one, ({ request }) => proceedNow(request.fromKubernetesVersion))
})

test('GeneratePatches', () => {
  on(hooks.GeneratePatches, one, () => proceedWith({ items: [item] }))
  on(hooks.GeneratePatches, one, async () => (Math.abs(1) ? proceedWith({ items: [item] }) : fail('no')))
  // @ts-expect-error the hook cannot block
  on(hooks.GeneratePatches, one, () => holdFor(1, ''))
  // @ts-expect-error a patch is a string, not a list of operations
  on(hooks.GeneratePatches, one, () => proceedWith({ items: [{ uid: 'u', patchType: 'JSONPatch', patch: [] }] }))
  // @ts-expect-error unknown patch type
  on(hooks.GeneratePatches, one, () => proceedWith({ items: [{ uid: 'u', patchType: 'Strategic', patch: '' }] }))
  // @ts-expect-error an item needs the uid of an item of the request
  on(hooks.GeneratePatches, one, () => proceedWith({ items: [patch] }))
  // @ts-expect-error unknown field beside a known one
  on(hooks.GeneratePatches, one, () => proceedWith({ items: [], patches: [] }))
  // @ts-expect-error unknown field in an item
  on(hooks.GeneratePatches, one, async () => proceedWith({ items: [{ uid: 'u', patchType: 'JSONPatch', patch: '', type: '' }] }))
})

test('ValidateTopology', () => {
  on(hooks.ValidateTopology, one, ({ request }) => fail(request.items[0]?.holderReference.fieldPath ?? ''))
  // @ts-expect-error the hook cannot block
  on(hooks.ValidateTopology, one, () => holdFor(1, ''))
  // @ts-expect-error the response has no content
  on(hooks.ValidateTopology, one, () => proceedWith({ items: [item] }))
  // @ts-expect-error items of the request have no uid
  on(hooks.ValidateTopology, one, ({ request }) => fail(request.items[0].uid))
})

test('DiscoverVariables', () => {
  on(hooks.DiscoverVariables, one, () => proceedWith({ variables: [{ name: 'a', required: true, schema: text }] }))
  // @ts-expect-error the hook cannot block
  on(hooks.DiscoverVariables, one, () => holdFor(1, ''))
  // @ts-expect-error a variable needs a schema
  on(hooks.DiscoverVariables, one, () => proceedWith({ variables: [{ name: 'a' }] }))
  // @ts-expect-error since v1.13 the field is named deprecatedV1Beta1Metadata
  on(hooks.DiscoverVariables, one, () => proceedWith({ variables: [{ name: 'a', metadata: {}, schema: text }] }))
  // @ts-expect-error unknown type
  on(hooks.DiscoverVariables, one, () => proceedWith({ variables: [{ name: 'a', schema: unknownType }] }))
  // @ts-expect-error the request has no Cluster
  on(hooks.DiscoverVariables, one, ({ request }) => fail(request.cluster.metadata.name))
})

test('CanUpdateMachine', () => {
  on(hooks.CanUpdateMachine, one, () =>
    proceedWith({ machinePatch: patch, infrastructureMachinePatch: patch, bootstrapConfigPatch: patch }),
  )
  // @ts-expect-error the hook cannot block
  on(hooks.CanUpdateMachine, one, () => holdFor(1, ''))
  // @ts-expect-error unknown patch type
  on(hooks.CanUpdateMachine, one, () => proceedWith({ machinePatch: { patchType: 'Other', patch: '' } }))
  // @ts-expect-error a field of CanUpdateMachineSet
  on(hooks.CanUpdateMachine, one, () => proceedWith({ machinePatch: patch, machineSetPatch: patch }))
  // @ts-expect-error a field of CanUpdateMachineSet
  on(hooks.CanUpdateMachine, one, ({ request }) => fail(request.current.machineSet.metadata.name))
})

test('CanUpdateMachineSet', () => {
  on(hooks.CanUpdateMachineSet, one, () =>
    proceedWith({ machineSetPatch: patch, infrastructureMachineTemplatePatch: patch, bootstrapConfigTemplatePatch: patch }),
  )
  // @ts-expect-error the hook cannot block
  on(hooks.CanUpdateMachineSet, one, () => holdFor(1, ''))
  // @ts-expect-error a patch is a string, not a list of operations
  on(hooks.CanUpdateMachineSet, one, () => proceedWith({ machineSetPatch: { patchType: 'JSONPatch', patch: [] } }))
  // @ts-expect-error a field of CanUpdateMachine
  on(hooks.CanUpdateMachineSet, one, () => proceedWith({ machineSetPatch: patch, infrastructureMachinePatch: patch }))
})

test('UpdateMachine', () => {
  on(hooks.UpdateMachine, one, ({ request }) => holdFor(1, request.desired.machine.metadata.name))
  // @ts-expect-error the response has no content
  on(hooks.UpdateMachine, one, () => proceedWith({ machinePatch: patch }))
  // @ts-expect-error the request has only the desired objects
  on(hooks.UpdateMachine, one, ({ request }) => fail(request.current.machine.metadata.name))
})

test('the catalog contains the hooks that this file tests, and no others', () => {
  expect(hooks.hookCatalog.map(({ name }) => name)).toEqual([
    'Discovery',
    'BeforeClusterCreate',
    'AfterControlPlaneInitialized',
    'BeforeClusterUpgrade',
    'BeforeControlPlaneUpgrade',
    'AfterControlPlaneUpgrade',
    'BeforeWorkersUpgrade',
    'AfterWorkersUpgrade',
    'AfterClusterUpgrade',
    'BeforeClusterDelete',
    'GenerateUpgradePlan',
    'GeneratePatches',
    'ValidateTopology',
    'DiscoverVariables',
    'CanUpdateMachine',
    'CanUpdateMachineSet',
    'UpdateMachine',
  ])
})

test('a response declared with the type of one hook is a type error for another hook', () => {
  const response: AnswerOf<typeof hooks.GeneratePatches> = proceedWith({ items: [item] })
  on(hooks.GeneratePatches, one, () => response)
  // @ts-expect-error the response is for another hook
  on(hooks.GenerateUpgradePlan, one, () => response)
})

test('requests and responses of callers have the types of the hook', () => {
  type Called = ReturnType<typeof callHook<typeof hooks.GenerateUpgradePlan>>
  expectTypeOf<Awaited<Called>['controlPlaneUpgrades']>().toExtend<{ version: string }[] | undefined>()
  expectTypeOf<CallInput<typeof hooks.BeforeClusterCreate>>().not.toHaveProperty('kind')
  const calls = (extension: Extension, client: RuntimeClient, cluster: hooks.Cluster) => [
    // @ts-expect-error the versions of the request are missing
    callHook(extension, hooks.BeforeClusterUpgrade, { cluster }),
    // @ts-expect-error the hook does not block
    client.callAll(hooks.AfterControlPlaneInitialized, cluster, { cluster }).then(({ retryAfterSeconds }) => retryAfterSeconds),
  ]
  expect(calls).toBeTypeOf('function')
})
