import { CanUpdateMachine, CanUpdateMachineSet, uncoveredOfMachine } from '@capstan/api'
import { applyJsonPatch, draft, freeze, type JsonObject, type UnknownObject } from '@capstan/kube'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from './define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { type FieldPattern, inPlaceChanges, type InPlaceFields, inPlaceUpdates } from './in-place-answers.ts'

const machineRequest = fixture(CanUpdateMachine)
const setRequest = fixture(CanUpdateMachineSet)

function extensionOf(fields: InPlaceFields) {
  const inPlace = inPlaceUpdates(fields)
  return defineExtension({
    name: 'x',
    handlers: [
      on(CanUpdateMachine, { name: 'machine' }, inPlace.canUpdateMachine),
      on(CanUpdateMachineSet, { name: 'set' }, inPlace.canUpdateMachineSet),
    ],
  })
}

type Patches = { readonly [name: string]: unknown }
const decoded = (response: object): Patches =>
  Object.fromEntries(
    Object.entries(response)
      .filter(([name]) => name.endsWith('Patch'))
      .map(([name, { patch }]) => [name, JSON.parse(Buffer.from(patch, 'base64').toString())]),
  )

/**
 * Returns the patch in the response for an infrastructure machine whose spec changes from `current` to `desired`; `undefined` stands for an
 * absent spec.
 */
async function patchOf(
  current: object | undefined,
  desired: object | undefined,
  patterns: FieldPattern[],
  overrides: InPlaceFields = {},
) {
  const request = draft(machineRequest)
  const spec = (value: object | undefined) => value && { ['spec']: value }
  const { spec: _, ...withoutSpec } = request.current.infrastructureMachine as UnknownObject & { spec?: unknown }
  request.desired.machine = request.current.machine
  request.current.infrastructureMachine = { ...withoutSpec, ...spec(current) } as UnknownObject
  request.desired.infrastructureMachine = { ...withoutSpec, ...spec(desired) } as UnknownObject
  const response = await callHook(
    extensionOf({ infrastructureMachine: patterns, ...overrides }),
    CanUpdateMachine,
    freeze(request),
  )
  return decoded(response)['infrastructureMachinePatch']
}

describe('the response', () => {
  it('covers the same field of a Machine and of the template in a MachineSet', async () => {
    const extension = extensionOf({ machine: ['version'] })
    expect(decoded(await callHook(extension, CanUpdateMachine, machineRequest))).toEqual({
      machinePatch: [{ op: 'replace', path: '/spec/version', value: 'v1.35.0' }],
    })
    expect(decoded(await callHook(extension, CanUpdateMachineSet, setRequest))).toEqual({
      machineSetPatch: [{ op: 'replace', path: '/spec/template/spec/version', value: 'v1.35.0' }],
    })
  })

  it('has no patches when no change is covered', async () => {
    const response = await callHook(extensionOf({ infrastructureMachine: ['size'] }), CanUpdateMachine, machineRequest)
    expect(response).toEqual({ apiVersion: expect.any(String), kind: 'CanUpdateMachineResponse', status: 'Success' })
  })

  it('has no patches for an object that is missing or whose kind changes', async () => {
    const request = draft(machineRequest)
    request.desired.infrastructureMachine.kind = 'OtherMachine'
    request.desired.infrastructureMachine['spec'] = { size: 'big' }
    delete request.current.bootstrapConfig
    request.desired.bootstrapConfig!['spec'] = { files: ['a'] }
    const allFields = { infrastructureMachine: ['*'], bootstrapConfig: ['*'] }
    expect(decoded(await callHook(extensionOf(allFields), CanUpdateMachine, request))).toEqual({})
  })

  const disks = [
    { gib: 1, kind: 'ssd' },
    { gib: 1, kind: 'ssd' },
  ]
  test.each<[string, object | undefined, object | undefined, FieldPattern[], unknown]>([
    ['a field', { size: 'a', zone: 'a' }, { size: 'b', zone: 'b' }, ['size'], [['replace', '/spec/size', 'b']]],
    ['a nested field', { net: { mtu: 1, ip: 1 } }, { net: { mtu: 2, ip: 2 } }, ['net.mtu'], [['replace', '/spec/net/mtu', 2]]],
    [
      'all fields of an object',
      { net: { mtu: 1 } },
      { net: { mtu: 2, ip: 2 } },
      ['net'],
      [
        ['add', '/spec/net/ip', 2],
        ['replace', '/spec/net/mtu', 2],
      ],
    ],
    [
      'any field',
      { a: 1, b: 1 },
      { a: 2, c: 1 },
      ['*'],
      [
        ['replace', '/spec/a', 2],
        ['remove', '/spec/b'],
        ['add', '/spec/c', 1],
      ],
    ],
    ['an added field', {}, { size: 'b' }, ['size'], [['add', '/spec/size', 'b']]],
    ['a field of an added object', {}, { net: { mtu: 2 } }, ['net.mtu'], [['add', '/spec/net', { mtu: 2 }]]],
    ['a field of an added spec', undefined, { size: 'b' }, ['size'], [['add', '/spec', { size: 'b' }]]],
    ['no removal of an object when only one of its fields is listed', { net: { mtu: 2 } }, {}, ['net.mtu'], undefined],
    ['the removal of an object', { net: { mtu: 2 } }, {}, ['net'], [['remove', '/spec/net']]],
    [
      'a field of items',
      { disks },
      {
        disks: [
          { gib: 2, kind: 'hdd' },
          { gib: 3, kind: 'ssd' },
        ],
      },
      ['disks[*].gib'],
      [
        ['replace', '/spec/disks/0/gib', 2],
        ['replace', '/spec/disks/1/gib', 3],
      ],
    ],
    [
      'a field of one item',
      { disks },
      {
        disks: [
          { gib: 2, kind: 'ssd' },
          { gib: 3, kind: 'ssd' },
        ],
      },
      ['disks[1].gib'],
      [['replace', '/spec/disks/1/gib', 3]],
    ],
    ['no list whose length changes when only its items are listed', { disks }, { disks: [{ gib: 2 }] }, ['disks[*]'], undefined],
    [
      'a list whose length changes when the list itself is listed',
      { files: ['a', 'b', 'c'] },
      { files: ['b', 'c'] },
      ['files'],
      [['remove', '/spec/files/0']],
    ],
    [
      'a field whose name contains dots',
      { labels: { 'a.b/c': '1' } },
      { labels: { 'a.b/c': '2' } },
      ['labels["a.b/c"]'],
      [['replace', '/spec/labels/a.b~1c', '2']],
    ],
    [
      'only changes for which `when` returns true',
      { disks },
      {
        disks: [
          { gib: 2, kind: 'ssd' },
          { gib: 0, kind: 'ssd' },
        ],
      },
      [{ path: 'disks[*].gib', when: ({ current, desired }) => Number(desired) > Number(current) }],
      [['replace', '/spec/disks/0/gib', 2]],
    ],
    ['nothing when nothing has changed', { size: 'a' }, { size: 'a' }, ['size'], undefined],
  ])('covers %s', async (_, current, desired, patterns, operations) => {
    const expected = (operations as [string, string, unknown][] | undefined)?.map(([op, path, value]) =>
      op === 'remove' ? { op, path } : { op, path, value },
    )
    expect(await patchOf(current, desired, patterns)).toEqual(expected)
  })

  it('can have a merge patch', async () => {
    expect(await patchOf({ a: 1, b: [1] }, { b: [2] }, ['*'], { format: 'JSONMergePatch' })).toEqual({
      spec: { a: null, b: [2] },
    })
  })

  it('has no patch for an object with a change that the format cannot express', async () => {
    expect(await patchOf({ a: 1 }, { a: null }, ['*'], { format: 'JSONMergePatch' })).toBeUndefined()
    expect(await patchOf({ a: 1 }, { a: null }, ['*'])).toEqual([{ op: 'replace', path: '/spec/a', value: null }])
  })

  it('converts the current spec to the desired spec when all fields are covered', async () => {
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null))
    const names = fc.constantFrom('a', 'b/c', 'd~e', '-', '0', '')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('value')), fc.dictionary(names, tie('value'))),
    }))
    const spec = fc.dictionary(fc.constantFrom('a', 'b', 'c.d'), value)
    await fc.assert(
      fc.asyncProperty(spec, spec, async (current, desired) => {
        const [from, to] = [current, desired].map((object) => JSON.parse(JSON.stringify(object)) as JsonObject) as [
          JsonObject,
          JsonObject,
        ]
        const patch = await patchOf(from, to, ['*'])
        expect(applyJsonPatch({ spec: from }, (patch ?? []) as never).spec).toEqual(to)
      }),
      { seed: 1, numRuns: 100 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
  })
})

