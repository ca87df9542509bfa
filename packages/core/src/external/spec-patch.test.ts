import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { specPatch } from './spec-patch.ts'

const anObject = (spec: object, managed: Record<string, object>): KubeObject =>
  ({
    metadata: {
      managedFields: Object.entries(managed).map(([manager, fields]) => ({ manager, fieldsV1: { 'f:spec': fields } })),
    },
    spec,
  }) as unknown as KubeObject

test.each([
  ['nothing, when all is as wanted', { size: 'a' }, { us: { 'f:size': {} } }, { size: 'a' }, undefined],
  ['what is wanted otherwise', { size: 'a' }, { us: { 'f:size': {} } }, { size: 'b' }, { size: 'b' }],
  ['what is wanted now', {}, {}, { size: 'b' }, { size: 'b' }],
  [
    'away what was ours and is not wanted',
    { size: 'a', old: 1 },
    { us: { 'f:size': {}, 'f:old': {} } },
    { size: 'a' },
    { old: null },
  ],
  [
    'nothing of others',
    { size: 'a', providerID: 'p' },
    { us: { 'f:size': {} }, it: { 'f:providerID': {} } },
    { size: 'a' },
    undefined,
  ],
  ['nothing that others set, too', { a: 1 }, { us: { 'f:a': {} }, it: { 'f:a': {} } }, {}, undefined],
  ['nothing that nobody is known to have set', { a: 1 }, {}, {}, undefined],
  [
    'members of objects one by one',
    { disk: { size: 1, kind: 'ssd', id: 'x' } },
    { us: { 'f:disk': { '.': {}, 'f:size': {}, 'f:kind': {} } }, it: { 'f:disk': { 'f:id': {} } } },
    { disk: { size: 2 } },
    { disk: { size: 2, kind: null } },
  ],
  [
    'all of ours of an object that is not wanted, and leaves what is of others',
    { disk: { size: 1, id: 'x' } },
    { us: { 'f:disk': { 'f:size': {} } }, it: { 'f:disk': { 'f:id': {} } } },
    {},
    { disk: { size: null } },
  ],
  [
    'a whole object that was all ours',
    { disk: { size: 1 } },
    { us: { 'f:disk': { '.': {}, 'f:size': {} } } },
    {},
    { disk: null },
  ],
  [
    'a map that is one value, as one',
    { tags: { a: '1', b: '2' } },
    { us: { 'f:tags': {} } },
    { tags: { a: '1' } },
    { tags: { b: null } },
  ],
  [
    'items that others have put into a list with keys behind those that are wanted, and lets ours go',
    { nics: [{ name: 'a', mtu: 1, ip: 'x' }, { name: 'old' }, { name: 'theirs' }] },
    {
      us: { 'f:nics': { 'k:{"name":"a"}': { '.': {}, 'f:name': {}, 'f:mtu': {} }, 'k:{"name":"old"}': { '.': {} } } },
      it: { 'f:nics': { 'k:{"name":"a"}': { 'f:ip': {} }, 'k:{"name":"theirs"}': { '.': {} } } },
    },
    { nics: [{ name: 'b' }, { name: 'a' }] },
    { nics: [{ name: 'b' }, { name: 'a', ip: 'x' }, { name: 'theirs' }] },
  ],
  [
    'nothing, when a list differs by items of others alone',
    { groups: ['a', 'theirs'] },
    { us: { 'f:groups': { 'v:"a"': {} } }, it: { 'f:groups': { 'v:"theirs"': {} } } },
    { groups: ['a'] },
    undefined,
  ],
  [
    'values that are not wanted out of a set',
    { groups: ['a', 'b', 'theirs'] },
    { us: { 'f:groups': { 'v:"a"': {}, 'v:"b"': {} } }, it: { 'f:groups': { 'v:"theirs"': {} } } },
    { groups: ['b'] },
    { groups: ['b', 'theirs'] },
  ],
  ['lists of one value as a whole', { zones: ['a', 'b'] }, { us: { 'f:zones': {} } }, { zones: ['b'] }, { zones: ['b'] }],
  ['another form of value', { size: { a: 1 } }, { us: { 'f:size': { 'f:a': {} } } }, { size: 'b' }, { size: 'b' }],
])('the patch brings %s', (_, spec, managed, wanted, patch) => {
  expect(specPatch(anObject(spec, managed), 'us', wanted)).toEqual(patch)
})

test('ignores managedFields of status', () => {
  const object = anObject({ a: 1 }, { us: { 'f:a': {} } })
  const entries = object.metadata.managedFields!.map((entry) => ({ ...entry, subresource: 'status' }))
  expect(
    specPatch({ ...object, metadata: { ...object.metadata, managedFields: entries } } as KubeObject, 'us', {}),
  ).toBeUndefined()
})
