import { describe, expect, test } from 'vitest'
import { relativeTo, sectionsOf, siteLink, siteProblems, urlOf } from './site.ts'

const files = ['CONTRIBUTING.md', 'README.md', 'docs/guides/a.md', 'docs/adr/0001-x.md', 'packages/kube/README.md']
const sections = sectionsOf(files, (file) => `# Title of \`${file}\`\n\nText.`)
const pages = new Map(sections.flatMap(({ pages }) => pages.map((page) => [page.file, page] as const)))

test('urlOf returns the path of a file with the ending .html, and for README.md index.html of its folder', () =>
  expect(files.map(urlOf)).toEqual([
    '/CONTRIBUTING.html',
    '/index.html',
    '/docs/guides/a.html',
    '/docs/adr/0001-x.html',
    '/packages/kube/index.html',
  ]))

test('the start page is first in the navigation, each title is the heading of its file, and test data has no page', () => {
  expect(sections[0]!.pages.map(({ url, title }) => `${url} ${title}`)).toEqual([
    '/index.html Title of README.md',
    '/CONTRIBUTING.html Title of CONTRIBUTING.md',
  ])
  expect(sectionsOf(['packages/kube/src/x/testdata/README.md'], () => '').flatMap(({ pages }) => pages)).toEqual([])
})

describe('a link', () => {
  test.each([
    [
      'to a page leads to its HTML file',
      'packages/kube/README.md',
      '../../docs/guides/a.md#task',
      '../../docs/guides/a.html#task',
    ],
    [
      'to a folder with a README leads to the page of the README',
      'docs/guides/a.md',
      '../../packages/kube',
      '../../packages/kube/index.html',
    ],
    ['to a folder without a README leads to the first page below the folder', 'README.md', 'docs/adr', 'docs/adr/0001-x.html'],
    ['to a heading of the same page is unchanged', 'README.md', '#status', '#status'],
    ['to another site is unchanged', 'README.md', 'https://example.com/a.md', 'https://example.com/a.md'],
  ])('%s', (_, file, href, expected) => {
    const copies = new Set<string>()
    expect(siteLink(file, href, pages, copies)).toBe(expected)
    expect([...copies]).toEqual([])
  })

  test('to a file that is not a page leads to a copy of the file', () => {
    const copies = new Set<string>()
    expect(siteLink('docs/guides/a.md', '../../LICENSE', pages, copies)).toBe('../../LICENSE')
    expect([...copies]).toEqual(['LICENSE'])
  })

  test('from a page to itself is the file name of the page', () => expect(relativeTo('/a/b.html', '/a/b.html')).toBe('b.html'))
})

test('siteProblems reports links without a target, missing headings, and pages that no link reaches', () => {
  const built = new Map([
    [
      '/index.html',
      '<a class="x" href="a.html#one">a</a> <a href="a.html#two">b</a> <a href="gone.html">c</a> <a href="LICENSE">d</a>',
    ],
    ['/a.html', '<h2 id="one">One</h2>'],
    ['/alone.html', ''],
  ])
  expect(siteProblems(built, (url) => url === '/LICENSE')).toEqual([
    '/index.html: a.html#two has no such heading',
    '/index.html: gone.html does not exist',
    '/alone.html: no links lead to it from the start page',
  ])
})
