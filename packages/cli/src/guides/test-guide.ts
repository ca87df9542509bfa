/**
 * Runs guides. The blocks of a page are executed in order:
 *
 * - `sh` runs each line; `sh refused` does too, and each line must fail.
 * - `sh background` starts a command that keeps running; `sh stop` sends SIGINT to the running command that contains the text of the block.
 * - A language followed by a file name saves the block as that file.
 * - `text` is expected output. If the previous block is `sh` or `sh refused`, its last command must have printed each line, in any order.
 *   Otherwise the running program that was started last must print the lines, in this order. Numbers, spaces and a time at the start of a
 *   line may differ, except in summaries of `conform`, and of `lint` without findings.
 *
 * A block of any other form is an error.
 *
 * A page may also contain commands in its prose. Each of them that `commandsInProse` finds must be part of a command that was executed, or be
 * listed in `notRun` of the page's test, with the reason.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

export type GuideStep =
  | { readonly kind: 'run'; readonly commands: readonly string[]; readonly fails: boolean }
  | { readonly kind: 'start'; readonly command: string }
  | { readonly kind: 'stop'; readonly command: string }
  | { readonly kind: 'save'; readonly file: string; readonly text: string }
  /** `printedBy`: whether the last command or the running program printed the lines. */
  | { readonly kind: 'expect'; readonly printedBy: 'command' | 'background'; readonly lines: readonly string[] }

/** Captures the text after the opening fence, and the lines of the block. */
const fence = /^ *```(.*)\n([^]*?)^ *```$/gm

/**
 * Returns the commands in the prose of a page: inline code with one of the programs below, a subcommand and further words. Shorter code only
 * names a command.
 */
export const commandsInProse = (path: string): string[] =>
  [
    ...readFileSync(path, 'utf8')
      .replace(fence, '')
      .matchAll(/`((?:npx|npm|capstan|kubectl|clusterctl|curl|helm) [^`\s]+ [^`]+)`/g),
  ].map(([, command]) => command!)

/** Returns the steps of a page, in order. @throws Error for a block of unknown form */
export function guideSteps(path: string): GuideStep[] {
  const steps: GuideStep[] = []
  for (const [block, start, text] of readFileSync(path, 'utf8').matchAll(fence)) {
    const [, language, modifier = ''] = /^(\w+)(?: (\S+))?$/.exec(start!) ?? []
    if (language === undefined || !isKnownForm(language, modifier))
      throw new Error(`${path}: this block has an unknown form:\n${block}`)
    const lines = text!.trimEnd().split('\n')
    if (language === 'text') {
      steps.push({ kind: 'expect', printedBy: steps.at(-1)?.kind === 'run' ? 'command' : 'background', lines })
    } else if (language !== 'sh') steps.push({ kind: 'save', file: modifier, text: text! })
    else if (modifier === 'background') steps.push({ kind: 'start', command: lines.join('\n') })
    else if (modifier === 'stop') steps.push({ kind: 'stop', command: lines.join('\n') })
    else steps.push({ kind: 'run', commands: lines, fails: modifier === 'refused' })
  }
  return steps
}

function isKnownForm(language: string, modifier: string): boolean {
  if (language === 'sh') return ['', 'background', 'refused', 'stop'].includes(modifier)
  if (language === 'text') return modifier === ''
  // The modifier of any other language is a file name.
  return modifier !== ''
}

/** Matches the summaries of `capstan conform`, and of `capstan lint` without findings. Their counts are the same in each run. */
const summaries = /^\d+ pass, |^No findings: /

/**
 * Removes the parts of an output line that differ from run to run: numbers, durations, column alignment, and the leading time. Returns
 * summaries unchanged.
 */
export const comparable = (line: string): string => (summaries.test(line) ? line : withoutNumbers(line))

const withoutNumbers = (line: string): string =>
  line
    .replace(/^\s*\d+\.\ds {2}/, '')
    .replace(/\b(?:\d+[ydhms])+\b/g, 'DURATION')
    .replace(/\d+/g, 'N')
    .replace(/\s+/g, ' ')
    .trim()

