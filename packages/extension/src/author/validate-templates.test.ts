import { ValidateTopology } from '@capstan/api'
import { draft, invalid } from '@capstan/kube'
import { LocalMachineTemplate } from '@capstan/local'
import { expect, it } from 'vitest'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from './define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { template } from './template-walk.ts'
import { validateTemplates } from './validate-templates.ts'

const request = fixture(ValidateTopology)
const responseTo = (rules: Parameters<typeof validateTemplates>[0], to: typeof request = request, options = {}) =>
  callHook(
    defineExtension({ name: 'x', handlers: [on(ValidateTopology, { name: 'check' }, validateTemplates(rules, options))] }),
    ValidateTopology,
    to,
  )

const rules = [
  template({ type: LocalMachineTemplate }, ({ template, variables }) => [
    invalid('spec.template.spec', template.spec.template.spec?.simulated?.provisioningDelay, 'too slow'),
    `not in ${variables.string('region')}`,
  ]),
  template({}, async ({ holder }) => (holder.kind === 'Cluster' ? ['no cluster'] : undefined)),
  template({ holder: { kind: 'MachineDeployment' } }, () => {
    throw new Error('thrown')
  }),
]
const message = [
  'LocalClusterTemplate of Cluster (spec.infrastructureRef): no cluster',
  'LocalMachineTemplate of MachineDeployment md-0 (spec.template.spec.infrastructureRef): spec.template.spec: Invalid value: "1s": too slow',
  'LocalMachineTemplate of MachineDeployment md-0 (spec.template.spec.infrastructureRef): not in eu1',
  'LocalMachineTemplate of MachineDeployment md-0 (spec.template.spec.infrastructureRef): thrown',
].join('; ')

it('reports all problems in one message', async () => {
  expect(await responseTo(rules)).toMatchObject({ status: 'Failure', message })
})

it('reports each problem once, independently of the order of the request', async () => {
  const reversed = { ...request, items: [...request.items, ...request.items].reverse() }
  expect(await responseTo(rules, reversed)).toMatchObject({ status: 'Failure', message })
})

it('reports the same problems if the generated name of a MachineDeployment differs', async () => {
  const renamed = draft(request)
  renamed.items[1]!.holderReference.name = 'demo-md-0-x7k2p'
  expect(await responseTo(rules, renamed)).toMatchObject({ message })
})

it('accepts templates without problems', async () => {
  const { status, message } = await responseTo([template({}, () => []), template({}, () => undefined)])
  expect([status, message]).toEqual(['Success', undefined])
})

it('fails for a type without a rule, with failForUnknownTypes', async () => {
  const known = [template({ kind: 'LocalMachineTemplate' }, () => [])]
  expect(await responseTo(known, request, { failForUnknownTypes: true })).toMatchObject({
    status: 'Failure',
    message: expect.stringContaining('no kind "LocalClusterTemplate" is registered'),
  })
})
