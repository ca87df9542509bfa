/** Tests the extension of the README (the code between the two comments `README`), and core's handling of its responses. */
import { readFileSync } from 'node:fs'
import { CanUpdateMachine, CanUpdateMachineSet, DiscoverVariables, GeneratePatches, UpdateMachine } from '@capstan/api'
import { hookResponseEffects } from '@capstan/core'
import { s } from '@capstan/kube'
import { LocalMachineTemplate } from '@capstan/local'
import { lifecycleOf } from '@capstan/testing'
import { expect, it, test } from 'vitest'
import { proceedNow, proceedWith } from './answer.ts'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from './define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { inPlaceUpdates } from './in-place-answers.ts'
import { patchTemplates } from './patch-templates.ts'
import { template } from './template-walk.ts'
import { defineVariables } from './variables.ts'

// README
const variables = defineVariables({ region: s.enum('eu1', 'us1'), nodeDelay: s.string().optional() })
const inPlace = inPlaceUpdates({ machine: ['version'], infrastructureMachine: ['simulated', 'disks[*].sizeGiB'] })

const extension = defineExtension({
  name: 'platform',
  handlers: [
    on(DiscoverVariables, { name: 'discover-variables' }, () => proceedWith({ variables: variables.definitions })),
    on(
      GeneratePatches,
      { name: 'generate-patches' },
      patchTemplates([
        template({ type: LocalMachineTemplate, holder: { kind: 'MachineDeployment' } }, ({ template, variables: values }) => {
          const { nodeDelay } = values.of(variables)
          if (nodeDelay) template.spec.template.spec = { simulated: { nodeDelay } }
        }),
        template({}, ({ template, variables: values }) => {
          template.metadata.labels = { ...template.metadata.labels, cluster: values.string('builtin.cluster.name') }
        }),
      ]),
    ),
    on(CanUpdateMachine, { name: 'can-update-machine' }, inPlace.canUpdateMachine),
    on(CanUpdateMachineSet, { name: 'can-update-machine-set' }, inPlace.canUpdateMachineSet),
    // Core calls this handler until it no longer blocks. Return holdFor(10, 'installing kubelet') while the update is in progress.
    on(UpdateMachine, { name: 'update-machine' }, () => proceedNow()),
  ],
})
// README

it('the README contains the code of the platform extension', () => {
  const [, code] = readFileSync(new URL(import.meta.url), 'utf8').split('// README\n')
  expect(readFileSync(new URL('../../README.md', import.meta.url), 'utf8')).toContain(`\`\`\`ts\n${code!.trim()}\n\`\`\``)
})

test('core accepts the responses of the platform extension', async () => {
  const patches = fixture(GeneratePatches)
  patches.variables!.push({ name: 'nodeDelay', value: '3s' })
  const verdicts = [
    hookResponseEffects(DiscoverVariables, 'a.b', {}, await callHook(extension, DiscoverVariables, {})),
    hookResponseEffects(GeneratePatches, 'a.b', patches, await callHook(extension, GeneratePatches, patches)),
    ...(await Promise.all(
      ([CanUpdateMachine, CanUpdateMachineSet] as const).map(async (hook) => {
        const request = fixture<typeof CanUpdateMachine | typeof CanUpdateMachineSet>(hook)
        return hookResponseEffects(hook, 'a.b', request, await callHook(extension, hook, request as never))
      }),
    )),
  ]
  expect(verdicts.map((verdict) => (verdict.kind === 'accepted' ? verdict.effects : verdict.error))).toEqual([
    ['defines region, nodeDelay'],
    ['changes 2 of 2 templates', expect.stringContaining('changes '), expect.stringContaining('changes ')],
    ['updates in place'],
    ['updates in place'],
  ])
})

test('a Cluster is created, upgraded in place and deleted with the platform extension', async () => {
  const { stuck, calls } = await lifecycleOf(extension, { variables: { region: 'eu1', nodeDelay: '1s' } })
  expect(stuck).toBeUndefined()
  const outcomes = new Map(calls.map(({ hook, outcome }) => [hook.name, outcome]))
  const handled = ['DiscoverVariables', 'GeneratePatches', 'CanUpdateMachineSet', 'UpdateMachine']
  expect([...outcomes.keys()]).toEqual(expect.arrayContaining(handled))
  for (const outcome of outcomes.values()) expect(outcome).toMatchObject({ kind: 'response', response: { status: 'Success' } })
})
