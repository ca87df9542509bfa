import { describe, expect, test } from 'vitest'
import { etcdCommand, etcdHelp } from './etcd-flags.ts'

test('accepts the flags that controller-runtime passes', () => {
  const argv = [
    '--advertise-client-urls=http://127.0.0.1:4001',
    '--data-dir=/tmp/k8s_test_framework_1',
    '--listen-client-urls=http://127.0.0.1:4001',
    '--listen-peer-urls=http://127.0.0.1:4002',
    '--unsafe-no-fsync=true',
  ]
  expect(etcdCommand(argv)).toEqual({
    kind: 'serve',
    options: { dataDir: '/tmp/k8s_test_framework_1', clientURLs: [new URL('http://127.0.0.1:4001')], isUnsafe: true },
  })
})

describe("parses flags as Go's package flag does, with etcd's defaults", () => {
  const defaults = { dataDir: 'default.etcd', clientURLs: [new URL('http://localhost:2379')], isUnsafe: false }

  test.each<{ argv: string[]; options: object }>([
    { argv: [], options: {} },
    { argv: ['-data-dir', 'd'], options: { dataDir: 'd' } },
    { argv: ['--name', 'one'], options: { dataDir: 'one.etcd' } },
    { argv: ['--unsafe-no-fsync', '--data-dir', 'd'], options: { isUnsafe: true, dataDir: 'd' } },
    { argv: ['--unsafe-no-fsync=false'], options: {} },
    { argv: ['--data-dir=a', '--data-dir=b'], options: { dataDir: 'b' } },
    { argv: ['--data-dir=a=b'], options: { dataDir: 'a=b' } },
    { argv: ['--wal-dir', 'w', '--log-level=error'], options: {} },
    {
      argv: ['--listen-client-urls', 'http://127.0.0.1:1,http://[::1]:1'],
      options: { clientURLs: [new URL('http://127.0.0.1:1'), new URL('http://[::1]:1')] },
    },
  ])('$argv', ({ argv, options }) => {
    expect(etcdCommand(argv)).toEqual({ kind: 'serve', options: { ...defaults, ...options } })
  })
})

test.each<{ argv: string[]; reason: string }>([
  { argv: ['--nope'], reason: 'flag provided but not defined: -nope' },
  { argv: ['--cert-file=c'], reason: 'flag provided but not defined: -cert-file' },
  { argv: ['extra'], reason: '"extra" is not a valid flag' },
  { argv: ['--data-dir'], reason: 'flag needs an argument: -data-dir' },
  { argv: ['--unsafe-no-fsync=x'], reason: 'invalid boolean value "x" for -unsafe-no-fsync: parse error' },
  {
    argv: ['--listen-client-urls=https://127.0.0.1:1'],
    reason: 'invalid value "https://127.0.0.1:1" for flag -listen-client-urls: expected http://HOST:PORT',
  },
])('rejects $argv: $reason', ({ argv, reason }) => {
  expect(etcdCommand(argv)).toEqual({ kind: 'rejected', reason })
})

test('help shows --unsafe-no-fsync at the start of a line, where controller-runtime looks for it', () => {
  expect(etcdCommand(['--help'])).toEqual({ kind: 'help' })
  expect(etcdHelp).toMatch(/^\s*--unsafe-no-fsync\b/m)
})
