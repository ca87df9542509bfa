import { expect, test } from 'vitest'
import type { RunningExtension } from './extension-process.ts'
import { HookLines, lineOfLog, lineOfReload, displayPath } from './lines.ts'
import { isExtensionFile } from './watch-folders.ts'

const extension = {
  name: 'quota',
  handlers: [{ name: 'wait', hook: 'BeforeClusterCreate', apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1' }],
} as unknown as RunningExtension

test.each([
  {
    reload: { kind: 'loaded', extension, took: 80, first: true } as const,
    line: 'Extension quota: loaded after 80 ms, handlers: wait (BeforeClusterCreate)',
  },
  {
    reload: { kind: 'loaded', extension, took: 95, first: false } as const,
    line: 'Extension quota: reloaded after 95 ms, handlers: wait (BeforeClusterCreate)',
  },
  {
    reload: { kind: 'notLoaded', problem: 'extension.ts:3: Expression expected', keepsOld: true } as const,
    line: 'extension.ts: not loaded: extension.ts:3: Expression expected (the previous version keeps running)',
  },
  { reload: { kind: 'notLoaded', problem: 'boom', keepsOld: false } as const, line: 'extension.ts: not loaded: boom' },
  {
    reload: { kind: 'ended', why: 'exit code 1' } as const,
    line: 'extension.ts: its process ended (exit code 1): it is started again',
  },
])('formats a reload as "$line"', ({ reload, line }) => {
  const { subject, text } = lineOfReload(reload, 'extension.ts')
  expect(`${subject}: ${text}`).toBe(line)
})

test('log lines of a handler contain its name and the fields, except the hook', () => {
  const fields = { hook: 'BeforeClusterCreate', handler: 'wait', err: 'extension.ts:9: boom', seconds: 3 }
  expect(lineOfLog({ kind: 'log', level: 'error', message: 'Handler failed', fields })).toEqual({
    subject: 'Handler wait',
    event: 'HandlerFailed',
    text: 'Handler failed err=extension.ts:9: boom seconds=3',
  })
})

test('omits calls of topology hooks with the same response as before, until a reload, and omits no other calls', () => {
  const calls = new HookLines()
  const report = (hook: string, message: string) =>
    calls.lineOf({
      hook,
      handlers: ['h.quota'],
      subject: 'Cluster default/demo',
      cluster: 'default/demo',
      answer: { kind: 'proceed', message },
    })?.text
  expect(report('GeneratePatches', '')).toBe('GeneratePatches called on h.quota: proceed')
  expect(report('GeneratePatches', '')).toBeUndefined()
  expect(report('ValidateTopology', '')).toBeDefined()
  expect(report('GeneratePatches', 'differs')).toBe('GeneratePatches called on h.quota: proceed (differs)')
  calls.forget()
  expect(report('GeneratePatches', 'differs')).toBeDefined()
  expect([report('BeforeClusterCreate', ''), report('BeforeClusterCreate', '')]).not.toContain(undefined)
})

test.each([
  { path: '/home/me/quota/extension.ts', folder: '/home/me/quota', as: 'extension.ts' },
  { path: '/home/me/quota/extension.ts', folder: '/home/me', as: 'quota/extension.ts' },
  { path: '/elsewhere/extension.ts', folder: '/home/me', as: '/elsewhere/extension.ts' },
])('in folder $folder the path $path is displayed as $as', ({ path, folder, as }) => expect(displayPath(path, folder)).toBe(as))

test.each([
  { name: 'extension.ts', is: true },
  { name: 'rules.yaml', is: true },
  { name: 'package.json', is: true },
  { name: 'extension.test.ts', is: false },
  { name: '.extension.ts.swp', is: false },
  { name: '.#extension.ts', is: false },
  { name: 'extension.ts~', is: false },
  { name: '4913', is: false },
  { name: 'README.md', is: false },
])('a saved $name is a change of the extension: $is', ({ name, is }) => expect(isExtensionFile(name)).toBe(is))
