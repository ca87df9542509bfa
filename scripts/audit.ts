/**
 * Runs `npm audit` on the packages that users install. Fails for a known vulnerability of severity high or critical. If the
 * registry does not respond or has no advisories, prints that and succeeds, so that a change can be checked without a network.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string; readonly range: string }>>
  readonly message?: string
  readonly error?: { readonly summary?: string; readonly code?: string }
}

/** Evaluates the output of `npm audit --json`: `weak` for a vulnerability of severity high or critical, `unknown` if it is no report. */
export function judgeAudit(text: string): { readonly kind: 'clean' | 'weak' | 'unknown'; readonly lines: readonly string[] } {
  const report = parse(text)
  if (report?.vulnerabilities === undefined) {
    const why = report?.error?.summary || report?.message || report?.error?.code || 'npm audit gave no report'
    return { kind: 'unknown', lines: [why.trim().split('\n')[0]!] }
  }
  const weak = Object.entries(report.vulnerabilities).filter(([, { severity }]) => severity === 'high' || severity === 'critical')
  return {
    kind: weak.length === 0 ? 'clean' : 'weak',
    lines: weak.map(([name, { severity, range }]) => `${name} ${range}: ${severity} (npm audit)`),
  }
}

function parse(text: string): Report | undefined {
  try {
    return JSON.parse(text) as Report
  } catch {
    return undefined
  }
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const flags = ['--omit=dev', '--json', '--fetch-retries=0', '--fetch-timeout=10000']
  const { stdout } = spawnSync('npm', ['audit', ...flags], { cwd: root, encoding: 'utf8', timeout: 20_000 })
  const { kind, lines } = judgeAudit(stdout)
  if (kind === 'unknown') console.log(`NOT CHECKED against advisories: ${lines.join('; ')}`)
  else if (kind === 'weak') for (const line of lines) console.error(line)
  process.exitCode = kind === 'weak' ? 1 : 0
}
