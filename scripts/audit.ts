/**
 * Runs `npm audit` on the packages that users install. Fails for a known vulnerability of severity high or critical. If npm prints no
 * report, for example because the registry does not respond or does not serve advisories, prints the reason and succeeds, so that a change
 * can be checked without a network.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string; readonly range: string }>>
  readonly message?: string
  readonly error?: { readonly summary?: string; readonly code?: string }
}

export interface AuditResult {
  /** `vulnerable`: there is a vulnerability of severity high or critical; `unknown`: the output of `npm audit` is not a report. */
  readonly kind: 'clean' | 'vulnerable' | 'unknown'
  /** The vulnerabilities of severity high or critical, or the reason for `unknown`. */
  readonly lines: readonly string[]
}

/** Evaluates the output of `npm audit --json`. */
export function evaluateAudit(text: string): AuditResult {
  const report = parse(text)
  if (report?.vulnerabilities === undefined) {
    const reason = report?.error?.summary || report?.message || report?.error?.code || 'npm audit printed no report'
    return { kind: 'unknown', lines: [reason.trim().split('\n')[0]!] }
  }
  const severe = Object.entries(report.vulnerabilities).filter(
    ([, { severity }]) => severity === 'high' || severity === 'critical',
  )
  return {
    kind: severe.length === 0 ? 'clean' : 'vulnerable',
    lines: severe.map(([name, { severity, range }]) => `${name} ${range}: ${severity} (npm audit)`),
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
  const { kind, lines } = evaluateAudit(stdout)
  if (kind === 'unknown') console.log(`NOT CHECKED against advisories: ${lines.join('; ')}`)
  else if (kind === 'vulnerable') for (const line of lines) console.error(line)
  process.exitCode = kind === 'vulnerable' ? 1 : 0
}
