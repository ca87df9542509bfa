/** The guide docs/guides/operate-extensions.md, from its first command to its last. It needs kubectl, openssl and curl. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { guideSteps, type RunningCommand, startCommand, withoutNumbers } from './test-guide.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'capstan-operate-'))
const running: RunningCommand[] = []
afterAll(() => {
  for (const { child } of running) process.kill(-child.pid!, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const isHere = (program: string): boolean => {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const missing = ['kubectl', 'openssl', 'curl'].filter((program) => !isHere(program))

test.skipIf(missing.length > 0)(
  `the guide for operators does what it says${missing.length > 0 ? ` (not run: there is no ${missing.join(', no ')})` : ''}`,
  { timeout: 180_000 },
  async () => {
    // A checkout to write to.
    for (const name of ['examples', 'packages', 'node_modules']) symlinkSync(join(root, name), join(folder, name))
    const env: { [name: string]: string } = {
      HOME: folder,
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
    }
    /** Ports of a machine on which much else runs, by those of the page. */
    const ports = new Map<string, string>()
    const here = (text: string) =>
      text
        .replaceAll('npx @capstan/cli', `${process.execPath} packages/cli/bin/capstan.js`)
        .replace(/\b(?:6443|8080|9443|9444)\b/g, (port) => ports.get(port) ?? port)
    const run = async (command: string, fails: boolean): Promise<readonly string[]> => {
      const [, name, value] = /^export (\w+)=(.*)$/.exec(command) ?? []
      if (name !== undefined) {
        env[name] = value!
        return []
      }
      const { ended, lines } = startCommand(here(command), folder, env)
      const code = await ended
      if ((code !== 0) !== fails) throw new Error(`${command} ended with ${code}\n${lines.join('\n')}`)
      return lines
    }

    let last: readonly string[] = []
    for (const step of guideSteps(join(root, 'docs/guides/operate-extensions.md'))) {
      if (step.kind === 'run') for (const command of step.commands) last = await run(command, step.fails)
      else if (step.kind === 'save') writeFileSync(join(folder, step.file), here(step.text))
      else if (step.kind === 'start') {
        const anyPort = step.command.replace(/(-port) \d+/g, '$1 0')
        const command = anyPort.includes(' apiserver ') ? `${anyPort} --secure-port 0` : anyPort
        running.push(startCommand(here(command), folder, env))
      } else if (step.of === 'background') {
        for (const like of step.lines) {
          const line = await running.at(-1)!.line(like)
          const found = [...line.matchAll(/:(\d+)/g)]
          for (const [index, [, port]] of [...like.matchAll(/:(\d+)/g)].entries()) ports.set(port!, found[index]![1]!)
        }
      } else {
        const printed = last.map(withoutNumbers)
        for (const like of step.lines) expect(printed).toContain(withoutNumbers(like))
      }
    }

    // Ctrl-C, in the order in which they lean on each other.
    for (const { child, ended } of running.splice(0).reverse()) {
      process.kill(-child.pid!, 'SIGINT')
      await ended
    }
  },
)
