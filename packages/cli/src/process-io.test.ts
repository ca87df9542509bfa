import { execFileSync, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VirtualClock } from '@capstan/kube'
import { expect, onTestFinished, test } from 'vitest'
import { Interrupted } from './io.ts'
import { processIo } from './process-io.ts'

/** Creates a fake process that emits signals and records calls of `kill`. */
function fakeProcess() {
  const killed: string[] = []
  const events = new EventEmitter()
  const running = Object.assign(events, {
    stdout: new EventEmitter(),
    stderr: new EventEmitter(),
    env: {},
    pid: 42,
    cwd: () => '/',
    kill: (pid: number, signal: string) => killed.push(`${pid} ${signal}, ${events.listenerCount(signal)} listeners`),
  })
  const clock = new VirtualClock()
  return { running, killed, clock, io: processIo(running as never, clock) }
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('kills a command that does not stop within 1.5 seconds after %s', (signal) => {
  const { running, killed, clock, io } = fakeProcess()
  const { signal: interrupted } = io
  running.emit(signal)
  expect([interrupted.aborted, killed]).toEqual([true, []])
  expect(interrupted.reason).toEqual(new Interrupted(signal))
  clock.step(clock.now() + 1499)
  expect(killed).toEqual([])
  clock.step(clock.now() + 1)
  expect(killed).toEqual([`42 ${signal}, 0 listeners`])
})

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('%s has its default action until the command reads `signal`', (signal) => {
  const { running, io } = fakeProcess()
  expect(running.listenerCount(signal)).toBe(0)
  expect([io.signal, io.signal].map(({ aborted }) => aborted)).toEqual([false, false])
  expect(running.listenerCount(signal)).toBe(1)
})

test.each([
  ['SIGINT', 'SIGINT'],
  ['SIGTERM', 'SIGINT'],
])('kills a command at once on a second signal: %s, %s', (first, second) => {
  const { running, killed, io } = fakeProcess()
  expect(io.signal.aborted).toBe(false)
  running.emit(first)
  running.emit(second)
  expect(killed).toEqual([`42 ${second}, 0 listeners`])
})

test.runIf(process.platform !== 'win32')('a signal ends a command that waits for a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-signal-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const pipe = join(folder, 'ca.crt')
  execFileSync('mkfifo', [pipe])
  const args = ['hooks', 'call', 'https://127.0.0.1:1', 'BeforeClusterCreate', '--ca', pipe]
  const command = spawn(process.execPath, ['packages/cli/bin/capstan.js', ...args], { stdio: 'ignore' })
  onTestFinished(() => void command.kill('SIGKILL'))
  const exited = once(command, 'exit')
  // `open` resolves when the command has opened the pipe. The test writes nothing to the pipe.
  await using _writer = await open(pipe, 'w')
  command.kill('SIGTERM')
  expect(await exited).toEqual([null, 'SIGTERM'])
})
