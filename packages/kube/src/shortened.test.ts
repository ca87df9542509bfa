import { expect, test } from 'vitest'
import { shortened } from './shortened.ts'

test.each([
  ['does not change a text that fits', 'x'.repeat(20), 20, 'x'.repeat(20)],
  ['counts characters, not UTF-16 units', '😀'.repeat(20), 20, '😀'.repeat(20)],
  ['ends a longer text with a mark', 'x'.repeat(21), 20, 'xxxxx... (truncated)'],
  ['does not split characters', '😀'.repeat(21), 20, '😀😀😀😀😀... (truncated)'],
  ['replaces an unpaired surrogate', 'x\ud800', 20, 'x\ufffd'],
])('%s', (_, text, longest, expected) => expect(shortened(text, longest)).toBe(expected))
