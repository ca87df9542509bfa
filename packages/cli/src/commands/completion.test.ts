import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { runToEnd } from '../test-io.ts'

/** Runs the printed script in bash, and returns the words that bash offers for a command line. */
async function complete(...line: string[]): Promise<string[]> {
  const { code, out } = await runToEnd(['completion', 'bash'])
  expect(code).toBe(0)
  const words = ['capstan', ...line]
  const script = `${out}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_capstan; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout.trim().split('\n')
}

test('bash completes commands, subcommands and flags, also after flags with values', async () => {
  expect(await complete('ma')).toContain('manager')
  expect(await complete('hooks', 'w')).toEqual(['waiting'])
  expect(await complete('up', '--exit')).toEqual(['--exit-when-ready'])
  expect(await complete('up', '--port', '0', '--dem')).toEqual(['--demo'])
})

test('the script for each shell contains every command of the help', async () => {
  const { out: help } = await runToEnd(['--help'])
  const commands = [...help.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name!).filter((name) => name !== 'help')
  expect(commands).toContain('completion')
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out } = await runToEnd(['completion', shell])
    for (const command of commands) expect(out, `${command} in ${shell}`).toContain(command)
  }
})

test('rejects an unsupported shell, and lists the supported shells', async () =>
  expect(await runToEnd(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    err: expect.stringContaining("'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish."),
  }))
