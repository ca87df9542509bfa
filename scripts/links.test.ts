import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { anchorNamer } from './docs/anchors.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const tracked = spawnSync('git', ['ls-files', '-z', '*.md'], { cwd: root, encoding: 'utf8' }).stdout.split('\0').filter(Boolean)

/** Templates of new projects. Their links are relative to the new project. */
const templates = /^packages\/cli\/templates\//

const withoutCode = (markdown: string): string => markdown.replace(/^(`{3,})[^]*?^\1`*$/gm, '').replace(/(`+)[^`\n]+?\1/g, '')

/** Returns the targets of `[text](target)`, `![text](target)` and `[label]: target` that are neither URLs nor in code. */
function relativeLinks(markdown: string): string[] {
  const prose = withoutCode(markdown)
  const inline = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
  const definitions = [...prose.matchAll(/^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?/gm)]
  return [...inline, ...definitions].map(([, target]) => target!).filter((target) => !/^[a-z][a-z+.-]*:|^\/\//i.test(target))
}

/** Returns the anchors of a page: those of its headings, and the ids or names of its `<a>` tags. */
function anchors(markdown: string): Set<string> {
  const headings = markdown.replace(/^(`{3,})[^]*?^\1`*$/gm, '').matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)
  const names = new Set([...headings].map(([, heading]) => heading!).map(anchorNamer()))
  for (const [, id] of markdown.matchAll(/<a (?:id|name)="([^"]+)"/g)) names.add(id!)
  return names
}

/**
 * Returns why a link is broken: its path leaves the repository or does not exist, or its anchor does not exist. Returns `undefined` if the
 * link works.
 */
function problemOf(file: string, link: string): string | undefined {
  const [path = '', anchor] = decodeURIComponent(link).split('#', 2)
  const target = path === '' ? file : normalize(join(dirname(file), path))
  if (target.startsWith('..')) return `${file}: ${link} leaves the repository`
  if (!existsSync(join(root, target))) return `${file}: ${link} does not exist`
  if (anchor === undefined || anchor === '') return undefined
  if (!statSync(join(root, target)).isFile() || !target.endsWith('.md'))
    return `${file}: ${link} has an anchor, but is not Markdown`
  return anchors(readFileSync(join(root, target), 'utf8')).has(anchor) ? undefined : `${file}: ${link} has no such heading`
}

describe('relative links in Markdown', () => {
  test('refer to existing paths and anchors', () => {
    expect(tracked.length).toBeGreaterThan(20)
    const problems = tracked
      .filter((file) => !templates.test(file) && existsSync(join(root, file)))
      .flatMap((file) => relativeLinks(readFileSync(join(root, file), 'utf8')).flatMap((link) => problemOf(file, link) ?? []))
    expect(problems).toEqual([])
  })

  test('are found inline and as definitions, but not in code', () =>
    expect(
      relativeLinks('[a](b.md) ![c](d.png "t") [e](https://f) `[g](h.md)`\n\n```\n[i](j.md)\n```\n\n[k]: l.md#m\n[n](#o)'),
    ).toEqual(['b.md', 'd.png', '#o', 'l.md#m']))

  test('are reported when the file or the heading does not exist, and when they leave the repository', () => {
    expect(problemOf('README.md', 'no-such-file.md')).toContain('does not exist')
    expect(problemOf('README.md', 'CONTRIBUTING.md#no-such-heading')).toContain('no such heading')
    expect(problemOf('README.md', '../outside.md')).toContain('leaves the repository')
    expect(problemOf('README.md', 'CONTRIBUTING.md#contributing')).toBeUndefined()
  })

  test('name a heading by the anchor that GitHub derives from it, and an `<a>` tag by its id', () =>
    expect([...anchors('# Who may `import` whom?\n## A_b, c\n## A_b, c\n```\n# no heading\n```\n<a id="x"></a>')]).toEqual([
      'who-may-import-whom',
      'a_b-c',
      'a_b-c-1',
      'x',
    ]))
})

test('paths in ARCHITECTURE.md that begin with scripts, docs, PACKAGE/src or PACKAGE/templates exist', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const named = [...text.matchAll(/`([\w-]+\/(?:src|templates)\/[\w./-]*|(?:scripts|docs)\/[\w./-]+)`/g)].map(([, path]) => path!)
  expect(named.length).toBeGreaterThan(25)
  expect(named.filter((path) => !existsSync(join(root, 'packages', path)) && !existsSync(join(root, path)))).toEqual([])
})
