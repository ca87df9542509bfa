/**
 * Checks prose by docs/style/english.md: words that the glossary replaces, in Markdown and in comments; table cells as long as a
 * paragraph; subjects of commits. Prints each finding with its file and line, and fails if there are findings.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Commits after this one follow the rule for subjects. */
const subjectsSince = '9ffc110'

const replacedWords =
  /\b(told|tells?|hears?|heard|whoever|whatever|nobody|somebody|nowhere|anew|gather(?:s|ed)?|mend(?:s|ed)?|holds? (?:back|up)|goes on|breathe|made up|is nothing)\b/gi

/** Maximum length of a table cell. A longer cell counts as a paragraph. */
const longestCell = 400

const exceptions: readonly { readonly file: RegExp; readonly reason: string }[] = [
  { file: /^docs\/style\/english\.md$/, reason: 'lists the words that are replaced' },
  { file: /^scripts\/prose/, reason: 'lists the words that are replaced' },
  { file: /testdata|fixtures|templates\//, reason: 'data, not prose' },
]

/** Returns `line: problem` for each finding in one file. In TypeScript only comments are checked. */
export function findingsIn(file: string, text: string): string[] {
  const isMarkdown = file.endsWith('.md')
  const prose = isMarkdown ? blank(blank(text, /^```[^]*?^```/gm), /`[^`\n]*`/g) : comments(text)
  return prose
    .split('\n')
    .flatMap((line, index) => [
      ...Array.from(line.matchAll(replacedWords), ([word]) => `${index + 1}: "${word}" is a word that the glossary replaces`),
      ...(isMarkdown && line.startsWith('|') ? line.split(/(?<!\\)\|/) : [])
        .filter((cell) => cell.length > longestCell)
        .map((cell) => `${index + 1}: a table cell has ${cell.length} characters, at most ${longestCell} are allowed`),
    ])
}

/** Replaces all characters except line breaks, so that lines keep their numbers. */
const blank = (text: string, pattern: RegExp): string => text.replace(pattern, (match) => match.replace(/[^\n]/g, ' '))

function comments(text: string): string {
  let prose = ''
  let end = 0
  for (const match of text.matchAll(/\/\*\*?[^]*?\*\/|^\s*\/\/.*$/gm)) {
    prose += blank(text.slice(end, match.index), /[^\n]+/g) + match[0]
    end = match.index + match[0].length
  }
  return prose
}

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
  const files = lines('ls-files', '*.md', '*.ts').filter((file) => !exceptions.some((exception) => exception.file.test(file)))
  const findings = files.flatMap((file) =>
    findingsIn(file, readFileSync(`${root}${file}`, 'utf8')).map((problem) => `${file}:${problem}`),
  )
  const subjects = lines('log', '--no-merges', '--format=%h %s', `${subjectsSince}..HEAD`).flatMap((line) => {
    const [, commit, subject] = /^(\S+) (.*)$/.exec(line)!
    const problem = subjectProblem(subject!)
    return problem === undefined ? [] : [`commit ${commit} "${subject}" ${problem}`]
  })
  for (const problem of [...findings, ...subjects]) console.log(problem)
  if (findings.length + subjects.length > 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
