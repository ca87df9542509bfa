/** Builds a program from Go modules into the cache, once. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Component, ToolModule } from './components.ts'
import { goMod } from './go-mod.ts'

/** An error that the user can fix. It is printed without a stack. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}

export interface BuildOptions {
  /** Cache folder for generated Go modules and built programs. */
  readonly cache: string
  /** Environment of Go. */
  readonly env: NodeJS.ProcessEnv
  /** Called with progress messages. */
  progress(line: string): void
}

/** Returns the path of the program. Builds it if the cache does not contain it. */
export async function ensureTool(component: Component, options: BuildOptions): Promise<string> {
  const { module, name } = component
  const folder = join(options.cache, `${module.name}-${module.version}`)
  const program = join(folder, name)
  if (existsSync(program)) return program

  await checkGo(component, options)
  await mkdir(folder, { recursive: true })
  const source = await ensureModule(module, folder, options)
  if (module.generate) await run('go', module.generate, source, options, progressOf(name, options))
  options.progress(`${name} ${module.version}: compiling, which takes some minutes; the result is kept in ${folder}`)
  // The program is built under another name and renamed, so that after an interrupted build no incomplete file has the program's name.
  const unfinished = `${program}.${process.pid}`
  try {
    const variables = Object.entries(module.variables).map(([variable, value]) => `-X ${variable}=${value}`)
    const args = [
      'build',
      '-v',
      '-trimpath',
      '-ldflags',
      ['-s', '-w', ...variables].join(' '),
      '-o',
      unfinished,
      component.package,
    ]
    await run('go', args, source, options, progressOf(name, options))
    await rename(unfinished, program)
  } finally {
    await rm(unfinished, { force: true })
  }
  return program
}

async function checkGo(component: Component, options: BuildOptions): Promise<void> {
  const requiredVersion = component.module.go
  const needs = `${component.name} ${component.module.version} is built from source and needs Go ${requiredVersion} or newer`
  let version: string
  try {
    version = (await run('go', ['env', 'GOVERSION'], options.cache, options)).trim()
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT') throw err
    throw new ToolError(`${needs}: there is no "go" on the PATH. Install it from https://go.dev/dl/ or your distribution`)
  }
  const [, major = 0, minor = 0] = /^go(\d+)\.(\d+)/.exec(version) ?? []
  const [requiredMajor = 0, requiredMinor = 0] = requiredVersion.split('.').map(Number)
  if (Number(major) < requiredMajor || (Number(major) === requiredMajor && Number(minor) < requiredMinor)) {
    throw new ToolError(`${needs}: the "go" on the PATH is ${version}`)
  }
}

/** Writes the generated Go module, if the cache does not contain it. @returns its folder */
async function ensureModule(module: ToolModule, folder: string, options: BuildOptions): Promise<string> {
  const source = join(folder, 'module')
  const file = join(source, 'go.mod')
  if (existsSync(file)) return source
  await mkdir(source, { recursive: true })
  let upstream = ''
  if (module.staging) {
    const { of: upstreamModule } = module.staging
    const version = module.requires.find(({ path }) => path === upstreamModule)?.version
    options.progress(`${upstreamModule} ${version}: downloading`)
    const response = JSON.parse(
      await run('go', ['mod', 'download', '-json', `${upstreamModule}@${version}`], folder, options),
    ) as {
      GoMod: string
    }
    upstream = await readFile(response.GoMod, 'utf8')
  }
  for (const [name, text] of Object.entries(module.sources ?? {})) await writeFile(join(source, name), text)
  await writeFile(`${file}.${process.pid}`, goMod(module, upstream))
  await rename(`${file}.${process.pid}`, file)
  return source
}

/**
 * Returns a handler for the lines that Go prints to stderr. The handler reports each download, and the number of packages after every 200,
 * because `go build -v` prints a line for each package that it compiles.
 */
function progressOf(name: string, options: BuildOptions): (line: string) => void {
  let packages = 0
  return (line) => {
    if (line.startsWith('go: downloading')) options.progress(line.slice('go: '.length))
    else if (++packages % 200 === 0) options.progress(`${name}: ${packages} packages compiled`)
  }
}

/** Runs a program and returns its stdout. @throws ToolError with the last lines of stderr if the exit code is not 0 */
async function run(
  command: string,
  args: readonly string[],
  folder: string,
  { env, cache }: BuildOptions,
  onLine: (line: string) => void = () => {},
): Promise<string> {
  await mkdir(cache, { recursive: true })
  const child = spawn(command, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOWORK: 'off', GOFLAGS: `${env.GOFLAGS ?? ''} -mod=mod`.trim() },
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const last: string[] = []
  createInterface(child.stderr).on('line', (line) => {
    onLine(line)
    last.push(line)
    if (last.length > 20) last.shift()
  })
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new ToolError(`${command} ${args[0]} failed with ${code}:\n${last.join('\n')}`)
  return out
}
