/**
 * Checks prose by docs/style/english.md: words that it replaces or forbids, and similar words, in Markdown and in comments; table cells as
 * long as a paragraph; subjects of commits. Prints each finding with its file and line, or its commit, and fails if there are findings.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Commits after this one follow the rule for subjects. */
const subjectsSince = '9ffc110'

/** Matches a space, or the line break of a comment. */
const BetweenWords = String.raw`(?: |\s*\n[\s*/]*)`

/** Matches the words that docs/style/english.md replaces or forbids, and similar words. */
const replacedWords = new RegExp(
  String.raw`\b(${[
    'told|tells?|hears?|heard|say(?:s|ing)?|said|news|what has happened',
    'whoever|whatever|nobody|somebody|nowhere|what is not there|who watches over|who is asked|who may do what',
    'anew|gather(?:s|ed)?|mend(?:s|ed)?|tid(?:y|ies|ied)|fill(?:s|ed|ing)? in|read(?:s|ing)? over|breathe|made up|is nothing',
    String.raw`holds? (?:back|up)|goes|tak(?:es?|en|ing) down|refused for|(?:do|does|did) not answer|silent`,
    String.raw`(?<!control[\s*-]*)planes?|field owners?|books|synced writes?|first round(?! trip)|still broken|rooms?`,
  ]
    .join('|')
    .replaceAll(' ', BetweenWords)})\b`,
  'gi',
)

/** Words of the glossary's right column that are not checked, each with a correct use. */
export const uncheckedWords: Readonly<Record<string, string>> = {
  pass: 'tests pass',
  look: 'look up an object',
  round: 'round a number, round trip',
  rounds: 'round a number',
  may: 'RFC 2119, and possibility',
  share: 'share memory',
  hold: 'hold a Lease or a lock',
  forms: 'forms of a text',
  'rules of a kind': 'explains the term strategy',
  image: 'image of a container',
  mark: 'mark an object by an annotation',
  call: 'call of a function or a hook',
  definition: 'CustomResourceDefinition',
  grants: 'a role grants permissions',
}

/** Maximum length of a table cell. A longer cell counts as a paragraph. */
const longestCell = 400

/** Whether the check finds the word. */
export const isReplaced = (word: string): boolean => word.search(replacedWords) >= 0

const exceptions: readonly { readonly file: RegExp; readonly reason: string }[] = [
  { file: /^docs\/style\/english\.md$/, reason: 'lists the words that are replaced' },
  { file: /^scripts\/prose/, reason: 'lists the words that are replaced' },
  { file: /testdata|fixtures|templates\//, reason: 'test data, files that `capstan new` writes, and code that makes test data' },
]

/** Returns `line: problem` for each finding in one file. In TypeScript only comments are checked. */
export function findingsIn(file: string, text: string): string[] {
  const isMarkdown = file.endsWith('.md')
  const prose = blank(isMarkdown ? blank(text, /^```[^]*?^```/gm) : comments(text), /`[^`\n]*`/g)
  const words = Array.from(prose.matchAll(replacedWords), ({ 0: word, index }) => ({
    line: prose.slice(0, index).split('\n').length,
    problem: `"${word.replace(/[\s*/]+/g, ' ')}" must be replaced, see docs/style/english.md`,
  }))
  const cells = prose.split('\n').flatMap((line, index) =>
    (isMarkdown && line.startsWith('|') ? line.split(/(?<!\\)\|/) : [])
      .filter((cell) => cell.length > longestCell)
      .map((cell) => ({
        line: index + 1,
        problem: `a table cell has ${cell.length} characters, at most ${longestCell} are allowed`,
      })),
  )
  return [...words, ...cells].sort((a, b) => a.line - b.line).map(({ line, problem }) => `${line}: ${problem}`)
}

/** Replaces the matches of the pattern with spaces, except line breaks, so that lines keep their numbers. */
const blank = (text: string, pattern: RegExp): string => text.replace(pattern, (match) => match.replace(/[^\n]/g, ' '))

/** Returns the block comments and the lines that begin with `//`, in the lines in which they are in `text`. */
function comments(text: string): string {
  let prose = ''
  let end = 0
  for (const match of text.matchAll(/\/\*\*?[^]*?\*\/|^\s*\/\/.*$/gm)) {
    prose += blank(text.slice(end, match.index), /[^\n]+/g) + match[0]
    end = match.index + match[0].length
  }
  return prose
}

/** Returns why a commit subject is invalid; `undefined` if it is valid. */
export function subjectProblem(subject: string): string | undefined {
  if (subject.length > 72) return `has ${subject.length} characters, at most 72 are allowed`
  if (!/^[a-z][\w./, -]*: [a-z]/.test(subject)) return 'must have the form "package: imperative change"'
  if (/^[^:]*: (added|fixed|adds|fixes|removed|removes|changed|changes|renamed|renames|moved|moves)\b/.test(subject))
    return 'must be imperative: add, fix, remove'
  return undefined
}

/** Returns the lines that git prints, without empty lines. @throws Error if git fails, for example in a clone without the commits */
export function gitLines(...args: string[]): string[] {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (status !== 0) throw new Error(`git ${args.join(' ')} failed: ${error?.message ?? stderr.trim()}`)
  return stdout.split('\n').filter(Boolean)
}

/**
 * Returns the lines that git prints. If git fails, as in a shallow clone or a folder without repository, prints that `description` was not
 * checked, and returns no lines.
 */
function linesToCheck(description: string, ...args: string[]): string[] {
  try {
    return gitLines(...args)
  } catch (err) {
    console.log(`NOT CHECKED: ${description}: ${(err as Error).message}`)
    return []
  }
}

function main(): void {
  const tracked = linesToCheck('prose', 'ls-files', '*.md', '*.ts')
  const files = tracked.filter((file) => !exceptions.some((exception) => exception.file.test(file)))
  const findings = files.flatMap((file) =>
    findingsIn(file, readFileSync(`${root}${file}`, 'utf8')).map((problem) => `${file}:${problem}`),
  )
  const subjects = linesToCheck('subjects of commits', 'log', '--no-merges', '--format=%h %s', `${subjectsSince}..HEAD`).flatMap(
    (line) => {
      const [, commit, subject] = /^(\S+) (.*)$/.exec(line)!
      const problem = subjectProblem(subject!)
      return problem === undefined ? [] : [`commit ${commit} "${subject}" ${problem}`]
    },
  )
  for (const problem of [...findings, ...subjects]) console.log(problem)
  if (findings.length + subjects.length > 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
