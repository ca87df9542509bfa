import { expect, test } from 'vitest'
import { evaluateAudit } from './audit.ts'

const report = (severity: string) =>
  JSON.stringify({ auditReportVersion: 2, vulnerabilities: { left: { severity, range: '<2' } } })

test.each([
  ['{"auditReportVersion":2,"vulnerabilities":{}}', 'clean', []],
  [report('moderate'), 'clean', []],
  [report('high'), 'vulnerable', ['left <2: high (npm audit)']],
  [report('critical'), 'vulnerable', ['left <2: critical (npm audit)']],
  ['{"message":"405 Method Not Allowed","error":{"summary":"","detail":""}}', 'unknown', ['405 Method Not Allowed']],
  ['{"error":{"code":"EAI_AGAIN","summary":"request failed\\nmore"}}', 'unknown', ['request failed']],
  ['', 'unknown', ['npm audit printed no report']],
])('evaluateAudit evaluates the output %j as %s', (text, kind, lines) => {
  expect(evaluateAudit(text)).toEqual({ kind, lines })
})
