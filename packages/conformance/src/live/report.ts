/** Formats a report of `capstan conform` as text, JSON, JUnit XML or HTML. */
import { linkOf } from '../rule.ts'
import type { ConformReport, RuleResult, TestedKind } from './conform.ts'
import { type Observation, type Verdict, Verdicts } from './verdict.ts'

export const ReportFormats = ['text', 'json', 'junit', 'html'] as const
export type ReportFormat = (typeof ReportFormats)[number]

/** Returns the report in a format. `version`: version of Capstan, for JSON and HTML. */
export function formatReport(report: ConformReport, format: ReportFormat, version: string): string {
  switch (format) {
    case 'text':
      return text(report)
    case 'json':
      return JSON.stringify(json(report, version), undefined, 2)
    case 'junit':
      return junit(report)
    case 'html':
      return html(report, version)
  }
}

/** Returns the number of rules by verdict. */
export const countsOf = ({ results }: ConformReport): Readonly<Record<Verdict, number>> =>
  Object.fromEntries(
    Verdicts.map((verdict) => [verdict, results.filter((result) => result.verdict === verdict).length]),
  ) as Record<Verdict, number>

const summary = (report: ConformReport): string => {
  const counts = countsOf(report)
  const order: readonly Verdict[] = ['pass', 'fail', 'warn', 'not testable here', 'not applicable']
  return order.map((verdict) => `${counts[verdict]} ${verdict}`).join(', ')
}

const instant = (ms: number): string => new Date(ms).toISOString()

/**
 * Returns at most `limit` observations that explain a verdict: failed observations if there are any, otherwise passed observations.
 */
const evidenceOf = ({ observations }: RuleResult, limit: number): readonly Observation[] => {
  const failed = observations.filter(({ holds }) => !holds)
  return (failed.length > 0 ? failed : observations).slice(0, limit)
}

const maxEvidence = 5

const describeKind = ({ contract, kind, contractVersion }: TestedKind): string =>
  `${contract}: ${kind}${contractVersion === undefined ? '' : `, contract ${contractVersion}`}`

function text(report: ConformReport): string {
  const { target, results } = report
  const violations = results.filter(({ verdict }) => verdict === 'fail' || verdict === 'warn')
  const width = 'not testable here'.length
  return [
    ...target.map(describeKind),
    '',
    ...results
      .filter(({ verdict }) => verdict !== 'not applicable')
      .map(({ verdict, rule, reason }) =>
        `${verdict.padEnd(width)}  ${rule.level.padEnd(6)}  ${rule.id}${reason === undefined ? '' : `: ${reason}`}`.trimEnd(),
      ),
    '',
    ...violations.flatMap((result) => [...explanation(result), '']),
    ...failuresOf(report),
    `${summary(report)}.`,
  ].join('\n')
}

/** Returns a line for each scenario that ended early, and for each object whose finalizers conform had to remove. */
const failuresOf = ({ scenarios, leftovers }: ConformReport): string[] => [
  ...scenarios.filter(({ stopped }) => stopped !== undefined).map(({ name, stopped }) => `Scenario ${name} stopped: ${stopped}`),
  ...leftovers.map((name) => `${name} kept its finalizers; conform removed them.`),
]

function explanation(result: RuleResult): string[] {
  const { rule, verdict } = result
  return [
    `${verdict} ${rule.id}: ${rule.sentence}`,
    ...evidenceOf(result, maxEvidence).flatMap(({ object, field, at, expected, found }) => [
      `  object    ${object}`,
      `  field     ${field}`,
      `  time      ${instant(at)}`,
      `  expected  ${expected}`,
      `  found     ${found}`,
    ]),
    `  why       ${rule.why}`,
    `  rule      ${linkOf(rule)}`,
  ]
}

const json = (report: ConformReport, version: string): object => ({
  version,
  target: report.target,
  startedAt: instant(report.startedAt),
  endedAt: instant(report.endedAt),
  counts: countsOf(report),
  results: report.results.map(({ rule, verdict, reason, observations }) => ({
    rule: rule.id,
    level: rule.level,
    verdict,
    ...(reason === undefined ? {} : { reason }),
    sentence: rule.sentence,
    link: linkOf(rule),
    evidence: observations.map(({ at, ...rest }) => ({ ...rest, at: instant(at) })),
  })),
  scenarios: report.scenarios,
  leftovers: report.leftovers,
})

