/** Runs `capstan` as a child process for suites. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface CapstanProcess {
  readonly pid: number
  /** Line of output that matched `ready`. */
  readonly ready: string
  /** Returns the output on stderr so far, such as log entries. */
  stderr(): string
  /** Sends SIGINT; resolves with the exit code and stderr. */
  stop(): Promise<{ code: number | null; stderr: string }>
  /** Sends SIGKILL. */
  kill(): Promise<void>
  /** Resolves when the process has ended. */
  ended(): Promise<{ code: number | null; stderr: string }>
}

/**
 * Starts `capstan` with the arguments `argv`. Resolves when a line of its stdout matches `ready`. `prefix` is a command that runs the rest
 * of the command line, such as `nsenter`.
 *
 * @throws Error with stderr if the process ends before it is ready
 */
export function startCapstan(argv: readonly string[], ready: RegExp, prefix: readonly string[] = []): Promise<CapstanProcess> {
  const [command, ...args] = [...prefix, process.execPath, join(root, 'packages/cli/bin/capstan.js'), ...argv]
  const child = spawn(command!, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  void exited.then(() => process.off('exit', kill))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    void exited.then((code) => reject(new Error(`capstan ${argv[0]} ended with ${code} before it was ready: ${stderr}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!ready.test(line)) return
      resolve({
        pid: child.pid!,
        ready: line,
        stderr: () => stderr,
        async stop() {
          child.kill('SIGINT')
          return { code: await exited, stderr }
        },
        async kill() {
          child.kill('SIGKILL')
          await exited
        },
        ended: async () => ({ code: await exited, stderr }),
      })
    })
  })
}

/** Runs `capstan` with the arguments `argv`. Resolves when the process has ended. */
export async function runCapstan(argv: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [join(root, 'packages/cli/bin/capstan.js'), ...argv], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stderr }
}

/** Calls `use` with a client of the kubeconfig's server, and closes the client afterwards. */
export async function withClient<T>(kubeconfig: string, use: (client: Client) => Promise<T>): Promise<T> {
  const transport = httpsTransport(await loadKubeconfig(kubeconfig), {
    clock: systemClock,
    random: systemRandom,
    userAgent: 'interop',
  })
  try {
    return await use(createClient(transport))
  } finally {
    transport.close()
  }
}

/** Counts passed and failed checks, and prints failed checks. */
export class Checks {
  passed = 0
  failed = 0

  check(description: string, holds: boolean, actual?: unknown): void {
    if (holds) this.passed++
    else {
      this.failed++
      console.log(`FAIL ${description}${actual === undefined ? '' : `: ${JSON.stringify(actual)}`}`)
    }
  }
}
