/** A registry of npm packages on loopback (verdaccio), for the packages of the checkout. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { messageOf } from '@capstan/kube'
import type { Tarball } from '../../scripts/packages/pack.ts'
import { sourcePackages } from '../../scripts/packages/manifests.ts'
import { CannotRun } from '../shared/suite.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const fixtures = join(root, 'interop/packages')

/** The npm packages that `installTools` installs, and the version of TypeScript. */
export interface Tools {
  /** Folder in which the packages are installed. */
  readonly folder: string
  /** Folder with the commands of the packages. */
  readonly bin: string
  /** Path of the executable of the oldest Node that Capstan's libraries support. */
  readonly oldestNodePath: string
  /** Version of TypeScript in the checkout. */
  readonly typescript: string
}

/**
 * Returns the oldest Node version that Capstan's libraries support, such as 22.13.0 if `engines.node` of package `testing` is `>=22.13`.
 */
export const oldestNode = (): string => {
  const { manifest } = sourcePackages().find(({ folder }) => folder === 'testing')!
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(manifest.engines.node)!
  return `${major}.${minor}.0`
}

/**
 * Installs the npm packages that only the suites with a registry need: those of `interop/packages/tools.json`, and the oldest supported
 * Node. They are installed in the cache of tools, once per machine until their versions change, and not in the checkout, because they depend
 * on about as many packages as the checkout does.
 */
export async function installTools(): Promise<Tools> {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    devDependencies: { typescript: string }
  }
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const toolsManifest = JSON.parse(readFileSync(join(fixtures, 'tools.json'), 'utf8')) as { dependencies: Record<string, string> }
  toolsManifest.dependencies[`node-${platform}-${process.arch}`] = oldestNode()
  const text = JSON.stringify(toolsManifest)
  const cache = process.env.CAPSTAN_TOOLS ?? join(homedir(), '.cache', 'capstan', 'tools')
  const folder = join(cache, `npm-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`)
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true })
    const partial = mkdtempSync(`${folder}-`)
    writeFileSync(join(partial, 'package.json'), text)
    const { code, text: printed } = await runCommand('npm', ['install', '--no-audit', '--no-fund'], {
      cwd: partial,
      env: process.env,
    })
    if (code !== 0) {
      rmSync(partial, { recursive: true, force: true })
      throw new CannotRun(`verdaccio, publint and attw cannot be installed: ${printed.trim().split('\n').slice(-3).join(' ')}`)
    }
    try {
      renameSync(partial, folder)
    } catch (err) {
      // If the folder exists, another process has installed the packages in the meantime.
      rmSync(partial, { recursive: true, force: true })
      if (!existsSync(folder)) throw err
    }
  }
  return {
    folder,
    bin: join(folder, 'node_modules/.bin'),
    oldestNodePath: join(folder, `node_modules/node-${platform}-${process.arch}/bin/node`),
    typescript: devDependencies.typescript,
  }
}

export interface Registry {
  readonly url: string
  stop(): Promise<void>
}

/** Starts verdaccio, which stores its data in `folder`. Resolves when verdaccio responds. */
export async function startRegistry(tools: Tools, folder: string): Promise<Registry> {
  mkdirSync(folder)
  const port = await freePort()
  const config = {
    storage: join(folder, 'storage'),
    auth: { htpasswd: { file: join(folder, 'htpasswd') } },
    packages: { '@capstan/*': { access: '$all', publish: '$all', unpublish: '$all' } },
    uplinks: {},
    log: { type: 'stdout', format: 'json', level: 'warn' },
    max_body_size: '50mb',
  }
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(config))
  const child = spawn(
    process.execPath,
    [join(tools.bin, 'verdaccio'), '--config', join(folder, 'config.yaml'), '--listen', `127.0.0.1:${port}`],
    {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  process.once('exit', () => child.kill('SIGKILL'))
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (printed = `${printed}${text.toString()}`.slice(-2000)))
  const url = `http://127.0.0.1:${port}/`
  for (let waited = 0; ; waited += 100) {
    if (
      await fetch(`${url}-/ping`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break
    if (child.exitCode !== null || waited > 60_000) throw new Error(`verdaccio does not serve: ${printed}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { url, stop: () => killAndWait(child) }
}

/** Writes the npm configuration of a user who installs Capstan from this registry. */
export function writeNpmrc(file: string, registry: Registry): void {
  // Third-party packages come from the registry in the machine's own configuration. npm requires a token to publish; verdaccio accepts any.
  const userNpmrc = existsSync(join(homedir(), '.npmrc')) ? readFileSync(join(homedir(), '.npmrc'), 'utf8') : ''
  const { host } = new URL(registry.url)
  writeFileSync(
    file,
    `${userNpmrc}\n@capstan:registry=${registry.url}\n//${host}/:_authToken=anybody\nfund=false\naudit=false\nupdate-notifier=false\n`,
  )
}

/** Publishes packages to the registry of the npm configuration in `env`. @throws Error with the output of npm */
export async function publish(tarballs: readonly Tarball[], options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<void> {
  for (const { path } of tarballs) {
    const { code, text } = await runCommand('npm', ['publish', '--provenance=false', path], options)
    if (code !== 0) throw new Error(`npm publish ${path} ended with ${code}:\n${text}`)
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** Kills a child process, and resolves when it has ended. */
export async function killAndWait(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
}

/** Runs a command. Resolves with its exit code and its output when it has ended. */
export async function runCommand(command: string, args: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
  return promisify(execFile)(command, args, { ...options, maxBuffer: 1 << 26, timeout: 300_000 }).then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    (err: { code?: number; stdout?: string; stderr?: string }) => ({
      code: err.code ?? -1,
      text: `${err.stdout ?? ''}${err.stderr ?? ''}${err.stdout === undefined ? messageOf(err) : ''}`,
    }),
  )
}
