/**
 * Guides that run. Blocks of a page, in order: `sh` is run line by line, `sh refused` too, and fails, `sh background` is started and
 * goes on, a language followed by a file name is saved under that name, and `text` is what must come out: of the program that goes on
 * when something was saved or started before it, of the last command otherwise. Numbers may differ.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

export type GuideStep =
  | { readonly kind: 'run'; readonly commands: readonly string[]; readonly fails: boolean }
  | { readonly kind: 'start'; readonly command: string }
  | { readonly kind: 'save'; readonly file: string; readonly text: string }
  /** `of`: whose output it is. */
  | { readonly kind: 'expect'; readonly of: 'command' | 'background'; readonly lines: readonly string[] }

export function guideSteps(path: string): GuideStep[] {
  const steps: GuideStep[] = []
  for (const [, language, what = '', text] of readFileSync(path, 'utf8').matchAll(/^```(\w+)(?: (\S+))?\n([^]*?)^```$/gm)) {
    const lines = text!.trimEnd().split('\n')
    if (language === 'text') {
      steps.push({ kind: 'expect', of: steps.at(-1)?.kind === 'run' ? 'command' : 'background', lines })
    } else if (language !== 'sh') steps.push({ kind: 'save', file: what, text: text! })
    else if (what === 'background') steps.push({ kind: 'start', command: lines.join('\n') })
    else steps.push({ kind: 'run', commands: lines, fails: what === 'refused' })
  }
  return steps
}

/** A line of output without what differs from run to run: numbers, how columns are aligned, and the time before it. */
export const withoutNumbers = (line: string): string =>
  line
    .replace(/^\s*\d+\.\ds {2}/, '')
    .replace(/\d+/g, 'N')
    .replace(/\s+/g, ' ')
    .trim()

/** The environment that npm and vitest set differs from that of a terminal. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_OPTIONS$|^VITEST|^KUBECONFIG$/i.test(name)),
)

export interface RunningCommand {
  readonly child: ChildProcess
  /** All that it has printed. */
  readonly lines: readonly string[]
  /** Its exit code. */
  readonly ended: Promise<number>
  /** Resolves with a line like this one that comes after those that were asked for before. */
  line(like: string): Promise<string>
}

/** A command line in its shell, with all that it prints. */
export function startCommand(command: string, folder: string, more: NodeJS.ProcessEnv = {}): RunningCommand {
  const child = spawn('sh', ['-c', command], {
    cwd: folder,
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const lines: string[] = []
  let next = Promise.withResolvers<void>()
  const printed = (line: string) => {
    lines.push(line)
    next.resolve()
    next = Promise.withResolvers()
  }
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', printed)
  const ended = once(child, 'close').then(([code]) => code as number)
  let seen = 0
  return {
    child,
    lines,
    ended,
    async line(like) {
      for (;;) {
        const index = lines.findIndex((line, at) => at >= seen && withoutNumbers(line) === withoutNumbers(like))
        if (index >= 0) {
          seen = index + 1
          return lines[index]!
        }
        const code = await Promise.race([next.promise, ended])
        if (code !== undefined) throw new Error(`It ended with ${code} without the line ${like}\n${lines.join('\n')}`)
      }
    },
  }
}