function junit(report: ConformReport): string {
  const counts = countsOf(report)
  const seconds = ((report.endedAt - report.startedAt) / 1000).toFixed(3)
  const skipped = counts['not applicable'] + counts['not testable here']
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="${report.results.length}" failures="${counts.fail}" skipped="${skipped}" time="${seconds}">`,
    `  <testsuite name="capstan conform" tests="${report.results.length}" failures="${counts.fail}" skipped="${skipped}" time="${seconds}" timestamp="${instant(report.startedAt)}">`,
    ...report.results.flatMap((result) => testcase(result).map((line) => `    ${line}`)),
    '  </testsuite>',
    '</testsuites>',
  ].join('\n')
}

/** Formats a result for JUnit, which has no warnings: a violated rule of level SHOULD or MAY passes, with the explanation as output. */
function testcase(result: RuleResult): string[] {
  const { rule, verdict, reason } = result
  const open = `<testcase classname="${rule.pages[0]}" name="${escape(rule.id)}"`
  const details = escape(explanation(result).join('\n'))
  switch (verdict) {
    case 'pass':
      return [`${open}/>`]
    case 'fail':
      return [`${open}>`, `  <failure message="${escape(rule.sentence)}">${details}</failure>`, '</testcase>']
    case 'warn':
      return [`${open}>`, `  <system-out>${details}</system-out>`, '</testcase>']
    case 'not testable here':
    case 'not applicable':
      return [`${open}>`, `  <skipped message="${escape(`${verdict}: ${reason ?? ''}`)}"/>`, '</testcase>']
  }
}

// XML forbids unpaired surrogates, U+FFFE, U+FFFF, and characters below U+0020 except tab, line feed and carriage return, even when they
// are escaped.
const escape = (value: string): string =>
  value
    .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '?')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c1f23;background:#fff}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #dde;vertical-align:top}
.fail{color:#b3001b}.warn{color:#8a5a00}.pass{color:#0a6b2d}.skip{color:#5a6270}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}summary{cursor:pointer}dl{margin:.3rem 0 .8rem}dd{margin:0 0 0 1rem}
@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#15181c}td,th{border-color:#333a44}.fail{color:#ff8a94}.warn{color:#f0c267}.pass{color:#7ad69b}.skip{color:#9aa3af}a{color:#8ab8ff}}`

const classOf = (verdict: Verdict): string => (verdict.startsWith('not ') ? 'skip' : verdict)

/** Returns a page that needs no other file: styles are inline, and there are no scripts. */
function html(report: ConformReport, version: string): string {
  const rows = report.results.map((result) => row(result))
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Contract report</title><meta name="viewport" content="width=device-width"><style>${style}</style></head>
<body>
<h1>Contract report</h1>
<p>${report.target.map((kind) => escape(describeKind(kind))).join('<br>')}</p>
<p>${escape(summary(report))}. Capstan ${escape(version)}, ${instant(report.startedAt)}.</p>
${failuresOf(report)
  .map((text) => `<p class="fail">${escape(text)}</p>`)
  .join('\n')}
<table>
<thead><tr><th scope="col">Verdict</th><th scope="col">Level</th><th scope="col">Rule</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>
</body>
</html>`
}

function row(result: RuleResult): string {
  const { rule, verdict, reason } = result
  const evidence = evidenceOf(result, maxEvidence)
    .map(
      ({ object, field, at, expected, found }) =>
        `<dl><dt><code>${escape(object)}</code> <code>${escape(field)}</code>, ${instant(at)}</dt><dd>expected ${escape(expected)}</dd><dd>found <code>${escape(found)}</code></dd></dl>`,
    )
    .join('')
  const open = verdict === 'fail' || verdict === 'warn' ? ' open' : ''
  return `<tr><td class="${classOf(verdict)}">${verdict}</td><td>${rule.level}</td><td><details${open}><summary><code>${escape(rule.id)}</code> ${escape(rule.sentence)}</summary>${reason === undefined ? '' : `<p>${escape(reason)}</p>`}${evidence}<p>${escape(rule.why)} <a href="${escape(linkOf(rule))}">Rule</a></p></details></td></tr>`
}
