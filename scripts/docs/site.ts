/** The pages of the documentation site: their Markdown files, their paths, the navigation, and the targets of their links. */
import { posix } from 'node:path'

export interface Page {
  /** Path in the repository. */
  readonly file: string
  /** Path in the site. */
  readonly url: string
  readonly title: string
}

export interface Section {
  readonly title: string
  readonly pages: readonly Page[]
}

/** Sections of the navigation, in order, with patterns of their files. A file belongs to the first section that matches. */
const sections: readonly (readonly [title: string, files: RegExp])[] = [
  ['Capstan', /^(?:README|ARCHITECTURE|SCOPE|CONTRIBUTING|CHANGELOG|SECURITY|CODE_OF_CONDUCT)\.md$/],
  ['Guides', /^docs\/guides\//],
  ['Reference', /^docs\/reference\//],
  ['Packages', /^packages\/[^/]+\/README\.md$/],
  ['Inside the packages', /^packages\/[^/]+\/src\/(?!.*testdata).*README\.md$/],
  ['Examples', /^examples\/[^/]+\/README\.md$/],
  ['Development', /^(?:docs\/[^/]+\.md|docs\/style\/.*|bench\/README\.md|interop\/README\.md)$/],
  ['Decisions', /^docs\/adr\//],
]

const titleOf = (file: string, markdown: string): string =>
  /^# (.+)$/m
    .exec(markdown)?.[1]
    ?.replace(/`|\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim() ?? file

/** Returns the path of a file's page. README.md becomes the index page of its folder. */
export const urlOf = (file: string): string =>
  `/${file.replace(/(?:^|(?<=\/))README\.md$/, 'index.md').replace(/\.md$/, '.html')}`

/** Returns the sections of the navigation with their pages. Files that match no section have no page. `read` returns the text of a file. */
export function sectionsOf(files: readonly string[], read: (file: string) => string): Section[] {
  const remainingFiles = new Set(files)
  return sections.map(([title, pattern]) => {
    const sectionFiles = [...remainingFiles].filter((file) => pattern.test(file))
    for (const file of sectionFiles) remainingFiles.delete(file)
    const pages = sectionFiles.map((file) => ({ file, url: urlOf(file), title: titleOf(file, read(file)) }))
    // The start page, the README.md of the project, comes first.
    return { title, pages: pages.toSorted((a, b) => Number(b.url === '/index.html') - Number(a.url === '/index.html')) }
  })
}

/** Returns a relative link from one page to another, so that the site works at any path of a web server, and without a web server. */
export const relativeTo = (from: string, to: string): string => posix.relative(posix.dirname(from), to) || posix.basename(to)

/**
 * Converts a link of a Markdown file into a link of the site. A link to a folder leads to the page of its README, or, without
 * one, to the first page below it. A target without a page is added to `copies`, the files and folders to copy into the site. Links to
 * other sites, and to headings of the same page, remain as they are.
 */
export function siteLink(file: string, href: string, pages: ReadonlyMap<string, Page>, copies: Set<string>): string {
  if (/^[a-z][a-z+.-]*:|^\/\/|^#/i.test(href)) return href
  const [path = '', anchor] = href.split('#', 2)
  const target = posix.normalize(posix.join(posix.dirname(file), decodeURIComponent(path))).replace(/\/$/, '')
  const page =
    pages.get(target) ??
    pages.get(`${target}/README.md`) ??
    [...pages.values()].find((candidate) => candidate.file.startsWith(`${target}/`))
  if (!page) copies.add(target)
  const link = relativeTo(urlOf(file), page?.url ?? `/${target}`)
  return anchor === undefined ? link : `${link}#${anchor}`
}

/**
 * Returns a message for each broken link within the site, and for each page that cannot be reached from the start page. Links to other
 * sites are not checked. `built` has the HTML of the pages by URL; `exists` reports whether another file of the site exists.
 */
export function siteProblems(built: ReadonlyMap<string, string>, exists: (url: string) => boolean): string[] {
  const idsOf = (html: string) => new Set([...html.matchAll(/ (?:id|name)="([^"]+)"/g)].map(([, id]) => id!))
  const ids = new Map([...built].map(([url, html]) => [url, idsOf(html)]))
  const problems: string[] = []
  const targetsOf = new Map<string, Set<string>>()
  for (const [url, html] of built) {
    const targets = new Set<string>()
    targetsOf.set(url, targets)
    for (const [, href] of html.matchAll(/<a [^>]*href="([^"]+)"/g)) {
      if (/^[a-z][a-z+.-]*:|^\/\//i.test(href!)) continue
      const [path = '', anchor] = href!.split('#', 2)
      const target = path === '' ? url : posix.join(posix.dirname(url), decodeURIComponent(path))
      targets.add(target)
      if (!built.has(target) && !exists(target)) problems.push(`${url}: ${href} does not exist`)
      else if (anchor && built.has(target) && !ids.get(target)!.has(decodeURIComponent(anchor)))
        problems.push(`${url}: ${href} has no such heading`)
    }
  }
  const reached = new Set(['/index.html'])
  for (const url of reached) for (const target of targetsOf.get(url) ?? []) reached.add(target)
  return [
    ...problems,
    ...[...built.keys()].filter((url) => !reached.has(url)).map((url) => `${url}: no links lead to it from the start page`),
  ]
}