/** Environment variables of this process except KUBECONFIG, NODE_OPTIONS and those that begin with `npm_` or `VITEST`. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_OPTIONS$|^VITEST|^KUBECONFIG$/i.test(name)),
)

export interface RunningCommand {
  readonly child: ChildProcess
  /** Lines printed so far, of stdout and stderr. */
  readonly lines: readonly string[]
  /** Resolves with the exit code; with null if a signal ended the command. */
  readonly ended: Promise<number | null>
  /**
   * Searches the output after the line that the previous call returned. Resolves with the first line that equals `expectedLine` when
   * both are normalized by `comparable`. Rejects when the command ends without such a line.
   */
  line(expectedLine: string): Promise<string>
}

/** Starts a command line in a shell, and records its output. */
export function startCommand(command: string, folder: string, furtherEnv: NodeJS.ProcessEnv = {}): RunningCommand {
  const child = spawn('sh', ['-c', command], {
    cwd: folder,
    env: { ...env, ...furtherEnv },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const lines: string[] = []
  let next = Promise.withResolvers<void>()
  const addLine = (line: string) => {
    lines.push(line)
    next.resolve()
    next = Promise.withResolvers()
  }
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', addLine)
  const ended = once(child, 'close').then(([code]) => code as number | null)
  let searchStart = 0
  return {
    child,
    lines,
    ended,
    async line(expectedLine) {
      for (;;) {
        const index = lines.findIndex(
          (line, position) => position >= searchStart && comparable(line) === comparable(expectedLine),
        )
        if (index >= 0) {
          searchStart = index + 1
          return lines[index]!
        }
        const code = await Promise.race([next.promise, ended])
        if (code !== undefined)
          throw new Error(`${command} ended with ${code} without the line ${expectedLine}\n${lines.join('\n')}`)
      }
    },
  }
}

const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** Returns the programs that are not installed on the machine. */
export const missingPrograms = (names: readonly string[]): string[] =>
  names.filter((name) => {
    try {
      execFileSync('which', [name], { stdio: 'ignore' })
      return false
    } catch {
      return true
    }
  })

interface Started extends RunningCommand {
  /** The command as written in the page. */
  readonly command: string
}

export interface GuideOptions {
  /** Programs that the page requires. */
  readonly programs: readonly string[]
  /** Commands of the page that are not executed, with the reason. */
  readonly notRun?: { readonly [command: string]: string }
  /** The page is for readers without a checkout: npm and npx use the packages in the registry of `npm run interop -- programs`. */
  readonly fromRegistry?: true
  /** clusterctl finds upstream's release in the folder of `npm run interop -- programs`. */
  readonly withUpstream?: true
}

/**
 * Runs a guide of docs/guides, from its first command to its last, in `folder`. The main differences from a reader's machine
 * are:
 *
 * - Programs listen on free ports instead of the page's ports, which may be in use on this machine.
 * - `npx @capstan/cli` is the command of the checkout, unless the page is for readers without one.
 * - `folder` is the home folder, and replaces `/path/to` in the page.
 * - npm installs global packages below `folder`, and npx does not ask before it installs.
 */
export class GuideRun {
  readonly #folder: string
  readonly #options: GuideOptions
  readonly #running: Started[] = []
  readonly #env: { [name: string]: string }
  /** Ports of this run, by port in the page. */
  readonly #ports = new Map<string, string>()
  /** Executed commands. */
  readonly #ran: string[] = []
  /** Commands of `notRun` that the page contains. */
  readonly #skipped = new Set<string>()

  constructor(folder: string, options: GuideOptions) {
    this.#folder = folder
    this.#options = options
    const global = join(folder, '.npm-global')
    this.#env = {
      HOME: folder,
      PATH: [join(global, 'bin'), dirname(process.execPath), process.env.PATH ?? ''].join(delimiter),
      NPM_CONFIG_PREFIX: global,
      NPM_CONFIG_CACHE: process.env.npm_config_cache ?? join(homedir(), '.npm'),
      NPM_CONFIG_PREFER_OFFLINE: 'true',
      NPM_CONFIG_YES: 'true',
      // Without a network, clusterctl's search for a newer release takes a minute.
      CLUSTERCTL_DISABLE_VERSIONCHECK: 'true',
      ...goCaches(),
    }
    if (options.fromRegistry) this.#env.NPM_CONFIG_USERCONFIG = process.env.CAPSTAN_NPMRC!
    // Commands run in `folder`, with links to folders of the checkout, so that they create no files in the root folder of the checkout.
    else for (const name of ['config', 'examples', 'packages', 'node_modules']) symlinkSync(join(root, name), join(folder, name))
    if (options.withUpstream) {
      mkdirSync(join(folder, '.config/cluster-api'), { recursive: true })
      copyFileSync(process.env.CAPSTAN_UPSTREAM!, join(folder, '.config/cluster-api/clusterctl.yaml'))
    }
  }

  async run(page: string): Promise<void> {
    let last: readonly string[] = []
    const path = join(root, 'docs/guides', page)
    for (const step of guideSteps(path)) {
      if (step.kind === 'run') for (const command of step.commands) last = await this.#command(command, step.fails)
      else if (step.kind === 'save') writeFileSync(join(this.#folder, step.file), this.#forThisMachine(step.text))
      else if (step.kind === 'start') this.#start(step.command)
      else if (step.kind === 'stop') await this.#stop(step.command)
      else if (step.printedBy === 'background') for (const expectedLine of step.lines) await this.#awaitLine(expectedLine)
      else {
        const printed = last.map(comparable)
        for (const expectedLine of step.lines) expect(printed).toContain(comparable(expectedLine))
      }
    }
    // Sends SIGINT to the running programs, the last one first, because it may need the others.
    for (const { child, ended } of this.#running.splice(0).reverse()) {
      process.kill(-child.pid!, 'SIGINT')
      await ended
    }
    this.#checkProse(page, commandsInProse(path))
  }

  /**
   * Checks that each command of the prose is part of an executed command or listed in `notRun`, and that each command in `notRun` is on
   * the page and was not executed.
   */
  #checkProse(page: string, inProse: readonly string[]): void {
    const { notRun = {} } = this.#options
    const ran = this.#ran.map(asCapstan)
    const notExecuted = [...new Set(inProse)].filter((command) => !ran.some((executed) => hasWords(executed, asCapstan(command))))
    for (const command of notExecuted) if (command in notRun) this.#skipped.add(command)
    expect(
      notExecuted.filter((command) => !(command in notRun)),
      `commands of ${page} that are not run`,
    ).toEqual([])
    expect(
      Object.keys(notRun).filter((command) => !this.#skipped.has(command)),
      `commands in notRun that are run, or are not on ${page}`,
    ).toEqual([])
    console.log(
      [
        `${page}: ${ran.length} of ${ran.length + this.#skipped.size} commands executed`,
        ...[...this.#skipped].map((command) => `  not: ${command} (${notRun[command]})`),
      ].join('\n'),
    )
  }

  /** Kills processes that are still running after a failure. */
  kill(): void {
    const isRunning = ({ child }: Started) => child.exitCode === null && child.signalCode === null
    for (const { child } of this.#running.filter(isRunning)) process.kill(-child.pid!, 'SIGKILL')
  }

  #forThisMachine(text: string): string {
    const checkoutProgram = `${process.execPath} packages/cli/bin/capstan.js`
    return (this.#options.fromRegistry ? text : text.replaceAll('npx @capstan/cli', checkoutProgram))
      .replaceAll('/path/to', this.#folder)
      .replace(/\b(?:6443|8080|9443|9444)\b/g, (port) => this.#ports.get(port) ?? port)
  }

  async #command(command: string, fails: boolean): Promise<readonly string[]> {
    if (this.#options.notRun && command in this.#options.notRun) {
      this.#skipped.add(command)
      return []
    }
    this.#ran.push(command)
    console.log(`$ ${command}`)
    const [, name, value] = /^export (\w+)=(.*)$/.exec(command) ?? []
    if (name !== undefined) {
      this.#env[name] = value!
      return []
    }
    const { ended, lines } = startCommand(this.#forThisMachine(command), this.#folder, this.#env)
    const code = await ended
    if ((code !== 0) !== fails) throw new Error(`${command} ended with ${code}\n${lines.join('\n')}`)
    return lines
  }

  #start(command: string): void {
    this.#ran.push(command)
    console.log(`$ ${command}`)
    const anyPort = command.replace(/(-port) (\d+)/g, (_, flag: string, port: string) => `${flag} ${this.#ports.get(port) ?? 0}`)
    // A second start in the same data folder uses the port of the first start.
    const isFirst = !existsSync(join(this.#folder, '.capstan/port'))
    let portFlag = ''
    if (anyPort.includes(' apiserver ')) portFlag = ' --secure-port 0'
    else if (anyPort.includes(' up ') && isFirst) portFlag = ' --port 0'
    const started = startCommand(this.#forThisMachine(anyPort + portFlag), this.#folder, this.#env)
    this.#running.push({ ...started, command })
  }

  async #stop(command: string): Promise<void> {
    const index = this.#running.findIndex((started) => started.command.includes(command))
    if (index < 0) throw new Error(`No running command contains: ${command}`)
    const [stopped] = this.#running.splice(index, 1)
    process.kill(-stopped!.child.pid!, 'SIGINT')
    await stopped!.ended
  }

  /** Waits until the program that was started last prints the line, and records the ports of the line. */
  async #awaitLine(expectedLine: string): Promise<void> {
    const line = await this.#running.at(-1)!.line(expectedLine)
    const actualPorts = [...line.matchAll(/:(\d+)/g)]
    for (const [index, [, port]] of [...expectedLine.matchAll(/:(\d+)/g)].entries())
      this.#ports.set(port!, actualPorts[index]![1]!)
  }
}

/** Go's caches of modules and compiled packages, which would otherwise be in the home folder of the test. */
const goCaches = (): { [name: string]: string } => ({
  GOMODCACHE: process.env.GOMODCACHE ?? join(process.env.GOPATH ?? join(homedir(), 'go'), 'pkg/mod'),
  GOCACHE: process.env.GOCACHE ?? join(homedir(), '.cache/go-build'),
})

/** Whether a command contains these words in this order. */
function hasWords(command: string, words: string): boolean {
  const [...remaining] = words.split(' ')
  for (const word of command.split(' ')) if (word === remaining[0]) remaining.shift()
  return remaining.length === 0
}

const asCapstan = (command: string): string => command.replaceAll('npx @capstan/cli', 'capstan')

/**
 * Declares a test that runs a guide in a new folder, from its first command to its last, without the commands of `notRun`.
 * Skips the test when a program, or the required registry or upstream release, is missing.
 */
export function testGuide(page: string, options: GuideOptions): void {
  const { programs, fromRegistry, withUpstream } = options
  const missing = [
    ...missingPrograms(programs),
    ...(fromRegistry && process.env.CAPSTAN_NPMRC === undefined ? ['registry of npm run interop -- programs'] : []),
    ...(withUpstream && process.env.CAPSTAN_UPSTREAM === undefined ? ['upstream release of npm run interop -- programs'] : []),
  ]
  const reason = missing.length > 0 ? ` (not run: there is no ${missing.join(', no ')})` : ''
  // The first build with Go compiles client-go.
  const timeout = programs.includes('go') ? 900_000 : 180_000
  test.skipIf(missing.length > 0)(`docs/guides/${page} works as written${reason}`, { timeout }, async ({ signal }) => {
    const folder = mkdtempSync(join(tmpdir(), 'capstan-guide-'))
    const guide = new GuideRun(folder, options)
    signal.addEventListener('abort', () => guide.kill())
    try {
      await guide.run(page)
    } finally {
      guide.kill()
      rmSync(folder, { recursive: true, force: true })
    }
  })
}
