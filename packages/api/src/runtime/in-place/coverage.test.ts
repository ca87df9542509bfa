import type { Json } from '@capstan/kube'
import { expect, test } from 'vitest'
import { uncoveredOfMachine, uncoveredOfMachineSet } from './coverage.ts'

const encode = (value: Json | string) => btoa(typeof value === 'string' ? value : JSON.stringify(value))
const json = (...operations: Json[]) => ({ patchType: 'JSONPatch' as const, patch: encode(operations) })
const merge = (patch: Json) => ({ patchType: 'JSONMergePatch' as const, patch: encode(patch) })

const machineSpec = { clusterName: 'demo', bootstrap: {}, infrastructureRef: { apiGroup: 'g', kind: 'Host', name: 'm' } }
const machine = (spec: object = {}) =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name: 'm' },
    spec: { ...machineSpec, version: 'v1.34.0', ...spec },
  }) as never
const host = (spec: object | undefined = { size: 'small', disks: [{ gib: 10 }] }) =>
  ({ apiVersion: 'g/v1', kind: 'Host', metadata: { name: 'm' }, ...(spec && { spec }) }) as never
const config = (spec: object = { files: ['a'] }) =>
  ({ apiVersion: 'b/v1', kind: 'Config', metadata: { name: 'm' }, spec }) as never

const objects = (specs: { machine?: object; host?: object; config?: object } = {}) => ({
  machine: machine(specs.machine),
  infrastructureMachine: host(specs.host),
  bootstrapConfig: config(specs.config),
})
const uncovered = (desired: Parameters<typeof objects>[0], response: object) =>
  uncoveredOfMachine({ current: objects(), desired: objects(desired) }, response, 'h.x')

const upgrade = { machine: { version: 'v1.35.0' } }
const toVersion = json({ op: 'replace', path: '/spec/version', value: 'v1.35.0' })

test.each([
  ['nothing differs', {}, {}, []],
  ['a JSON patch covers the version', upgrade, { machinePatch: toVersion }, []],
  ['a merge patch covers the version', upgrade, { machinePatch: merge({ spec: { version: 'v1.35.0' } }) }, []],
  ['there is no patch', upgrade, {}, ['Machine cannot be updated in-place: spec.version']],
  [
    'a patch to another version leaves a difference',
    upgrade,
    { machinePatch: merge({ spec: { version: 'v1.34.9' } }) },
    ['Machine cannot be updated in-place: spec.version'],
  ],
  [
    'an empty list of operations covers no difference',
    upgrade,
    { machinePatch: json() },
    ['Machine cannot be updated in-place: spec.version'],
  ],
  [
    'an empty merge patch covers no difference',
    upgrade,
    { machinePatch: merge({}) },
    ['Machine cannot be updated in-place: spec.version'],
  ],
  [
    'a patch that covers only part of the change leaves a difference',
    { ...upgrade, host: { size: 'large', disks: [{ gib: 10 }] } },
    { machinePatch: toVersion },
    ['Host cannot be updated in-place: spec.size'],
  ],
  [
    'objects are reported in a fixed order, with sorted paths',
    {
      machine: { version: 'v1.35.0', failureDomain: 'b' },
      host: { size: 'big', disks: [{ gib: 9 }], 'a/b': 1 },
      config: { files: [] },
    },
    {},
    [
      'Machine cannot be updated in-place: spec.failureDomain, spec.version',
      'Config cannot be updated in-place: spec.files',
      'Host cannot be updated in-place: spec["a/b"], spec.disks[0].gib, spec.size',
    ],
  ],
  [
    'a patch outside of spec is ignored',
    {},
    { machinePatch: merge({ metadata: { labels: { a: 'b' } }, status: { phase: 'Running' } }) },
    [],
  ],
  [
    'a patch that removes spec leaves it unchanged',
    {},
    { infrastructureMachinePatch: json({ op: 'remove', path: '/spec' }) },
    [],
  ],
  [
    'a patch with more changes than desired leaves a difference',
    {},
    { infrastructureMachinePatch: merge({ spec: { colour: 'red' } }) },
    ['Host cannot be updated in-place: spec.colour'],
  ],
  ['an empty failure domain equals an absent failure domain', { machine: { failureDomain: '' } }, {}, []],
  [
    'only version and failureDomain of a Machine are compared',
    {
      machine: {
        taints: [{}],
        minReadySeconds: 5,
        readinessGates: [],
        deletion: {},
        providerID: 'x',
        clusterName: 'y',
        bootstrap: { dataSecretName: 'z' },
        infrastructureRef: {},
      },
    },
    {},
    [],
  ],
  ['a patch of fields that a Machine does not have is ignored', {}, { machinePatch: merge({ spec: { colour: 'red' } }) }, []],
])('differences of a Machine: %s', (_, desired, response, reasons) => {
  expect(uncovered(desired, response)).toEqual(reasons)
})

