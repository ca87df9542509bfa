/** docs/reference/errors.md: the words with which failures of hooks begin, and what core says to answers that it refuses. */
import { type HookFailureCode, hookProblems, isIgnorable, isOutage } from '@capstan/extension'
import { warning } from './gen-pages.ts'
import { refusedByCore } from './hook-fixtures.ts'

export async function errorsPage(): Promise<string> {
  const problems = Object.entries(hookProblems).map(([problem, { codes, meaning, remedy }]) => {
    const labels = codes.map((code) => `\`${code}\``).join(', ')
    return row(`\`${problem}\``, meaning, remedy, labels, someOf(codes, isIgnorable), someOf(codes, isOutage))
  })
  const refused = (await refusedByCore()).map(({ hook, about, problem, error, file }) =>
    row(
      hook,
      about,
      problem ? `\`${problem}\`` : '',
      `\`${error.replaceAll('`', "'")}\``,
      `[${file.slice('refused/'.length)}](${folder}/${file})`,
    ),
  )
  return [
    warning,
    '# Errors of hooks',
    '',
    'A failed discovery is told by the condition `Discovered` of its ExtensionConfig (`NotDiscovered`), whose message begins with one of these words and a colon. They stay the',
    "same from release to release: search and alert by them. What comes after them is upstream's text. A call that fails is told by the condition that upstream has for it (of a",
    'Cluster `TopologyReconciled`), by an entry of `capstan hooks waiting`, and by `capstan_runtime_sdk_handler_requests_total`, whose label `outcome` is the code.',
    '',
    row('word', 'meaning', 'what to do', 'code', '`failurePolicy: Ignore` ignores it', 'counts for the breaker'),
    row('---', '---', '---', '---', '---', '---'),
    ...problems,
    '',
    'A discovery that fails keeps the handlers that the last good one found. After a call that failed core calls again, later and later.',
    '',
    '## Answers that core refuses',
    '',
    'Each is a file, with the request that it answers beside it: for tests of extensions in any language. Before the error comes which hook and which handler it was.',
    '',
    row('hook', 'what is wrong', 'word', 'error', 'file'),
    row('---', '---', '---', '---', '---'),
    ...refused,
    '',
  ].join('\n')
}

const folder = '../../packages/extension/fixtures'

const someOf = (codes: readonly HookFailureCode[], is: (failure: { code: HookFailureCode }) => boolean): string =>
  codes.some((code) => is({ code })) ? 'yes' : 'no'

const row = (...cells: string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
