/**
 * Runs the tests `*.process.test.ts`. Almost all of them use Capstan's programs as a user does: they install and build projects of
 * `capstan new`, run `capstan dev`, and execute the commands of the guides. Capstan's packages come from a registry on loopback,
 * upstream's release from a folder.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { buildPackages } from '../scripts/build.ts'
import { packPackages } from '../scripts/packages/pack.ts'
import { Checks } from './processes/capstan-process.ts'
import { upstreamRepository } from './clusterctl.ts'
import { installTools, publish, type Registry, startRegistry, writeNpmrc } from './processes/registry.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'
import { toolPaths } from './shared/tools.ts'

export const programsSuite: Suite = {
  shows: 'projects created by capstan new, capstan dev, and the commands of the guides; --only install.process runs one file',
  ci: true,
  tools: ['kubectl', 'clusterctl'],
  prepare: async () => void (await installTools()),
  async run({ only = '' } = {}) {
    const checks = new Checks()
    const programs = await toolPaths('kubectl', 'clusterctl')
    const PATH = [...programs.map((path) => dirname(path)), process.env.PATH].join(delimiter)
    const folder = mkdtempSync(join(tmpdir(), 'capstan-programs-'))
    let registry: Registry | undefined
    try {
      registry = await startRegistry(await installTools(), join(folder, 'registry'))
      const npmrc = join(folder, 'npmrc')
      writeNpmrc(npmrc, registry)
      const built = join(folder, 'built')
      await buildPackages(built)
      const env = { ...process.env, NPM_CONFIG_USERCONFIG: npmrc }
      await publish(packPackages(built, join(folder, 'tarballs')), { cwd: folder, env })
      const upstream = join(folder, 'upstream')
      mkdirSync(upstream)
      const guideEnv = { CAPSTAN_NPMRC: npmrc, CAPSTAN_UPSTREAM: await upstreamRepository(upstream) }
      const testFiles = only.split(',').filter((part) => part !== '')
      for (const [name, status] of await runTests(testFiles, { CAPSTAN_PROGRAMS: '1', ...guideEnv, PATH }))
        checks.check(name, status === 'passed', status)
    } finally {
      await registry?.stop()
      rmSync(folder, { recursive: true, force: true })
    }
    return checks
  },
}
