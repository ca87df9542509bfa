/**
 * Runs external programs as child processes in groups (`Programs`). Each program has a log, and is stopped at the latest when this process
 * ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Program {
  readonly name: string
  /** 0 if the program could not be started. */
  readonly pid: number
  /** File with the program's stdout and stderr. */
  readonly log: string
  /** Describes how the program has ended, such as `ended with code 0`, or why it could not be started. `undefined` while the program runs. */
  readonly ending: string | undefined
  /** Returns the last lines of the log, for failure messages. Default: 20 lines. */
  tail(lines?: number): string
  /**
   * Sends SIGTERM, and SIGKILL if the program still runs ten seconds later. A disposable program gets SIGKILL at once. Resolves when the
   * program has ended.
   */
  stop(): Promise<void>
  /** Sends SIGKILL. Resolves when the program has ended. */
  kill(): Promise<void>
}

export interface ProgramOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** The program's `argv[0]`. Default: the command. */
  readonly argv0?: string
  /** Whether `stop` sends SIGKILL at once. For programs that are slow to end after SIGTERM and need not end cleanly. */
  readonly disposable?: boolean
}

/** Number of characters after which `tail` cuts a line of a log. */
const LineLengthLimit = 400

/** Time limit for a program to end after SIGTERM, in milliseconds. */
const StopTimeLimit = 10_000

/**
 * Script for `sh` that kills the programs that still run, and removes the folder `$1`, when its standard input ends. The input ends when
 * the group is disposed of, or when this process ends, even by SIGKILL. This process writes `+PID` to the input when a program starts, and
 * `-PID` when a program ends.
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

/** A group of programs. They are stopped, and their folder is removed, when the group is disposed of, or when this process ends. */
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
    // A separate session, so that Ctrl-C ends only this process. The reaper then kills the programs.
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

  /** Stops the programs in reverse order of their start, and removes the folder. */
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
 * Polls until `isReady` resolves with true. Errors of `isReady` count as false.
 *
 * @throws Error with the last lines of the program's log if the program ends before it is ready, or is not ready within `seconds`
 * (default: 60)
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

/** Returns whether a GET request gets status 200. @throws Error if the connection fails, or there is no response within two seconds */
export const answers = (url: string, options: RequestOptions = {}): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? request : plainRequest
    send(url, { agent: false, timeout: 2000, ...options }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
      .on('timeout', function (this: { destroy(err: Error): void }) {
        this.destroy(new Error('no response within 2 s'))
      })
      .on('error', reject)
      .end()
  })

/**
 * Range of the ports that `freePorts` returns; `to` itself is excluded. The range is below the ports that the kernel assigns to outgoing
 * connections, and below those of upstream's in-memory clusters, because either could be in use before the program binds its port.
 */
const Ports = { from: 10_000, to: 18_999 }

/** Milliseconds for which a claimed port is not claimed again, by any process. In this time, a program must bind the port. */
const ClaimTime = 60_000

/** Returns `count` different free ports of the loopback interface. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = Ports.from + Math.floor(Math.random() * (Ports.to - Ports.from))
    if (claim(port) && (await isFree(port))) ports.push(port)
  }
  return ports
}

/** Claims a port by a file, so that suites that run at once do not use the same port. Returns false if the port is already claimed. */
function claim(port: number): boolean {
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
