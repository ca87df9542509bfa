import { EventEmitter } from 'node:events'
import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { processIo } from './process-io.ts'

/** A fake process with signals that records how it ends. */
function aProcess() {
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

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('a command that does not stop is ended 1.5 seconds after %s', (signal) => {
  const { running, killed, clock, io } = aProcess()
  running.emit(signal)
  expect([io.signal.aborted, killed]).toEqual([true, []])
  clock.step(clock.now() + 1499)
  expect(killed).toEqual([])
  clock.step(clock.now() + 1)
  expect(killed).toEqual([`42 ${signal}, 0 listeners`])
})

test.each([
  ['SIGINT', 'SIGINT'],
  ['SIGTERM', 'SIGINT'],
])('a second signal ends a command at once: %s, %s', (first, second) => {
  const { running, killed } = aProcess()
  running.emit(first)
  running.emit(second)
  expect(killed).toEqual([`42 ${second}, 0 listeners`])
})
