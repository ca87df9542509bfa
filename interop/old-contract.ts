/**
 * Runs environment tests of core and the local provider with providers of contract v1beta1: the provider kinds declare that contract. The
 * tests and the providers use the fields of contract v1beta2, and their requests except JSON patches are converted
 * (`packages/testing/src/contract-twin.ts`).
 * `npm test` runs the same tests with contract v1beta2.
 */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Environment tests of the local provider, except `contract.env.test.ts`, which itself tests both contract versions. */
const localFiles = ['local', 'controlplane/in-place', 'controlplane/remediation', 'infrastructure/machinepool/machinepool'].map(
  (name) => `packages/local/src/${name}.env.test.ts`,
)

/** Returns the test files to run. Tests of ExtensionConfigs are left out, because they use no provider. */
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
    // In a test that creates its own API server no request is converted: the test would run with contract v1beta2, and pass.
    const filesWithOwnServer = chosen.filter((file) => readFileSync(`${root}${file}`, 'utf8').includes('createApiServer('))
    checks.check('no file creates its own API server', filesWithOwnServer.length === 0, filesWithOwnServer)
    const statuses = await runTests(chosen, { CAPSTAN_TEST_CONTRACT: 'v1beta1' })
    for (const [name, status] of statuses) checks.check(name, status === 'passed', status)
    checks.check('more than 100 tests have a result', statuses.size > 100, statuses.size)
    return checks
  },
}
