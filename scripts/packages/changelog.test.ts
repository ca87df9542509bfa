import { expect, test } from 'vitest'
import { releaseNotes } from './changelog.ts'

const changelog = '# Changelog\n\n## Unreleased\n\n- new\n\n## 1.1.0\n\n## [1.0.0] - 2026-11-22\n\n- old\n- older\n'

test.each([
  ['1.0.0', { heading: '[1.0.0] - 2026-11-22', isFinal: true, text: '- old\n- older\n' }],
  ['1.1.0', { heading: 'Unreleased', isFinal: false, text: '- new\n' }],
  ['1.0', { heading: 'Unreleased', isFinal: false, text: '- new\n' }],
])('releaseNotes returns the section of version %s, or "Unreleased" if that section is missing or empty', (version, notes) => {
  expect(releaseNotes(changelog, version)).toEqual(notes)
})

test('releaseNotes returns undefined when neither the version nor "Unreleased" has text', () => {
  expect(releaseNotes('# Changelog\n\n## 0.9.0\n\n- x\n', '1.0.0')).toBeUndefined()
  expect(releaseNotes('# Changelog\n\n## Unreleased\n', '1.0.0')).toBeUndefined()
})
