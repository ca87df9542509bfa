/** A section of CHANGELOG.md. `text` does not contain the heading. */
export interface ReleaseNotes {
  /** The heading without `## `. */
  readonly heading: string
  /** Whether the section is the version's own, not "Unreleased". */
  readonly isFinal: boolean
  readonly text: string
}

/**
 * Returns the section of a version from the text of CHANGELOG.md. If this section is missing or empty, returns the section "Unreleased";
 * `undefined` if both are missing or empty.
 */
export function releaseNotes(changelog: string, version: string): ReleaseNotes | undefined {
  const sections = changelog.split(/^(?=## )/m).slice(1)
  for (const candidate of [version, 'Unreleased']) {
    const section = sections.find((text) => /^## \[?([^\]\s]+)/.exec(text)?.[1] === candidate)
    if (section === undefined) continue
    const end = section.indexOf('\n')
    const text = end < 0 ? '' : section.slice(end).trim()
    if (text !== '') return { heading: section.slice(3, end).trim(), isFinal: candidate === version, text: `${text}\n` }
  }
  return undefined
}
