/**
 * Builds the documentation site from Markdown files of the repository, with Eleventy, and checks the links within the site. Needs no
 * network. Usage: node scripts/docs.ts [OUTPUT]. The folder OUTPUT is `build/docs` by default.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Eleventy, type Token } from '@11ty/eleventy'
import { anchorNamer } from './docs/anchors.ts'
import { type Page, relativeTo, sectionsOf, siteLink, siteProblems } from './docs/site.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const output = resolve(process.argv[2] ?? join(root, 'build/docs'))

const listed = spawnSync('git', ['ls-files', '-z', '*.md'], { cwd: root, encoding: 'utf8' }).stdout.split('\0')
const tracked = listed.filter((file) => file !== '' && existsSync(join(root, file)))
const sections = sectionsOf(tracked, (file) => readFileSync(join(root, file), 'utf8'))
const pages = new Map(sections.flatMap(({ pages }) => pages.map((page) => [page.file, page] as const)))

// Eleventy reads a folder with copies of the pages and their layout, because the repository also has other Markdown, such as test data.
mkdirSync(join(root, 'build'), { recursive: true })
const input = mkdtempSync(join(root, 'build/docs-input-'))
try {
  for (const file of pages.keys()) {
    mkdirSync(dirname(join(input, file)), { recursive: true })
    cpSync(join(root, file), join(input, file))
  }
  mkdirSync(join(input, '_includes'))
  cpSync(join(root, 'scripts/docs/page.njk'), join(input, '_includes/page.njk'))
  await build()
} finally {
  rmSync(input, { recursive: true, force: true })
}

async function build(): Promise<void> {
  rmSync(output, { recursive: true, force: true })
  const copies = new Set<string>()
  const eleventy = new Eleventy(relative(process.cwd(), input), relative(process.cwd(), output), {
    quietMode: true,
    configPath: false,
    config(config) {
      config.setUseGitIgnore(false)
      config.addGlobalData('layout', 'page.njk')
      config.addGlobalData('sections', sections)
      config.addGlobalData('eleventyComputed', {
        permalink: (data: PageData) => pageOf(data).url,
        title: (data: PageData) => pageOf(data).title,
        // Eleventy's own `page.url` omits index.html.
        siteUrl: (data: PageData) => pageOf(data).url,
      })
      config.addFilter('relativeTo', relativeTo)
      config.amendLibrary('md', (markdown) => {
        markdown.set({ html: true })
        markdown.core.ruler.push('site', ({ tokens, env }) => changeTokens(tokens, pageOf(env as PageData), copies))
      })
      // Pages are plain Markdown, not templates: they may contain `{{ }}` as text.
      return { templateFormats: ['md'], markdownTemplateEngine: false }
    },
  })
  await eleventy.write()
  for (const file of copies) {
    mkdirSync(dirname(join(output, file)), { recursive: true })
    if (existsSync(join(root, file))) cpSync(join(root, file), join(output, file), { recursive: true })
  }
  const built = new Map(
    globSync('**/*.html', { cwd: output }).map((file) => [
      `/${file.replaceAll('\\', '/')}`,
      readFileSync(join(output, file), 'utf8'),
    ]),
  )
  writeFileSync(join(output, '.nojekyll'), '')
  const problems = siteProblems(built, (url) => existsSync(join(output, url)))
  if (built.size !== pages.size) problems.push(`${built.size} pages were built from ${pages.size} files`)
  for (const problem of problems) console.error(problem)
  console.log(`${relative(process.cwd(), output)}: ${built.size} pages`)
  process.exitCode = problems.length === 0 ? 0 : 1
}

interface PageData {
  readonly page: { readonly inputPath: string }
}

function pageOf({ page }: PageData): Page {
  const file = relative(input, resolve(page.inputPath)).replaceAll('\\', '/')
  return pages.get(file)!
}

/**
 * Adds anchors to headings, and converts links of the repository to links of the site. Adds linked files and folders without a page to
 * `copies`, which are copied into the site.
 */
function changeTokens(tokens: readonly Token[], { file }: Page, copies: Set<string>): void {
  const anchorOf = anchorNamer()
  const changeLinks = (token: Token) => {
    const href = token.type === 'link_open' ? token.attrGet('href') : null
    if (href !== null) token.attrSet('href', siteLink(file, href, pages, copies))
    token.children?.forEach(changeLinks)
  }
  for (const [index, token] of tokens.entries()) {
    changeLinks(token)
    if (token.type === 'heading_open') token.attrSet('id', anchorOf(tokens[index + 1]!.content))
  }
}
