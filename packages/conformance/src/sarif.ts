/** Formats findings as SARIF 2.1.0, which code hosts display next to the lines of a change. */
import { metadataOf } from './manifests.ts'
import type { Finding, LintReport } from './lint.ts'
import { type Level, linkOf } from './rule.ts'

const sarifLevels: Readonly<Record<Level, 'error' | 'warning' | 'note'>> = { MUST: 'error', SHOULD: 'warning', MAY: 'note' }

/** Returns a SARIF log with one run. `version`: version of the program. */
export function sarif({ checked, findings }: LintReport, version: string): object {
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'capstan lint',
            version,
            rules: checked.map((rule) => ({
              id: rule.id,
              shortDescription: { text: rule.sentence },
              help: { text: rule.why },
              helpUri: linkOf(rule),
              defaultConfiguration: { level: sarifLevels[rule.level] },
            })),
          },
        },
        results: findings.map((finding) => result(finding)),
      },
    ],
  }
}

function result({ rule, manifest, path, message, edit }: Finding): object {
  return {
    ruleId: rule.id,
    level: sarifLevels[rule.level],
    message: { text: `${message}. ${edit}` },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: manifest.file.split(/[\\/]/).map(encodeURIComponent).join('/') },
          region: { startLine: manifest.line },
        },
        logicalLocations: [{ name: path, fullyQualifiedName: `${metadataOf(manifest).name}: ${path}` }],
      },
    ],
  }
}
