/**
 * Runs environment tests of core and the local provider with providers of contract v1beta1: the provider kinds declare that contract, and
 * a wrapper of each test's client translates fields of contract v1beta2 (`packages/testing/src/contract-twin.ts`). `npm test` runs the
 * same tests with contract v1beta2.
 */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Environment tests of the local provider that do not run for both contracts in `npm test`. */
const localFiles = ['local', 'controlplane/in-place', 'controlplane/remediation', 'infrastructure/machinepool/machinepool'].map(
  (name) => `packages/local/src/${name}.env.test.ts`,
)

/** Returns the tests to run. Those of ExtensionConfigs are left out, because they use no provider. */
const files = () =>
  globSync('packages/core/src/**/*.env.test.ts', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !file.startsWith('packages/core/src/extensionconfig/'))
    .concat(localFiles)
    .toSorted()

export const oldContractSuite: Suite = {
  shows: 'environment tests of core and the local provider pass with providers of contract v1beta1',
  ci: true,
  tools: [],
  async run() {
    const checks = new Checks()
    const chosen = files()
    // A test that creates an API server without the harness would run, and pass, with contract v1beta2.
    const filesWithOwnServer = chosen.filter((file) => readFileSync(`${root}${file}`, 'utf8').includes('createApiServer('))
    checks.check('every file uses the harness of @capstan/testing', filesWithOwnServer.length === 0, filesWithOwnServer)
    const statuses = await runTests(chosen, { CAPSTAN_TEST_CONTRACT: 'v1beta1' })
    for (const [name, status] of statuses) checks.check(name, status === 'passed', status)
    checks.check('more than 100 tests have a result', statuses.size > 100, statuses.size)
    return checks
  },
}
