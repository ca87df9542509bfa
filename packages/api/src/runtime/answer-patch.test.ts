import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { patchedDocument } from './answer-patch.ts'
import { applyOperations } from './patch-dialect.ts'

interface Recorded {
  readonly type: string
  readonly patch: string
  readonly value?: unknown
  readonly error?: string
}

/** Patches with the results of upstream's library, evanphx/json-patch. The interop suite hooks-peer compares these results with the library. */
const { document, patches } = JSON.parse(readFileSync(new URL('../../testdata/patches.json', import.meta.url), 'utf8')) as {
  document: object
  patches: readonly Recorded[]
}

const notAnObject = 'a merge patch that is not an object is rejected here; upstream rejects it later'
/** Differences from upstream's library, with their reasons. */
const different: Readonly<Record<string, string>> = {
  '[{"op": "add", "path": "", "value": 1}]':
    'both reject a document that is neither an object nor a list, with different error texts',
  '[{"op": "replace", "path": "", "value": null}]': 'a document that is null is rejected here; upstream rejects it later',
  '[{"op": "add", "path": "//k", "value": 2}]': 'the library changes a copy of the document, and loses the change',
  '[{"op": "test", "path": "/spec/l", "value": [1, 2.0]}]': 'here 2 equals 2.0',
  '': 'here an empty patch changes nothing; upstream returns before it calls the library',
  '[]': notAnObject,
  '"s"': notAnObject,
  null: notAnObject,
  '1': notAnObject,
  true: notAnObject,
}

const outcome = ({ type, patch }: Recorded): Pick<Recorded, 'value' | 'error'> => {
  try {
    return { value: patchedDocument(document, type, patch) ?? document }
  } catch (err) {
    return { error: (err as Error).message.replace(/^failed to apply patch: error (de|ap).*? \(RFC\d+\): /, '') }
  }
}

/** Whether a difference is listed for the patch. Keys without an operation, such as `null`, are listed only for merge patches. */
const isDifferent = ({ type, patch }: Recorded) => patch in different && (type === 'JSONMergePatch' || patch.startsWith('[{'))

test.each(patches.filter((patch) => !isDifferent(patch)))(
  "a patch of type $type has the same result as with upstream's library: $patch",
  ({ type, patch, value, error }) => {
    const expected = error === undefined ? { value } : { error }
    expect(outcome({ type, patch })).toEqual(expected)
  },
)

test.each(patches.filter(isDifferent))(
  "a patch of type $type has another result than with upstream's library, for a documented reason: $patch",
  ({ type, patch, value, error }) => {
    expect(outcome({ type, patch })).not.toEqual(error === undefined ? { value } : { error })
  },
)

test('does not change the document when an operation fails after others have succeeded', () => {
  const before = structuredClone(document)
  expect(() =>
    applyOperations(document, [
      { op: 'add', path: '/spec/z', value: 1 },
      { op: 'remove', path: '/nothing' },
    ]),
  ).toThrow('unable to remove nonexistent key: nothing')
  expect(document).toEqual(before)
})

test('limits copies that double a document', () => {
  const doubling = Array.from({ length: 60 }, (_, index) => ({ op: 'copy', from: '/spec', path: `/spec/${index}` }) as const)
  expect(() => applyOperations(document, doubling)).toThrow(/the accumulated size increase of copy is \d+, exceeding the limit/)
})

test('treats names such as __proto__ as ordinary members', () => {
  const patched = applyOperations(document, [{ op: 'add', path: '/spec/__proto__', value: { polluted: true } }])
  expect(JSON.stringify(patched)).toContain('"__proto__":{"polluted":true}')
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  expect(() => applyOperations(document, [{ op: 'add', path: '/constructor/x', value: 1 }])).toThrow('doc is missing path')
})
