/**
 * Returns the plural of a kind, which is its resource name. Core computes the name of a provider's CustomResourceDefinition from it,
 * without discovery. Providers must therefore name their resources by these rules.
 *
 * Upstream: gobuffalo/flect v1.0.3 on the lower-cased kind. `irregular` and `endings` contain only a part of flect's words and endings. The
 * plural of some other kinds, such as Medium and Alias, differs from flect's.
 */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase()
  for (const [singular, plural] of irregular) {
    if (word.endsWith(plural)) return word
    if (word.endsWith(singular)) return word.slice(0, -singular.length) + plural
  }
  for (const [ending, plural] of endings) {
    if (word.endsWith(ending)) return word.slice(0, -ending.length) + plural
  }
  return word.endsWith('s') ? word : `${word}s`
}

const irregular: readonly (readonly [string, string])[] = [
  ['person', 'people'],
  ['child', 'children'],
  ['index', 'indices'],
  ['vertex', 'vertices'],
  ['matrix', 'matrices'],
  ['base', 'bases'],
]

/** Endings with their plurals; the first match applies. */
const endings: readonly (readonly [string, string])[] = [
  ['tive', 'tives'],
  ['eaf', 'eaves'],
  ['oaf', 'oaves'],
  ['afe', 'aves'],
  ['arf', 'arves'],
  ['rfe', 'rves'],
  ['rf', 'rves'],
  ['lf', 'lves'],
  ['fe', 'ves'],
  ['ay', 'ays'],
  ['ey', 'eys'],
  ['oy', 'oys'],
  ['quy', 'quies'],
  ['uy', 'uys'],
  ['y', 'ies'],
  ['eau', 'eaux'],
  ['trix', 'trices'],
  ['sis', 'ses'],
  ['ouse', 'ouses'],
  ['lause', 'lauses'],
  ['us', 'uses'],
  ['ch', 'ches'],
  ['io', 'ios'],
  ['sh', 'shes'],
  ['ss', 'sses'],
  ['ez', 'ezzes'],
  ['iz', 'izzes'],
  ['tz', 'tzes'],
  ['zz', 'zzes'],
  ['ano', 'anos'],
  ['lo', 'los'],
  ['to', 'tos'],
  ['oo', 'oos'],
  ['o', 'oes'],
  ['x', 'xes'],
]
