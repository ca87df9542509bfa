/**
 * Runs docs/guides/write-an-extension.md, from its first command to its last. Skips `skippedCommands`, and validates the
 * manifests instead of applying them.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { guideSteps, type RunningCommand, startCommand, comparable } from './test-guide.ts'
import { manifestValidator } from '../test-manifests.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const temporary = mkdtempSync(join(tmpdir(), 'capstan-guide-'))
const project = join(temporary, 'billing')
const running: ChildProcess[] = []
afterAll(() => {
  for (const { pid } of running) process.kill(-pid!, 'SIGKILL')
  rmSync(temporary, { recursive: true, force: true })
})

test('runs the guide for authors of extensions', { timeout: 180_000 }, async () => {
  let folder = root
  let background: RunningCommand | undefined
  let last: readonly string[] = []
  /** Port of the extension. The page's port may be in use on this machine. */
  let port = '9443'
  const validator = await manifestValidator()

  /** Runs a command of the page, adapted to this test. */
  const run = async (command: string): Promise<void> => {
    const [, to] = /^cd (.+)$/.exec(command) ?? []
    if (to !== undefined) {
      expect(to).toBe('../billing')
      folder = project
    } else if (command === 'kubectl apply -f manifests/')
      expect(await validator.accept(join(folder, 'manifests'))).toContain('ExtensionConfig -/billing')
    else if (!skippedCommands.includes(command)) {
      const adapted = command
        .replace(/^npx @capstan\/cli new/, `${process.execPath} packages/cli/bin/capstan.js new`)
        .replace('../billing', project)
        .replace(':9443', `:${port}`)
      const { ended, lines } = startCommand(adapted, folder)
      const code = await ended
      expect({ command, code, lines }).toMatchObject({ code: 0 })
      last = lines
    }
  }

  for (const step of guideSteps(join(root, 'docs/guides/write-an-extension.md'))) {
    if (step.kind === 'run') for (const command of step.commands) await run(command)
    else if (step.kind === 'save') writeFileSync(join(folder, step.file), step.text)
    else if (step.kind === 'start') {
      background = startCommand(`${step.command} -- --port 0 --extension-port 0`, folder)
      running.push(background.child)
    } else if (step.kind === 'stop') throw new Error('This guide stops no program before its end')
    else if (step.printedBy === 'background') {
      for (const expectedLine of step.lines) {
        const line = await background!.line(expectedLine)
        port = /Extension: served at https:.*:(\d+)/.exec(line)?.[1] ?? port
      }
    } else {
      const printed = last.map(comparable)
      for (const expectedLine of step.lines) expect(printed).toContain(comparable(expectedLine))
    }
  }

  // Ctrl-C.
  process.kill(-background!.child.pid!, 'SIGINT')
  await background!.ended
  running.length = 0
  await validator.close()
  // The script `image`, which this test does not run, must exist, too.
  const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { scripts: { [name: string]: string } }
  expect(scripts.image).toMatch(/docker build/)
})

/** Commands that this test skips: they need Docker, or a cluster that runs the image. */
const skippedCommands = ['npm run image', 'kubectl wait --for=condition=Discovered extensionconfig/billing']
