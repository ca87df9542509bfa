/** Runs commands in tests: records their output, and can interrupt them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Interrupted, type Io } from './io.ts'
import { run } from './program.ts'

/** Working directory without a `.capstan` folder, so that tests do not read the state of the checkout. */
const emptyFolder = mkdtempSync(join(tmpdir(), 'capstan-cwd-'))
process.once('exit', () => rmSync(emptyFolder, { recursive: true, force: true }))

export interface Started {
  readonly out: string[]
  readonly err: string[]
  /** Resolves with the exit code. */
  readonly done: Promise<number>
  /** Resolves with the first line of stdout that matches. Rejects when the command ends without a matching line. */
  line(pattern: RegExp): Promise<string>
  /** Interrupts the command as Ctrl-C does; resolves with the exit code. */
  interrupt(): Promise<number>
}

/** Starts a command in this process. */
export function start(argv: readonly string[], env: Io['env'] = {}): Started {
  const out: string[] = []
  const err: string[] = []
  const interrupted = new AbortController()
  let printed = Promise.withResolvers<void>()
  const io: Io = {
    out(line) {
      out.push(line)
      printed.resolve()
      printed = Promise.withResolvers()
    },
    err: (line) => void err.push(line),
    terminal: undefined,
    pid: process.pid,
    cwd: emptyFolder,
    env,
    signal: interrupted.signal,
  }
  const done = run(argv, io)
  return {
    out,
    err,
    done,
    async line(pattern) {
      for (;;) {
        const matchingLine = out.find((line) => pattern.test(line))
        if (matchingLine !== undefined) return matchingLine
        const code = await Promise.race([printed.promise, done])
        if (code !== undefined && !out.some((line) => pattern.test(line)))
          throw new Error(`The command ended with ${code} before it printed ${String(pattern)}: ${[...out, ...err].join('\n')}`)
      }
    },
    interrupt() {
      interrupted.abort(new Interrupted('SIGINT'))
      return done
    },
  }
}

/** Runs a command until it ends; returns its exit code and output. */
export async function runToEnd(
  argv: readonly string[],
  env: Io['env'] = {},
): Promise<{ code: number; out: string; err: string }> {
  const { done, out, err } = start(argv, env)
  const code = await done
  return { code, out: out.join('\n'), err: err.join('\n') }
}
