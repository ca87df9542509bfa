import { expect, test } from 'vitest'
import { PendingHooksAnnotation, UpdateInProgressAnnotation, WaitingHooksAnnotation } from '../../core/well-known.ts'
import { UpdateMachine } from '../hooks/update-machine.ts'
import { pendingHooksText } from '../pending-hooks.ts'
import { onlyHandler, withoutState } from './request.ts'
import { isMarkedForUpdate, isUpdateInProgress, isUpdatePending } from './update-state.ts'

const object = (annotations?: Record<string, string>) =>
  ({ metadata: { name: 'm', uid: 'u', ...(annotations && { annotations }) } }) as never

test.each([
  ['no annotation', undefined, { marked: false, pending: false, inProgress: false }],
  [
    'the annotation update-in-progress alone',
    { [UpdateInProgressAnnotation]: '' },
    { marked: true, pending: false, inProgress: true },
  ],
  [
    'the pending hook UpdateMachine alone',
    { [PendingHooksAnnotation]: 'UpdateMachine' },
    { marked: false, pending: true, inProgress: true },
  ],
  [
    'the annotation update-in-progress and the pending hook UpdateMachine',
    { [UpdateInProgressAnnotation]: '', [PendingHooksAnnotation]: 'A,UpdateMachine' },
    { marked: true, pending: true, inProgress: true },
  ],
  [
    'another pending hook',
    { [PendingHooksAnnotation]: 'UpdateMachineSet' },
    { marked: false, pending: false, inProgress: false },
  ],
])('reads the state of an update from %s', (_, annotations, expected) => {
  const machine = object(annotations)
  expect({
    marked: isMarkedForUpdate(machine),
    pending: isUpdatePending(machine),
    inProgress: isUpdateInProgress(machine),
  }).toEqual(expected)
})

test.each([
  ['the first hook is added', undefined, { add: ['B'] }, 'B'],
  ['names stay sorted', 'B,D', { add: ['C', 'A'] }, 'A,B,C,D'],
  ['one hook is removed', 'A,B', { remove: ['A'] }, 'B'],
  ['the annotation is removed with the last hook', 'A', { remove: ['A'] }, null],
  ['the removal of an absent hook has no effect', undefined, { remove: ['A'] }, null],
])('pending hooks: %s', (_, before, change, after) => {
  expect(pendingHooksText(object(before === undefined ? undefined : { [PendingHooksAnnotation]: before }), change)).toBe(after)
})

test('withoutState returns apiVersion, kind, name, namespace, labels and spec, and drops the annotation of waiting hooks', () => {
  const host = {
    apiVersion: 'g/v1',
    kind: 'Host',
    metadata: {
      name: 'm',
      namespace: 'n',
      uid: 'u',
      resourceVersion: '7',
      labels: { a: 'b' },
      annotations: { [WaitingHooksAnnotation]: '[]' },
      ownerReferences: [],
      finalizers: [],
    },
    spec: { size: 1 },
    status: { ready: true },
  }
  expect(withoutState(host as never)).toEqual({
    apiVersion: 'g/v1',
    kind: 'Host',
    metadata: { name: 'm', namespace: 'n', labels: { a: 'b' } },
    spec: { size: 1 },
  })
})

test('onlyHandler returns undefined without handlers, returns a single handler, and for several throws an error with their names', () => {
  expect(onlyHandler(UpdateMachine, [])).toBeUndefined()
  expect(onlyHandler(UpdateMachine, ['a.x'])).toBe('a.x')
  expect(() => onlyHandler(UpdateMachine, ['a.x', 'b.y'])).toThrow(
    'found multiple UpdateMachine hooks (a.x,b.y): only one hook is supported',
  )
})
