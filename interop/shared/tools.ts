import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { components } from '../../scripts/tools/components.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Returns the paths of programs of scripts/tools in the given order, and builds missing ones.
 *
 * @throws Error if a program cannot be built
 */
export async function toolPaths<const Names extends readonly string[]>(...names: Names): Promise<{ [I in keyof Names]: string }> {
  const out = await output(process.execPath, ['scripts/tools/main.ts', ...names], { cwd: root })
  return out.trim().split('\n') as { [I in keyof Names]: string }
}

/**
 * Returns the folder of a Go module from which a program of scripts/tools was built. Suites read manifests and documents in it. Downloads
 * the module if it is not in Go's module cache.
 */
export async function moduleFolder(tool: string, module: string): Promise<string> {
  const [path] = await toolPaths(tool)
  const component = components.find(({ name }) => name === tool)!
  const required = component.module.requires.find((requirement) => requirement.path === module)
  if (!required) throw new Error(`${tool} is not built from ${module}`)
  const text = await output('go', ['mod', 'download', '-json', `${module}@${required.version}`], {
    cwd: dirname(path),
    env: { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off' },
  })
  return (JSON.parse(text) as { Dir: string }).Dir
}

/** Runs a command and returns its stdout. @throws Error if it cannot be started, or its exit code is not 0 */
export async function output(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${String(code)}`)
  return out
}
