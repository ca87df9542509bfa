/**
 * Checks prose by docs/style/english.md: words that the glossary replaces, in Markdown and in comments; table cells as long as a
 * paragraph; subjects of commits. Prints the files with most findings, and fails when there are more than `most`.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Allowed number of findings. */
const most = { words: 0, cells: 0 }

/** Commits after this one follow the rule for subjects. */
const subjectsSince = '9ffc110'

const replaced =
  /\b(told|tells?|hears?|heard|whoever|nobody|somebody|nowhere|anew|gather(?:s|ed)?|mend(?:s|ed)?|holds? (?:back|up)|goes on|breathe|made up|is nothing)\b/gi

/** A table cell longer than this is a paragraph. */
const longestCell = 400

const exceptions: readonly { readonly file: RegExp; readonly reason: string }[] = [
  { file: /^docs\/style\/english\.md$/, reason: 'lists the words that are replaced' },
  { file: /^scripts\/prose/, reason: 'lists the words that are replaced' },
  { file: /testdata|fixtures|templates\//, reason: 'data, not prose' },
]

export interface Findings {
  readonly words: number
  readonly cells: number
}

/** Returns the number of findings in one file. In TypeScript only comments are checked. */
export function findingsIn(file: string, text: string): Findings {
  const isMarkdown = file.endsWith('.md')
  const prose = isMarkdown ? text.replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, '') : comments(text)
  const cells = isMarkdown ? prose.split('\n').filter((line) => line.startsWith('|')) : []
  return {
    words: [...prose.matchAll(replaced)].length,
    cells: cells.flatMap((line) => line.split(/(?<!\\)\|/)).filter((cell) => cell.length > longestCell).length,
  }
}

const comments = (text: string): string =>
  [...text.matchAll(/\/\*\*?([^]*?)\*\/|^\s*\/\/(.*)$/gm)].map(([, block, line]) => block ?? line).join('\n')

/** Returns the problem of a commit subject, or undefined. */
export function subjectProblem(subject: string): string | undefined {
  if (subject.length > 72) return `has ${subject.length} characters, at most 72 are allowed`
  if (!/^[a-z][\w./, -]*: [a-z]/.test(subject)) return 'must have the form "package: imperative change"'
  if (/^[^:]*: (added|fixed|adds|fixes|removed|removes|changed|changes|renamed|renames|moved|moves)\b/.test(subject))
    return 'must be imperative: add, fix, remove'
  return undefined
}

function lines(...args: string[]): string[] {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  return status === 0 ? stdout.split('\n').filter(Boolean) : []
}

function main(): void {
  const files = lines('ls-files', '*.md', '*.ts').filter((file) => !exceptions.some((one) => one.file.test(file)))
  const found = files.map((file) => ({ file, ...findingsIn(file, readFileSync(`${root}${file}`, 'utf8')) }))
  const total = { words: 0, cells: 0 }
  for (const { words, cells } of found) {
    total.words += words
    total.cells += cells
  }
  const subjects = lines('log', '--no-merges', '--format=%h %s', `${subjectsSince}..HEAD`).flatMap((line) => {
    const [, commit, subject] = /^(\S+) (.*)$/.exec(line)!
    const problem = subjectProblem(subject!)
    return problem === undefined ? [] : [`commit ${commit} "${subject}" ${problem}`]
  })
  for (const { file, words, cells } of found.toSorted((a, b) => b.words + b.cells - a.words - a.cells).slice(0, 10))
    console.log(`${file}: ${words} replaced words, ${cells} long cells`)
  console.log(`${total.words} replaced words (at most ${most.words}), ${total.cells} long cells (at most ${most.cells})`)
  for (const problem of subjects) console.log(problem)
  if (total.words > most.words || total.cells > most.cells || subjects.length > 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
