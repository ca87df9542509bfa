/** Probes the extension of a module in a separate process. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CheckOptions } from './check-extension.ts'
import type { ProbeResults } from './probe.ts'

/** Differences in the environment of the other process. */
export interface EnvironmentChanges {
  /** Shift of the clock in milliseconds. */
  readonly shiftMs?: number
  readonly env?: { readonly [name: string]: string }
  /** Flags of Node. */
  readonly flags?: readonly string[]
}

/** Task that the process receives in its first and only message. */
export interface ProbeJob extends Omit<CheckOptions, 'signal'> {
  readonly module: string
  readonly shiftMs: number
}

/** Reply that the process sends in its first and only message. */
export type ProbeReply = ProbeResults | { readonly problem: string }

/**
 * Probes the extension of the module in a new process with a changed environment.
 *
 * @throws Error if the module does not load or has no extension, if the probe fails, or if the process ends without a result; an AbortError
 *   if the signal aborts
 */
export function probeInOtherProcess(
  module: URL,
  { signal, ...options }: CheckOptions,
  environment: EnvironmentChanges,
): Promise<ProbeResults> {
  const { shiftMs = 0, env = {}, flags = [] } = environment
  const program = fileURLToPath(new URL('process-main.ts', import.meta.url))
  // The process inherits the environment. Its stdout is discarded; the end of its stderr is part of the error if the process ends early.
  const child = fork(program, {
    execArgv: [...flags],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // A module may ignore other signals.
    killSignal: 'SIGKILL',
    ...(signal ? { signal } : {}),
  })
  let stderrText = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderrText = `${stderrText}${text}`.slice(-2000)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, killedBy) => {
      const exitText = killedBy === null ? `exit code ${code}` : `killed by ${killedBy}`
      reject(
        new Error(`Cannot check ${fileURLToPath(module)}: the process ended early (${exitText}) ${stderrText.trim()}`.trim()),
      )
    })
    child.once('message', (reply: ProbeReply) => {
      if ('observations' in reply) resolve(reply)
      else reject(new Error(`Cannot check ${fileURLToPath(module)}: ${reply.problem}`))
      child.kill()
    })
    child.send({ module: module.href, shiftMs, ...options } satisfies ProbeJob)
  })
}
