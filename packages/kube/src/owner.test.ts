import { expect, test } from 'vitest'
import { addFinalizer, removeFinalizer } from './finalizer.ts'
import { unknownKind } from './kind.ts'
import type { KubeObject } from './object.ts'
import {
  controllerOf,
  ensureOwnerReference,
  isControlledBy,
  isControlledByUid,
  isOwnedBy,
  ownerReference,
  removeOwnerReference,
  setControllerReference,
} from './owner.ts'

const Parent = unknownKind({ apiVersion: 'example.com/v2', kind: 'Parent', plural: 'parents' })
const object = (name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'example.com/v2',
  kind: 'Parent',
  metadata: {
    name,
    namespace: 'ns',
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...metadata,
  },
})

test('an owner is identified by group, kind and name: a reference with a new version and uid replaces the old reference', () => {
  const child = object('child')
  expect(ensureOwnerReference(child, { ...ownerReference(object('p'), Parent), apiVersion: 'example.com/v1', uid: 'old' })).toBe(
    true,
  )
  expect(ensureOwnerReference(child, ownerReference(object('p'), Parent))).toBe(true)
  expect(ensureOwnerReference(child, ownerReference(object('p'), Parent))).toBe(false)
  expect(child.metadata.ownerReferences).toEqual([{ apiVersion: 'example.com/v2', kind: 'Parent', name: 'p', uid: 'uid-p' }])
  expect(isOwnedBy(child, object('p'), { group: 'example.com', kind: 'Parent' })).toBe(true)
  expect(isOwnedBy(child, object('p'), { group: 'other.com', kind: 'Parent' })).toBe(false)
})

test('an owner becomes the controller, and a second controller is rejected', () => {
  const child = object('child')
  ensureOwnerReference(child, ownerReference(object('p'), Parent))
  expect(setControllerReference(child, object('p'), Parent)).toBe(true)
  expect(setControllerReference(child, object('p'), Parent)).toBe(false)
  expect(controllerOf(child)).toMatchObject({ name: 'p', controller: true, blockOwnerDeletion: true })
  expect(isControlledBy(child, object('p'), Parent)).toBe(true)
  expect(isControlledByUid(child, object('p'))).toBe(true)
  expect(isControlledByUid(child, object('p', { uid: 'later' }))).toBe(false)
  expect(() => setControllerReference(child, object('q'), Parent)).toThrow(
    'Object ns/child is already owned by another Parent controller p',
  )
})

test('an owner of another namespace is rejected', () => {
  expect(() => setControllerReference(object('child', { namespace: 'other' }), object('p'), Parent)).toThrow(
    "cross-namespace owner references are disallowed, owner's namespace ns, obj's namespace other",
  )
})

test('removing the last owner reference removes the list, too', () => {
  const child = object('child')
  ensureOwnerReference(child, ownerReference(object('p'), Parent))
  expect(removeOwnerReference(child, ownerReference(object('p'), Parent))).toBe(true)
  expect(child.metadata).not.toHaveProperty('ownerReferences')
})

test('a finalizer is added and removed once, and never added to an object that is being deleted', () => {
  const child = object('child')
  expect([addFinalizer(child, 'x'), addFinalizer(child, 'x'), child.metadata.finalizers]).toEqual([true, false, ['x']])
  expect([removeFinalizer(child, 'x'), removeFinalizer(child, 'x'), 'finalizers' in child.metadata]).toEqual([true, false, false])
  expect(addFinalizer(object('gone', { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'x')).toBe(false)
})
