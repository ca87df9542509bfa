import { CanUpdateMachine, CanUpdateMachineSet, GeneratePatches } from '@capstan/api'
import { expect, test } from 'vitest'
import { fixture } from './fixtures.ts'
import { patchedRequest } from './patched-request.ts'

const mergePatch = (patch: object) => ({ patchType: 'JSONMergePatch', patch: btoa(JSON.stringify(patch)) })

test('a patch of a Machine changes its spec only', () => {
  const request = fixture(CanUpdateMachine)
  const machinePatch = mergePatch({ metadata: { labels: { a: 'b' } }, spec: { version: 'v1.99.0' } })
  const { current } = patchedRequest(CanUpdateMachine, request, { machinePatch })
  const { machine } = request.current
  expect(current.machine).toEqual({ ...machine, spec: { ...machine.spec, version: 'v1.99.0' } })
})

test('a patch of a MachineSet changes the spec of its template only', () => {
  const request = fixture(CanUpdateMachineSet)
  const machineSetPatch = mergePatch({ spec: { replicas: 99, template: { spec: { version: 'v1.99.0' } } } })
  const { current } = patchedRequest(CanUpdateMachineSet, request, { machineSetPatch })
  const { machineSet } = request.current
  const { template } = machineSet.spec
  expect(current.machineSet).toEqual({
    ...machineSet,
    spec: { ...machineSet.spec, template: { ...template, spec: { ...template.spec, version: 'v1.99.0' } } },
  })
})

test('a patch that removes the kind of an object is rejected, as core rejects it', () => {
  const response = { infrastructureMachinePatch: mergePatch({ kind: null }) }
  expect(() => patchedRequest(CanUpdateMachine, fixture(CanUpdateMachine), response)).toThrow(
    "infrastructureMachinePatch of the response: failed to apply patch to object: failed to convert patched object to Unstructured: Object 'Kind' is missing",
  )
})

test('a patch of a template changes spec, labels and annotations, and nothing else', () => {
  const request = fixture(GeneratePatches)
  const { uid } = request.items[0]!
  const metadata = { labels: { a: 'b' }, annotations: { c: 'd' } }
  const patch = mergePatch({ metadata: { name: 'other', ...metadata }, spec: { extra: 1 }, status: {} })
  const [item] = patchedRequest(GeneratePatches, request, { items: [{ uid, ...patch }] }).items
  expect(item!.object).toMatchObject({ metadata, spec: { extra: 1 } })
  expect(item!.object).not.toHaveProperty('status')
  expect(item!.object).not.toMatchObject({ metadata: { name: 'other' } })
})

test('a patch of a template that sets labels to null is applied, as core applies it', () => {
  const request = fixture(GeneratePatches)
  const { uid } = request.items[0]!
  const patch = btoa(JSON.stringify([{ op: 'add', path: '/metadata/labels', value: null }]))
  const [item] = patchedRequest(GeneratePatches, request, { items: [{ uid, patchType: 'JSONPatch', patch }] }).items
  expect(item!.object).toHaveProperty('metadata.labels', null)
})

test('a patch of a template is rejected when its patchType is empty, as core rejects it', () => {
  const request = fixture(GeneratePatches)
  const response = { items: [{ uid: request.items[0]!.uid, patchType: '', patch: '' }] }
  expect(() => patchedRequest(GeneratePatches, request, response)).toThrow(
    'items[0] of the response: failed to apply patch: unknown patchType',
  )
})
