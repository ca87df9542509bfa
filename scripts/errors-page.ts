/** Generates docs/reference/errors.md: the words with which errors of hooks begin, and core's messages for rejected responses. */
import { type HookFailureCode, hookProblems, isIgnorable, isOutage } from '@capstan/extension'
import { warning } from './gen-pages.ts'
import { rejectedByCore } from './hook-fixtures.ts'

export async function errorsPage(): Promise<string> {
  const problems = Object.entries(hookProblems).map(([problem, { codes, meaning, remedy }]) => {
    const labels = codes.map((code) => `\`${code}\``).join(', ')
    return row(`\`${problem}\``, meaning, remedy, labels, yesIfAny(codes, isIgnorable), yesIfAny(codes, isOutage))
  })
  const rejected = (await rejectedByCore()).map(({ hook, about, problem, error, file }) =>
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
    'The condition `Discovered` of an ExtensionConfig reports a failed discovery (`NotDiscovered`). Its message begins with one of these words and a colon. The words stay the',
    "same from release to release: use them in searches and alerts. Upstream's text follows the word. A failed call is reported in the condition that upstream uses for",
    'it (`TopologyReconciled` of a Cluster), by a line of `capstan hooks waiting`, and by the metric `capstan_runtime_sdk_handler_requests_total`, whose label `outcome` is the code.',
    '',
    row('word', 'meaning', 'remedy', 'code', '`failurePolicy: Ignore` applies', 'counts for the circuit breaker'),
    row('---', '---', '---', '---', '---', '---'),
    ...problems,
    '',
    'After a failed discovery the handlers of the last successful one stay registered. Core retries a failed call with growing delays.',
    '',
    '## Responses that core rejects',
    '',
    "Each response is a file in the folder `refused`, and its request a file in `requests`, for tests of extensions in any language. Core's message names the hook and the handler before the error.",
    '',
    row('hook', 'response', 'word', 'error', 'file'),
    row('---', '---', '---', '---', '---'),
    ...rejected,
    '',
  ].join('\n')
}

const folder = '../../packages/extension/fixtures'

const yesIfAny = (codes: readonly HookFailureCode[], is: (failure: { code: HookFailureCode }) => boolean): string =>
  codes.some((code) => is({ code })) ? 'yes' : 'no'

const row = (...cells: string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
