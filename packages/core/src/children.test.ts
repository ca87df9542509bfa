import { Machine, MachineSet } from '@capstan/api'
import { type Client, silent, StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { adoptChild } from './children.ts'

const machine = (uid: string, resourceVersion: string) =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name: 'lone', namespace: 'default', uid, resourceVersion },
  }) as Machine
const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', metadata: { name: 'set', uid: 'u' } } as MachineSet

/** Adopts a Machine that has changed to `newest` in the meantime. Returns the result, and the resourceVersions of the patches. */
async function adoptAfterChange(newest: Machine) {
  const patched: unknown[] = []
  const client = {
    async patch(_kind, _key, patch) {
      const { resourceVersion } = (patch as unknown as { body: Machine }).body.metadata
      patched.push(resourceVersion)
      if (resourceVersion !== newest.metadata.resourceVersion) throw new StatusError('Conflict', 'the object has been modified')
      return newest
    },
    get: async () => newest,
  } as Pick<Client, 'patch' | 'get'> as Client
  const io = { client, events: { event() {} }, log: silent, signal: new AbortController().signal }
  return { adopted: await adoptChild(Machine, machine('1', '1'), owner, MachineSet, io), patched }
}

test('adopts the newest version of a child after a conflict', async () => {
  expect(await adoptAfterChange(machine('1', '2'))).toMatchObject({ adopted: { metadata: { uid: '1' } }, patched: ['1', '2'] })
})

test('does not adopt another object that was created under the name of the child', async () => {
  expect(await adoptAfterChange(machine('2', '2'))).toEqual({ adopted: undefined, patched: ['1'] })
})

test('returns the child as adopted if an earlier patch succeeded but its response was lost', async () => {
  const changed = machine('1', '2')
  const reference = { apiVersion: owner.apiVersion, kind: owner.kind, name: 'set', uid: 'u', controller: true }
  const newest = { ...changed, metadata: { ...changed.metadata, ownerReferences: [reference] } }
  expect(await adoptAfterChange(newest)).toEqual({ adopted: newest, patched: ['1'] })
})
