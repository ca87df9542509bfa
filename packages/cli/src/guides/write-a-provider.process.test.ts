/**
 * Runs the command blocks of docs/guides/write-a-provider.md, in order. Skips `npm run image`, which needs Docker, and
 * validates the manifests instead of applying them.
 */
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { comparable, guideSteps, type RunningCommand, startCommand } from './test-guide.ts'
import { manifestValidator } from '../test-manifests.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const temporary = mkdtempSync(join(tmpdir(), 'capstan-provider-'))
const project = join(temporary, 'acme')
const running: ChildProcess[] = []
afterAll(() => {
  for (const { pid } of running) process.kill(-pid!, 'SIGKILL')
  rmSync(temporary, { recursive: true, force: true })
})

test('docs/guides/write-a-provider.md works as written', { timeout: 300_000 }, async () => {
  let folder = root
  let background: RunningCommand | undefined
  let last: readonly string[] = []
  const validator = await manifestValidator()

  const run = async (command: string, fails: boolean): Promise<void> => {
    const [, to] = /^cd (.+)$/.exec(command) ?? []
    if (to !== undefined) {
      expect(to).toBe('../acme')
      folder = project
    } else if (command === 'kubectl apply -f manifests/') {
      expect(await validator.accept(join(folder, 'manifests'))).toContain('Deployment acme-system/acme')
    } else if (command !== 'npm run image') {
      const adapted = command
        .replace(/^npx @capstan\/cli new/, `${process.execPath} packages/cli/bin/capstan.js new`)
        .replace('../acme', project)
      const { ended, lines } = startCommand(adapted, folder)
      const code = await ended
      if ((code !== 0) !== fails) throw new Error(`${command} ended with ${code}:\n${lines.join('\n')}`)
      last = lines
      // Expected lines after this command are lines of this command, not of a program that keeps running.
      background = undefined
    }
  }

  for (const step of guideSteps(join(root, 'docs/guides/write-a-provider.md'))) {
    if (step.kind === 'run') for (const command of step.commands) await run(command, step.fails)
    else if (step.kind === 'start') {
      background = startCommand(step.command, folder)
      running.push(background.child)
    } else if (step.kind === 'expect') {
      for (const expectedLine of step.lines) {
        if (background) await background.line(expectedLine)
        else expect(last.map(comparable)).toContain(comparable(expectedLine))
      }
    }
  }
  for (const report of ['report.html', 'report.xml']) expect(existsSync(join(project, report))).toBe(true)
  await validator.close()
})
