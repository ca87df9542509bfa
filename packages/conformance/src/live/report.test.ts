import { expect, test } from 'vitest'
import { rules } from '../rules/index.ts'
import type { ConformReport, RuleResult } from './conform.ts'
import { formatReport } from './report.ts'
import type { Verdict } from './verdict.ts'

const at = Date.UTC(2026, 0, 1)

const result = (id: string, verdict: Verdict, found = 'nothing'): RuleResult => ({
  rule: rules.find((rule) => rule.id === id)!,
  verdict,
  reason: verdict.startsWith('not') ? 'because' : undefined,
  observations: [
    { holds: false, object: 'FooMachine a/b', field: 'spec.providerID', at, expected: 'a string', found },
    { holds: true, object: 'FooMachine a/c', field: 'spec.providerID', at, expected: 'a string', found: 'foo:///c' },
  ],
})

const report: ConformReport = {
  target: [{ contract: 'InfraMachine', kind: 'FooMachine.v1.foo.dev', contractVersion: 'v1beta2' }],
  startedAt: at,
  endedAt: at + 1500,
  results: [
    result('infra-machine.provider-id', 'fail', '<b>&"\u0000\ud800 😀'),
    result('infra-machine.pausing', 'warn'),
    result('crd-name', 'pass'),
    result('infra-machine.in-place', 'not testable here'),
    result('control-plane.version', 'not applicable'),
  ],
  scenarios: [{ name: 'life', milliseconds: 1500, stopped: 'waited 3 s' }],
  leftovers: ['FooMachine a/b'],
}

test('the text has a line for each applicable rule, and evidence for violated rules', () => {
  const text = formatReport(report, 'text', '1.0')
  expect(text).toContain('fail               MUST    infra-machine.provider-id\n')
  expect(text).toMatch(/^warn +SHOULD +infra-machine\.pausing$/m)
  expect(text).toMatch(/^pass +MUST +crd-name$/m)
  expect(text).toContain('not testable here  SHOULD  infra-machine.in-place: because')
  expect(text).not.toContain('control-plane.version')
  expect(text).toContain(
    '  object    FooMachine a/b\n  field     spec.providerID\n  time      2026-01-01T00:00:00.000Z\n  expected  a string',
  )
  expect(text).not.toContain('foo:///c')
  expect(text).toContain('Scenario life stopped: waited 3 s\nFooMachine a/b kept its finalizers; conform removed them.\n')
  expect(text).toMatch(/1 pass, 1 fail, 1 warn, 1 not testable here, 1 not applicable\.$/)
})

test('JSON has all evidence', () => {
  expect(JSON.parse(formatReport(report, 'json', '1.0'))).toMatchObject({
    version: '1.0',
    counts: { pass: 1, fail: 1, warn: 1 },
    results: [
      { rule: 'infra-machine.provider-id', verdict: 'fail', evidence: [{ holds: false, at: '2026-01-01T00:00:00.000Z' }, {}] },
      {},
      {},
      {},
      {},
    ],
  })
})

test('JUnit counts failures and skipped rules; a warning is a passed test with its explanation as output', () => {
  const xml = formatReport(report, 'junit', '1.0')
  expect(xml).toContain('<testsuite name="capstan conform" tests="5" failures="1" skipped="2" time="1.500"')
  expect(xml.match(/<testcase /g)).toHaveLength(5)
  expect(xml).toContain('<skipped message="not testable here: because"/>')
  expect(xml).toMatch(/name="infra-machine.pausing">\s+<system-out>warn/)
})

test('the HTML page has a line for each stopped scenario and for each object that kept its finalizers', () => {
  const page = formatReport(report, 'html', '1.0')
  expect(page).toContain('>Scenario life stopped: waited 3 s<')
  expect(page).toContain('>FooMachine a/b kept its finalizers; conform removed them.<')
})

test('XML and HTML escape text of providers and replace characters that XML does not allow', () => {
  for (const format of ['junit', 'html'] as const) {
    const text = formatReport(report, format, '1.0')
    expect(text).toContain('&lt;b&gt;&amp;&quot;?? 😀')
    expect(text).not.toContain('<b>')
  }
})