test('at most ten paths of an object are listed', () => {
  const desiredFields = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${String(index).padStart(2, '0')}`, 1]))
  const [reason] = uncovered({ config: { files: ['a'], ...desiredFields } }, {})
  expect(reason).toMatch(/^Config cannot be updated in-place: spec\.f00, .*spec\.f09, \.\.\. \(2 more\)$/)
})

test.each([
  ['no patchType', { patch: encode([]) }, 'failed to apply patch: patchType is not set'],
  ['an unknown patchType', { patchType: 'Strategic', patch: encode([]) }, 'failed to apply patch: unknown patchType Strategic'],
  [
    'a JSON patch that is not a list',
    { patchType: 'JSONPatch', patch: encode({}) },
    'failed to apply patch: error decoding json patch (RFC6902): json: cannot unmarshal object into Go value of type jsonpatch.Patch',
  ],
  [
    'a JSON patch without the field patch',
    { patchType: 'JSONPatch' },
    'failed to apply patch: error decoding json patch (RFC6902): invalid state detected',
  ],
  [
    'a merge patch that is not an object',
    { patchType: 'JSONMergePatch', patch: encode('[1]') },
    'failed to apply patch: error applying json merge patch (RFC7386): expected an object',
  ],
  [
    'an operation on a missing value',
    json({ op: 'replace', path: '/spec/nodes', value: 1 }),
    'failed to apply patch: error applying json patch (RFC6902): replace operation does not apply: doc is missing key: /spec/nodes: missing value',
  ],
  [
    'a test operation that fails',
    json({ op: 'test', path: '/spec/version', value: 'v9' }),
    'failed to apply patch: error applying json patch (RFC6902): testing value /spec/version failed: test failed',
  ],
  [
    'a patched object without a kind',
    json({ op: 'remove', path: '/kind' }),
    "failed to apply patch to object: failed to convert patched object to Unstructured: Object 'Kind' is missing",
  ],
  ['text that is not base64', { patchType: 'JSONPatch', patch: '%' }, 'failed to apply patch: the patch is not base64'],
])('%s is an error that names the extension', (_, patch, text) => {
  expect(() => uncovered({}, { machinePatch: patch })).toThrow(
    `failed to apply patches from extension h.x to the CanUpdateMachine request: ${text}`,
  )
})

const set = (spec: object = {}) =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineSet',
    metadata: { name: 's' },
    spec: { replicas: 1, template: { spec: { ...machineSpec, version: 'v1.34.0', ...spec } } },
  }) as never
const template = (kind: string, spec: object = { size: 'small' }) =>
  ({ apiVersion: 'g/v1', kind, metadata: { name: kind }, spec: { template: { spec } } }) as never

const sets = (specs: { set?: object; host?: object; config?: object } = {}) => ({
  machineSet: set(specs.set),
  infrastructureMachineTemplate: template('HostTemplate', specs.host),
  ...(specs.config ? { bootstrapConfigTemplate: template('ConfigTemplate', specs.config) } : {}),
})
const templateSpecPatch = (spec: Json) => merge({ spec: { template: { spec } } })

test.each([
  [
    'patches cover all differences',
    { set: { version: 'v1.35.0' }, host: { size: 'large' } },
    {
      machineSetPatch: templateSpecPatch({ version: 'v1.35.0' }),
      infrastructureMachineTemplatePatch: templateSpecPatch({ size: 'large' }),
    },
    [],
  ],
  [
    'a response without patches covers no difference',
    { set: { version: 'v1.35.0' }, host: { size: 'large' }, config: { b: 1 } },
    {},
    [
      'MachineSet cannot be updated in-place: spec.template.spec.version',
      'ConfigTemplate cannot be updated in-place: spec.template.spec.b',
      'HostTemplate cannot be updated in-place: spec.template.spec.size',
    ],
  ],
  [
    'a patch outside of spec.template.spec is ignored',
    {},
    { machineSetPatch: merge({ spec: { replicas: 9 } }), infrastructureMachineTemplatePatch: merge({ spec: { other: 1 } }) },
    [],
  ],
])('differences of MachineSets: %s', (_, desired: Parameters<typeof sets>[0], response, reasons) => {
  const current = sets(desired?.config ? { config: { a: 1, b: 2 } } : {})
  const desiredObjects = sets(desired?.config ? { ...desired, config: { a: 1, ...desired.config } } : desired)
  expect(uncoveredOfMachineSet({ current, desired: desiredObjects }, response, 'h.x')).toEqual(reasons)
})
