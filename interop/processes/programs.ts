/** Runs external programs as child processes, each with a log in the folder of its group, and always stops them at the end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Program {
  readonly name: string
  readonly pid: number
  /** File with its output and errors. */
  readonly log: string
  /** How the program has ended; undefined while it runs. */
  readonly ending: string | undefined
  /** Returns the last lines of its log, for failure messages. */
  tail(lines?: number): string
  /** Sends SIGTERM, and SIGKILL ten seconds later; to a disposable program SIGKILL at once. */
  stop(): Promise<void>
  /** Sends SIGKILL. */
  kill(): Promise<void>
}

export interface ProgramOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** The program's `argv[0]`; its path when absent. */
  readonly argv0?: string
  /** Whether `stop` sends SIGKILL at once. For programs that are slow to end after SIGTERM and need not end cleanly. */
  readonly disposable?: boolean
}

/** Longer lines of a log are shortened to this many characters. */
const LineLengthLimit = 400

/** Time limit for a program to end after SIGTERM, in milliseconds. */
const StopTimeLimit = 10_000

/**
 * Kills the remaining programs when the parent has ended, even by SIGKILL. `+PID` and `-PID` on standard input add and remove a program;
 * the end of the input means that the parent has ended. A script for `sh`, which every supported system has.
 */
const reaperScript = `trap '' INT TERM HUP
pids=' '
while read -r line; do
  pid=\${line#?}
  case $line in
    +*) pids="$pids$pid " ;;
    -*) case $pids in *" $pid "*) pids="\${pids%% $pid *} \${pids#* $pid }" ;; esac ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
rm -rf -- "$1"`

/** A group of programs. They are stopped, and their folder is removed, when the group is disposed of and when this process dies. */
export class Programs implements AsyncDisposable {
  /** Folder that only this group uses. Contains the logs. */
  readonly folder: string
  readonly #programs: Program[] = []
  readonly #reaper: ChildProcess

  constructor(name: string) {
    this.folder = mkdtempSync(join(tmpdir(), `capstan-${name}-`))
    this.#reaper = spawn('sh', ['-c', reaperScript, 'reaper', this.folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    this.#reaper.stdin!.on('error', () => {})
    // Neither the reaper nor its pipe keeps this process alive.
    this.#reaper.unref()
    ;(this.#reaper.stdin as unknown as { unref(): void }).unref()
  }

  get all(): readonly Program[] {
    return this.#programs
  }

  start(name: string, command: string, args: readonly string[], options: ProgramOptions = {}): Program {
    const { env = process.env, cwd, argv0, disposable = false } = options
    const log = join(this.folder, `${name}.log`)
    const output = openSync(log, 'a', 0o600)
    // A separate session, so that Ctrl-C reaches only this process, which stops the programs in order.
    const child = spawn(command, args, {
      stdio: ['ignore', output, output],
      detached: true,
      env,
      ...(cwd ? { cwd } : {}),
      ...(argv0 ? { argv0 } : {}),
    })
    closeSync(output)
    let ending: string | undefined
    const ended = new Promise<void>((resolve) => {
      const end = (how: string) => {
        ending ??= how
        if (child.pid !== undefined) this.#notifyReaper(`-${child.pid}`)
        resolve()
      }
      child.once('error', (err) => end(err.message))
      child.once('exit', (code, signal) => end(signal ? `ended by ${signal}` : `ended with code ${code}`))
    })
    if (child.pid !== undefined) this.#notifyReaper(`+${child.pid}`)
    const program: Program = {
      name,
      pid: child.pid ?? 0,
      log,
      get ending() {
        return ending
      },
      tail: (lines = 20) => {
        const lastLines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-lines)
        return lastLines.map((line) => (line.length > LineLengthLimit ? `${line.slice(0, LineLengthLimit)}…` : line)).join('\n')
      },
      async stop() {
        if (ending !== undefined) return
        child.kill(disposable ? 'SIGKILL' : 'SIGTERM')
        const killing = setTimeout(() => child.kill('SIGKILL'), StopTimeLimit)
        await ended
        clearTimeout(killing)
      },
      async kill() {
        child.kill('SIGKILL')
        await ended
      },
    }
    this.#programs.push(program)
    return program
  }

  /** Stops the programs in reverse order of their start. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of [...this.#programs].reverse()) await program.stop()
    this.#reaper.stdin!.end()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #notifyReaper(line: string): void {
    this.#reaper.stdin!.write(`${line}\n`)
  }
}

/**
 * Polls until `isReady` returns true.
 *
 * @throws Error with the last lines of the program's log if the program ends before it is ready, or after the timeout
 */
export async function ready(program: Program, isReady: () => Promise<boolean>, seconds = 60): Promise<void> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    if (await isReady().catch(() => false)) return
    const problem = program.ending ?? (performance.now() > end ? `was not ready within ${seconds} s` : undefined)
    if (problem !== undefined) throw new Error(`${program.name} ${problem}. The end of its log:\n${program.tail()}`)
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
}

/** Whether a GET returns 200. @throws if there is no response */
export const answers = (url: string, options: RequestOptions = {}): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? request : plainRequest
    send(url, { agent: false, timeout: 2000, ...options }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
      .on('timeout', function (this: { destroy(err: Error): void }) {
        this.destroy(new Error('no response within 2 s'))
      })
      .on('error', reject)
      .end()
  })

/**
 * Range in which free ports are searched: below the ports of outgoing connections, which the kernel could assign before the program binds
 * the port, and below those of upstream's in-memory clusters.
 */
const Ports = { from: 10_000, to: 18_999 }

/** Milliseconds for which a port is not returned again, in this process or another one: its program binds it in this time. */
const ClaimTime = 60_000

/** Returns `count` different free ports of the loopback interface. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = Ports.from + Math.floor(Math.random() * (Ports.to - Ports.from))
    if (claims(port) && (await isFree(port))) ports.push(port)
  }
  return ports
}

/** Claims a port by a file, so that suites that run at once do not use the same port. Returns false when the port is claimed already. */
function claims(port: number): boolean {
  const folder = join(tmpdir(), 'capstan-ports')
  const file = join(folder, String(port))
  mkdirSync(folder, { recursive: true })
  const claimed = statSync(file, { throwIfNoEntry: false })
  if (claimed && Date.now() - claimed.mtimeMs < ClaimTime) return false
  rmSync(file, { force: true })
  try {
    writeFileSync(file, '', { flag: 'wx' })
    return true
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw err
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
