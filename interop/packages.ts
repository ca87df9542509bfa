/**
 * Publishes every package to a registry on loopback (verdaccio), and installs the packages as a user does, in empty folders outside of the
 * checkout: in the project of a controller, as a global command, in a new extension project, and with npx.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { buildPackages } from '../scripts/build.ts'
import { packPackages, type Tarball } from '../scripts/packages/pack.ts'
import { sourcePackages } from '../scripts/packages/manifests.ts'
import { Checks } from './processes/capstan-process.ts'
import {
  installTools,
  killAndWait,
  oldestNode,
  publish,
  type Registry,
  runCommand,
  startRegistry,
  type Tools,
  writeNpmrc,
} from './processes/registry.ts'
import { CannotRun, type Outcome, type Suite } from './shared/suite.ts'
import { toolPaths } from './shared/tools.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const fixtures = join(root, 'interop/packages')

export const packagesSuite: Suite = {
  shows:
    'packages from a registry: in a third-party controller, in a new extension, as a globally installed command, and with npx',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kubectl'],
  prepare: async () => void (await installTools()),
  run,
}

/** Maximum size of the installed command in bytes, without Node. */
const MaxInstalled = 25_000_000

async function run(): Promise<Outcome> {
  const tools = await installTools()
  const checks = new Checks()
  const folder = mkdtempSync(join(tmpdir(), 'capstan-packages-'))
  let registry: Registry | undefined
  try {
    const built = join(folder, 'built')
    await buildPackages(built)
    const tarballs = packPackages(built, join(folder, 'tarballs'))
    for (const tarball of tarballs) await lint(checks, tools, tarball)
    registry = await startRegistry(tools, join(folder, 'registry'))
    const user = new ExternalUser(folder, registry)
    await publish(tarballs, { cwd: folder, env: user.env })
    await testController(checks, user, tools)
    await testGlobalInstall(checks, user)
    await testNewExtension(checks, user)
    await testNpx(checks, user)
  } finally {
    await registry?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return checks
}

/** Runs publint and attw, which must not report a problem. */
async function lint(checks: Checks, tools: Tools, { name, path }: Tarball): Promise<void> {
  const lints = [
    ['publint', '--strict', path],
    ['attw', '--profile', 'esm-only', '--format', 'ascii', path],
  ] as const
  const runs = lints.map(async ([tool, ...args]) => {
    const { code, text } = await runCommand(process.execPath, [join(tools.bin, tool), ...args], {
      cwd: tools.folder,
      env: process.env,
    })
    checks.check(`${name}: ${tool} reports nothing`, code === 0, text)
  })
  await Promise.all(runs)
}

/**
 * A user without the checkout. Commands run in a folder outside of the checkout unless `cwd` names another one. Their environment lacks
 * KUBECONFIG and the variables of npm, Node (except `NODE_EXTRA_CA_CERTS`), vitest and Capstan. PATH begins with the folder of the running
 * Node, and contains no other `node_modules` folder.
 */
class ExternalUser {
  readonly #folder: string
  readonly env: NodeJS.ProcessEnv

  constructor(folder: string, registry: Registry) {
    this.#folder = join(folder, 'user')
    mkdirSync(this.#folder)
    const npmrc = join(this.#folder, 'npmrc')
    writeNpmrc(npmrc, registry)
    const variables = Object.entries(process.env).filter(
      ([name]) => !/^npm_|^NODE_(?!EXTRA_CA_CERTS)|^VITEST|^KUBECONFIG$|^CAPSTAN_/i.test(name),
    )
    const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'))
    this.env = {
      ...Object.fromEntries(variables),
      PATH: [dirname(process.execPath), ...path].join(delimiter),
      NPM_CONFIG_USERCONFIG: npmrc,
      NPM_CONFIG_PREFER_OFFLINE: 'true',
    }
  }

  /** Creates an empty folder, and returns its path. */
  emptyFolder(name: string): string {
    const folder = join(this.#folder, name)
    mkdirSync(folder)
    return folder
  }

  /** Runs a command, and returns its output. @throws Error with the output if the command fails */
  async run(command: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Promise<string> {
    const { code, text } = await this.try(command, args, options)
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${text}`)
    return text
  }

  /** Runs a command, and returns its exit code and output. */
  try(
    command: string,
    args: readonly string[],
    { cwd = this.#folder, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
  ) {
    return runCommand(command, args, { cwd, env: { ...this.env, ...env } })
  }
}

/**
 * Compiles a controller with its own kind against the installed packages, and runs its test on a virtual clock, with the Node of this process
 * and with the oldest Node that Capstan's libraries support.
 */
async function testController(checks: Checks, user: ExternalUser, tools: Tools): Promise<void> {
  const folder = user.emptyFolder('greeter')
  cpSync(join(fixtures, 'controller'), folder, { recursive: true })
  await user.run('npm', ['install', '--save-dev', '@capstan/testing', `typescript@${tools.typescript}`], { cwd: folder })
  const compiled = await user.try('npm', ['run', '--silent', 'build'], { cwd: folder })
  checks.check('a controller compiles under NodeNext and strict without skipLibCheck', compiled.code === 0, compiled.text)
  for (const [name, node] of [
    ['this Node', process.execPath],
    [`the oldest Node that Capstan's libraries support (${oldestNode()})`, tools.oldestNodePath],
  ] as const) {
    const { code, text } = await user.try(node, ['--test', 'dist/greeter.test.js'], { cwd: folder })
    checks.check(`the test of the controller on a virtual clock passes on ${name}`, code === 0 && /pass 1\b/.test(text), text)
  }
}

/**
 * Installs the command with `npm install -g`. Checks its size, creates a demo cluster, compares the cold starts of the installed command and
 * the command of the checkout, and runs tests of a Go project on `capstan envtest`.
 */
async function testGlobalInstall(checks: Checks, user: ExternalUser): Promise<void> {
  const prefix = user.emptyFolder('global')
  await user.run('npm', ['install', '--global', '--prefix', prefix, '@capstan/cli'])
  const capstan = join(prefix, 'bin/capstan')
  const installed = sizeOf(join(prefix, 'lib/node_modules'))
  console.log(
    `packages: the installed command takes ${(installed / 1e6).toFixed(1)} MB without Node (at most ${MaxInstalled / 1e6})`,
  )
  checks.check(`the installed command has at most ${MaxInstalled / 1e6} MB`, installed <= MaxInstalled, installed)

  const cwd = user.emptyFolder('anywhere')
  const up = await user.try(capstan, ['up', '--demo', '--memory', '--port', '0', '--exit-when-ready'], { cwd })
  checks.check(
    'the cluster of capstan up --demo becomes Available',
    up.code === 0 && /Cluster default\/demo: Available/.test(up.text),
    up.text,
  )
  checks.check(
    'the commands that capstan up prints start with capstan, not with npx',
    /^ {2}capstan kubeconfig demo/m.test(up.text) && !up.text.includes('npx'),
    up.text,
  )

  await compareColdStarts(checks, user, capstan)

  const assets = join(user.emptyFolder('go'), 'envtest')
  const [, , kubectl] = await toolPaths('etcd', 'kube-apiserver', 'kubectl')
  const path = `${dirname(kubectl)}${delimiter}${user.env.PATH}`
  await user.run(capstan, ['envtest', assets], { env: { PATH: path } })
  const tests = join(dirname((await toolPaths('etcd'))[0]), '../interop-go.test')
  if (!existsSync(tests))
    throw new CannotRun(`the tests of the Go project are not compiled (${tests}): npm run interop -- --prepare`)
  const chosen =
    '^(TestWidgetLifecycle|TestAdmissionRejectsAndDefaults|TestVersionsAreConvertedByTheWebhook|TestInformersMissNothingAfterARestart)$'
  const go = await user.try(tests, ['-test.run', chosen, '-test.v'], {
    cwd: join(root, 'interop/go'),
    env: { KUBEBUILDER_ASSETS: assets, PATH: path },
  })
  const passed = [...go.text.matchAll(/^--- PASS: /gm)].length
  checks.check('tests of a Go project pass on capstan envtest', go.code === 0 && passed === 4, go.text)
}

/**
 * Measures the milliseconds until `capstan apiserver` is ready, alternately with the installed command and with the command of the
 * checkout. The installed command must not be slower by more than the noise of a busy machine.
 */
async function compareColdStarts(checks: Checks, user: ExternalUser, capstan: string): Promise<void> {
  const rounds = 5
  const times: Record<'installed' | 'checkout', number[]> = { installed: [], checkout: [] }
  const programs = { installed: capstan, checkout: join(root, 'packages/cli/bin/capstan.js') }
  // The first start of both is not measured, because it writes the compile cache.
  for (let round = -1; round < rounds; round++) {
    for (const name of ['installed', 'checkout'] as const) {
      const cwd = user.emptyFolder(`cold-${name}-${round + 1}`)
      const took = await timeUntilReady(user, programs[name], cwd)
      if (round >= 0) times[name].push(took)
    }
  }
  const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
  const [installed, checkout] = [median(times.installed), median(times.checkout)]
  console.log(
    `packages: capstan apiserver is ready after ${installed} ms installed, ${checkout} ms from the checkout (medians of ${rounds})`,
  )
  // Both run a bundle of the same sources, if the bundle of the checkout is up to date. A difference of up to 25 % plus 50 ms is noise of a
  // busy machine.
  checks.check('the installed command starts as fast as the checkout', installed <= checkout * 1.25 + 50, times)
}

/** Returns the milliseconds from the start of `capstan apiserver` until it is ready. */
async function timeUntilReady(user: ExternalUser, program: string, cwd: string): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, [program, 'apiserver', '--secure-port', '0', '--kubeconfig', join(cwd, 'kubeconfig')], {
    cwd,
    env: user.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    await waitForLine(child, /https:\/\//)
    return Math.round(performance.now() - started)
  } finally {
    await killAndWait(child)
  }
}

/** Writes a project with `capstan new extension`, installs its packages from the registry, and runs its tests, checks and build. */
async function testNewExtension(checks: Checks, user: ExternalUser): Promise<void> {
  const cwd = user.emptyFolder('extensions')
  await user.run('npx', ['--yes', '@capstan/cli', 'new', 'extension', 'quota', '--certificates', 'self-made'], { cwd })
  const project = join(cwd, 'quota')
  const files = readdirSync(project, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'))
  checks.check(
    'a new project contains no file: URL and no path of the checkout',
    !texts.some((text) => text.includes('file:/') || text.includes(root)),
  )
  await user.run('npm', ['install'], { cwd: project })
  for (const script of ['test', 'check', 'build']) {
    const { code, text } = await user.try('npm', ['run', '--silent', script], { cwd: project })
    checks.check(`npm run ${script} passes in a new project`, code === 0, text)
  }
  const hooks = await user.try('npx', ['@capstan/cli', 'hooks', 'check'], { cwd: project })
  checks.check('npx @capstan/cli hooks check passes in a new project', hooks.code === 0, hooks.text)
  checks.check('the build of a new project writes dist/main.js', existsSync(join(project, 'dist/main.js')))
}

/** Runs the command with npx in an empty folder. */
async function testNpx(checks: Checks, user: ExternalUser): Promise<void> {
  const cwd = user.emptyFolder('npx')
  const { version } = sourcePackages().find(({ folder }) => folder === 'cli')!.manifest
  const { code, text } = await user.try('npx', ['--yes', '@capstan/cli', 'version'], { cwd })
  checks.check('npx @capstan/cli runs in an empty folder', code === 0 && text.includes(`capstan: ${version}`), text)
}

/** Waits for a line of standard output that matches, and returns it. @throws Error if the program ends before it prints such a line */
function waitForLine(child: ChildProcess, pattern: RegExp): Promise<string> {
  let stderr = ''
  child.stderr!.on('data', (text: Buffer) => (stderr += String(text)))
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the program ended with ${code}: ${stderr}`)))
    createInterface({ input: child.stdout! }).on('line', (text) => {
      if (pattern.test(text)) resolve(text)
    })
  })
}

/** Returns the total size of the files in a folder, in bytes. */
const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
