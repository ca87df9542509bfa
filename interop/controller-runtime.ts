/**
 * Runs tests of controller-runtime, unchanged, on Capstan: `KUBEBUILDER_ASSETS` is the folder of launchers (programs named etcd and
 * kube-apiserver) that `capstan envtest` writes.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, cp, readdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Checks } from './processes/capstan-process.ts'
import { finished, go } from './envtest.ts'
import type { Outcome, Suite } from './shared/suite.ts'
import { toolPaths } from './shared/tools.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const module = 'sigs.k8s.io/controller-runtime'
const version = 'v0.24.1'
/** Packages of controller-runtime that are tested. Their tests start an API server. */
const packages = ['client', 'cache', 'envtest', 'manager', 'builder', 'webhook', 'controller'] as const

export const controllerRuntimeSuite: Suite = {
  shows: `tests of controller-runtime ${version}, with launchers of capstan envtest`,
  ci: false,
  tools: ['etcd', 'kubectl'],
  prepare: compile,
  run,
}

/** Returns the folder for a writable copy of the module, beside the folders of the other tools. */
const sources = async (): Promise<string> => join(dirname((await toolPaths('etcd'))[0]), '..', `controller-runtime-${version}`)
const testProgram = (folder: string, name: string): string => join(folder, `${name}.test`)

async function compile(): Promise<void> {
  const folder = await sources()
  if (!existsSync(join(folder, 'go.mod'))) {
    const { lines } = await go(join(root, 'interop/go'), 'mod', 'download', '-json', `${module}@${version}`)
    const { Dir } = JSON.parse(lines.join('')) as { Dir: string }
    await cp(Dir, folder, { recursive: true })
    for (const entry of await readdir(folder, { recursive: true })) await chmod(join(folder, entry), 0o755)
    // Uses the same release of Kubernetes' modules as `interop/go`.
    const file = join(folder, 'go.mod')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/^(\tk8s\.io\/\S+ v0\.36)\.0$/gm, '$1.3'))
  }
  const parallel = String(availableParallelism())
  for (const name of packages)
    await go(folder, 'test', '-mod=mod', '-trimpath', '-p', parallel, '-c', '-o', testProgram(folder, name), `./pkg/${name}`)
}

async function run(): Promise<Outcome> {
  const checks = new Checks()
  const folder = await sources()
  const assets = join(folder, 'assets')
  const capstan = join(root, 'packages/cli/bin/capstan.js')
  const env = { ...process.env, PATH: `${dirname((await toolPaths('kubectl'))[0])}:${process.env.PATH}` }
  await finished(spawn(process.execPath, [capstan, 'envtest', assets], { env, stdio: ['ignore', 'pipe', 'inherit'] }))
  for (const name of packages) {
    const cwd = join(folder, 'pkg', name)
    const child = spawn(testProgram(folder, name), ['--ginkgo.no-color'], { cwd, env: { ...env, KUBEBUILDER_ASSETS: assets } })
    const { code, lines } = await finished(child)
    console.log(`${name}: ${lines.find((line) => line.startsWith('Ran ')) ?? 'did not run'}`)
    checks.check(`the tests of ${name} pass`, code === 0, code === 0 ? undefined : lines.slice(-30))
  }
  return checks
}
