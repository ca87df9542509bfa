/**
 * Runs all checks of the checkout except its tests: format, lock file, prose, types, lint, generated files, documentation site, unused
 * code, licences, advisories. With `--mutants [COMMIT]` also tests at most 60 mutants of the lines changed since COMMIT (default: main).
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))

const checks: readonly { name: string; command: readonly string[]; help: string }[] = [
  { name: 'format', command: ['biome', 'format', '.'], help: 'npm run fix' },
  {
    name: 'lock file',
    command: ['npm', 'ci', '--dry-run', '--ignore-scripts', '--offline'],
    help: 'npm install, and commit package-lock.json',
  },
  { name: 'prose', command: ['node', 'scripts/prose.ts'], help: 'rewrite the sentences as docs/style/english.md says' },
  { name: 'types', command: ['tsc', '-p', '.'], help: 'correct the types' },
  { name: 'lint', command: ['oxlint', '--deny-warnings'], help: 'npm run fix corrects some findings' },
  { name: 'generated files', command: ['node', 'scripts/gen.ts', '--check'], help: 'npm run gen, and commit the changed files' },
  {
    name: 'docs site',
    command: ['node', 'scripts/docs.ts'],
    help: 'correct the broken links, and link to the pages that cannot be reached',
  },
  {
    name: 'unused code',
    command: ['knip', '--no-progress'],
    help: 'delete the code, or only its export if its own file uses it',
  },
  {
    name: 'licences',
    command: ['node', 'scripts/licences.ts'],
    help: 'replace the named package, or allow its licence in scripts/licences.ts',
  },
  {
    name: 'advisories',
    command: ['node', 'scripts/audit.ts'],
    help: 'npm audit shows whether a fix is available',
  },
]

const { values, positionals } = parseArgs({ allowPositionals: true, options: { mutants: { type: 'boolean', default: false } } })
const mutationTests = {
  name: 'mutants',
  command: ['node', 'scripts/mutants.ts', '--since', positionals[0] ?? 'main', '--reuse', '--least', '85'],
  help: 'write tests that fail for the surviving mutants: docs/reference/testing.md',
}

let failed = 0
for (const { name, command, help } of values.mutants ? [...checks, mutationTests] : checks) {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), { cwd: root, encoding: 'utf8' })
  const ok = status === 0
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  const notChecked = stdout.split('\n').find((line) => line.startsWith('NOT CHECKED'))
  if (notChecked) console.log(`     ${notChecked}`)
  if (!ok) {
    failed++
    console.log(`${stdout}${stderr}\n  to fix: ${help}\n`)
  }
}
process.exitCode = failed === 0 ? 0 : 1
