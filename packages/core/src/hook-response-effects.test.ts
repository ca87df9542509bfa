import { BeforeClusterCreate, CanUpdateMachine, type Hook, GeneratePatches, GenerateUpgradePlan } from '@capstan/api'
import { fixture } from '@capstan/extension'
import { expect, test } from 'vitest'
import { hookResponseEffects } from './hook-response-effects.ts'

const effectsOf = (hook: Hook, response: object) => hookResponseEffects(hook, 'gate.sample', fixture(hook) as object, response)
const success = { status: 'Success' }

test.each<[string, Hook, object, readonly string[]]>([
  ['continues after a success', BeforeClusterCreate, success, ['continues']],
  [
    'waits and shows the message of a blocking response',
    BeforeClusterCreate,
    { ...success, retryAfterSeconds: 30, message: 'quota' },
    ['waits, and calls again after 30 s', 'shows "BeforeClusterCreate: quota"'],
  ],
  [
    'leaves out a patch that changes the kind of a template',
    GeneratePatches,
    {
      ...success,
      items: [{ uid: fixture(GeneratePatches).items[0]!.uid, patchType: 'JSONMergePatch', patch: btoa('{"kind":"Other"}') }],
    },
    [
      'changes 0 of 2 templates',
      'leaves out: LocalClusterTemplate for Cluster demo (spec.infrastructureRef) does not change kind: only spec, labels and annotations of a template can be patched',
    ],
  ],
  [
    'applies a patch, which is base64 in the response',
    GeneratePatches,
    {
      ...success,
      items: [
        {
          uid: fixture(GeneratePatches).items[0]!.uid,
          patchType: 'JSONMergePatch',
          patch: btoa('{"metadata":{"labels":{"region":"eu1"}}}'),
        },
      ],
    },
    [
      'changes 1 of 2 templates',
      'changes LocalClusterTemplate for Cluster demo (spec.infrastructureRef): add /metadata/labels {"region":"eu1"}',
    ],
  ],
  [
    'adds the upgrade of the workers to a plan without one',
    GenerateUpgradePlan,
    { ...success, controlPlaneUpgrades: [{ version: 'v1.34.0' }, { version: 'v1.35.0' }] },
    ['takes the control plane to v1.34.0, v1.35.0', 'takes the workers to v1.35.0'],
  ],
  [
    'replaces a Machine if the response does not cover all changes',
    CanUpdateMachine,
    success,
    ['replaces the machine: Machine cannot be updated in-place: spec.version'],
  ],
])('core %s', (_, hook, response, effects) => {
  expect(effectsOf(hook, response)).toEqual({ kind: 'accepted', effects })
})

// More responses that the client or core rejects are in packages/extension/fixtures/refused.
test('a rejection contains the error, and the problem code of the client if there is one', () => {
  expect(effectsOf(BeforeClusterCreate, { status: 'Failure', message: 'no' })).toEqual({
    kind: 'rejected',
    error: 'failed to call extension handler "gate.sample": got failure response with message: no',
    problem: 'ExtensionFailure',
  })
  expect(effectsOf(GenerateUpgradePlan, success)).toEqual({
    kind: 'rejected',
    error:
      'invalid ControlPlane upgrade plan: control plane upgrade plan must end with version v1.35.0, ends with v1.33.0 instead',
  })
})
