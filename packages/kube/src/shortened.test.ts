import { expect, test } from 'vitest'
import { shortened } from './shortened.ts'

test.each([
  ['a text that fits', 'x'.repeat(20), 20, 'x'.repeat(20)],
  ['a text that fits in characters, though not in UTF-16 units', '😀'.repeat(20), 20, '😀'.repeat(20)],
  ['a longer text ends with a mark', 'x'.repeat(21), 20, 'xxxxx... (truncated)'],
  ['characters are not split', '😀'.repeat(21), 20, '😀😀😀😀😀... (truncated)'],
  ['an unpaired surrogate is replaced', 'x\ud800', 20, 'x\ufffd'],
])('%s', (_, text, longest, expected) => expect(shortened(text, longest)).toBe(expected))