describe('uncoveredOfMachine, with the response for a machine', () => {
  const value = fc.oneof(
    fc.integer({ min: 0, max: 3 }),
    fc.constantFrom('x', 'y'),
    fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 3 }),
  )
  const spec = fc.dictionary(
    fc.constantFrom('a', 'b', 'c', 'd.e'),
    fc.oneof(value, fc.dictionary(fc.constantFrom('x', 'y'), value)),
  )
  const patterns = fc.uniqueArray(fc.constantFrom('a', 'b', 'c.x', 'a[*]', '["d.e"]'))

  it('reports an uncovered change exactly if the response omits a change', async () => {
    await fc.assert(
      fc.asyncProperty(spec, spec, patterns, async (current, desired, patterns) => {
        const request = draft(machineRequest)
        request.current.machine.spec.version = request.desired.machine.spec.version!
        request.current.infrastructureMachine['spec'] = current
        request.desired.infrastructureMachine['spec'] = desired
        const covers = (path: string) => patterns.some((pattern) => isAtOrBelow(path, pattern))
        const response = await callHook(extensionOf({ infrastructureMachine: patterns }), CanUpdateMachine, request)
        const uncovered = inPlaceChanges(request).infrastructureMachine.filter(({ path }) => !covers(path))
        expect(uncoveredOfMachine(request, response, 'x').length).toBe(uncovered.length === 0 ? 0 : 1)
        const everything = await callHook(extensionOf({ infrastructureMachine: ['*'] }), CanUpdateMachine, request)
        expect(uncoveredOfMachine(request, everything, 'x')).toEqual([])
      }),
      { seed: 1, numRuns: 100 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
  })

  const isAtOrBelow = (path: string, pattern: string) =>
    pattern === 'a[*]'
      ? path.startsWith('a[')
      : path === pattern || path.startsWith(`${pattern}.`) || path.startsWith(`${pattern}[`)
})

it('inPlaceChanges lists the differences of each object with both values', () => {
  const request = draft(setRequest)
  request.desired.infrastructureMachineTemplate['spec'] = { template: { spec: { 'odd-name': { x: [1] } } } }
  expect(inPlaceChanges(request)).toEqual({
    machine: [{ path: 'version', current: 'v1.34.0', desired: 'v1.35.0' }],
    infrastructureMachine: [{ path: '["odd-name"].x', current: undefined, desired: [1] }],
    bootstrapConfig: [],
  })
})

test.each(['', 'spec.version', 'a..b', 'a[', 'a[x]', '.a'])('%j is rejected as a path', (path) => {
  expect(() => inPlaceUpdates({ machine: [path] })).toThrow(TypeError)
})
