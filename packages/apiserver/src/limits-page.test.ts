import { globSync, readFileSync } from 'node:fs'
import { hours, minutes, seconds } from '@capstan/kube'
import { expect, test } from 'vitest'

const folder = new URL('.', import.meta.url)
const page = readFileSync(new URL('../../../docs/reference/limits.md', import.meta.url), 'utf8')

/** Rows of the page's tables: the limit, its value, and the file and name of its constant or default. */
const rows = [...page.matchAll(/^\| (.+?) \| ([\d.,]+) \| .*\| `([\w/.-]+\.ts)` `(\w+)` \|$/gm)].map(
  ([, limit = '', value = '', file = '', name = '']) => ({ limit, value, file, name }),
)

/** Names of constants that the page does not list: limits of the implementation, and limits of a single field. */
const unlisted = new Set([
  'MaxContexts',
  'MaxAgents',
  'MaxInt32',
  'MaxBatch',
  'MaxPause',
  'MaxPrefix',
  'MaxUnsorted',
  'MaxMembers',
  'MaxTypes',
  'MaxGetters',
])

/** Returns the value of a constant or default in a source file: a number, product, shift or duration. */
function valueIn(file: string, name: string): number {
  const source = readFileSync(new URL(file, folder), 'utf8')
  const [, expression] =
    new RegExp(`\\b${name}(?: =|:) ((?:(?:seconds|minutes|hours)\\()?\\d[\\d_.* <)]*),?$`, 'm').exec(source) ?? []
  if (expression === undefined) throw new Error(`${file} has no number ${name}`)
  const text = expression
    .replaceAll('_', '')
    .replace(/^(seconds|minutes|hours)\((.+)\)$/, (_, unit: string, count: string) =>
      String({ seconds, minutes, hours }[unit as 'seconds'](Number(count))),
    )
  const shift = /^(\d+) << (\d+)$/.exec(text)
  return shift
    ? Number(shift[1]) * 2 ** Number(shift[2])
    : text.split(' * ').reduce((product, factor) => product * Number(factor), 1)
}

test.each(rows)('the limit "$limit" has the value of the constant or default in its source file', ({ value, file, name }) => {
  expect(value).toBe(valueIn(file, name).toLocaleString('en'))
})

test('docs/reference/limits.md lists every constant of this package with a number and a name such as MaxSockets, unless it is in `unlisted`', () => {
  const listed = new Set(rows.map(({ file, name }) => `${file} ${name}`))
  const missing = globSync('**/*.ts', { cwd: folder })
    .filter((file) => !/\.(test|suite)\.ts$/.test(file))
    .flatMap((file) =>
      [...readFileSync(new URL(file, folder), 'utf8').matchAll(/^(?:export )?const (Max[A-Z]\w*) = [\d_]/gm)].map(
        ([, name = '']) => ({ file, name }),
      ),
    )
    .filter(({ file, name }) => !unlisted.has(name) && !listed.has(`${file} ${name}`))
  expect([rows.length > 25, missing]).toEqual([true, []])
})
