import { expect, test } from 'vitest'
import { optionsOf } from './options.ts'

test('an invalid field manager is quoted as Go quotes strings', () =>
  expect(() => optionsOf('create', new URLSearchParams({ fieldManager: 'a\v\u200b\u007f' }))).toThrow(
    String.raw`Invalid value: "a\v\u200b\x7f": invalid character U+000B (at position 1)`,
  ))
