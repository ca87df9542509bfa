/** Generates docs/reference/errors.md: the problems of failed calls of hooks, and core's messages for rejected responses. */
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
    'The condition `Discovered` of an ExtensionConfig reports a failed discovery (`NotDiscovered`). Its message begins with a word of the first table and a colon. The error follows,',
    'with the text of upstream if upstream has this error. The words stay the same from release to release: use them in searches and alerts.',
    '',
    'Other failed calls are reported in the conditions that upstream uses for them, such as `TopologyReconciled` of a Cluster. `capstan hooks waiting` lists failed lifecycle hooks of',
    'Clusters and failed calls of GenerateUpgradePlan. The metric `capstan_runtime_sdk_handler_requests_total` counts the calls that were attempted and not aborted. Its label `outcome` is the code if',
    'no response could be decoded. Otherwise it is the `status` of the response: `Success`, `Failure`, or `Unknown` for any other status.',
    '',
    row('word', 'meaning', 'remedy', 'code', '`failurePolicy: Ignore` applies', 'counts for the circuit breaker'),
    row('---', '---', '---', '---', '---', '---'),
    ...problems,
    '',
    'After a failed discovery the handlers of the last successful one stay registered. Core retries a failed call with growing delays, unless the failure policy ignores the failure.',
    '',
    '## Responses that core rejects',
    '',
    'Each response is a file in `packages/extension/fixtures/refused`, and its request a file in `packages/extension/fixtures/requests`, for tests of extensions in any language. The',
    "column `error` has the end of core's message: the first prefixes, such as one that names the patch, are left out. Errors of later checks, such as those of an upgrade plan or a",
    'patch, have no word.',
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
