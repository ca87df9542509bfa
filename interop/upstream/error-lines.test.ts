import { expect, test } from 'vitest'
import { errorText, reasonOf } from './error-lines.ts'

test.each([
  ['returns undefined for a line of information', '{"ts":1,"caller":"x.go:1","msg":"Starting","v":0}', undefined],
  ['returns undefined for an empty line', '', undefined],
  [
    'replaces random suffixes and numbers in an error',
    '{"ts":1,"msg":"Reconciler error","controller":"machine","object":{"name":"demo-x7k2q"},"err":"failed to patch Machine team/demo-md-0-b4n7c-x7k2q: 409 at 12345"}',
    'machine: Reconciler error: failed to patch Machine team/demo-md-0-*: 409 at N',
  ],
  [
    'replaces an address and a duration in an error',
    '{"msg":"failed","err":"Get \\"https://127.0.0.1:20000/?timeout=10s\\": dial tcp 127.0.0.1:20000: connect: connection refused"}',
    'failed: Get "https://ADDRESS/?timeout=DURATION": dial tcp ADDRESS: connect: connection refused',
  ],
  [
    'replaces a time and an address in a line that is not JSON',
    '2026/01/01 00:00:00 http: TLS handshake error from 127.0.0.1:4711: EOF',
    'TIME http: TLS handshake error from ADDRESS: EOF',
  ],
])('errorText %s', (_, line, text) => {
  expect(errorText(line)).toBe(text)
})

const connect = (err: string) =>
  errorText(JSON.stringify({ msg: 'Connect failed', controller: 'clustercache', object: { name: 'demo' }, err }))!

test.each([
  [
    'a workload cluster whose API server does not listen yet',
    'error creating HTTP client and mapper: cluster is not reachable: Get "https://127.0.0.1:20000/?timeout=5s": dial tcp 127.0.0.1:20000: connect: connection refused',
  ],
  [
    'a workload cluster without kubeconfig yet',
    'error creating REST config: error getting kubeconfig secret: Secret "demo-kubeconfig" not found',
  ],
])('%s may be logged on either server', (_, err) => {
  expect(reasonOf(connect(err))).toMatch('before its kubeconfig')
})

test.each([
  [
    'a status request to an etcd member',
    'kubeadmcontrolplane: Reconciler error: failed to remove etcd member for deleting Machine team/demo-*: failed to create etcd client: could not establish a connection to etcd members hosted on demo-*: failed to get etcd status: context deadline exceeded',
  ],
  ['a call to an etcd member', 'retrying of unary invoker failed'],
])('%s may time out on either server', (_, text) => {
  expect(reasonOf(text)).toMatch('etcd members')
})

test.each([
  ['another timeout', 'kubeadmcontrolplane: Reconciler error: failed to list Machines: context deadline exceeded'],
  [
    'a server that refuses the connection of a watch',
    'machine: failed to watch: Get "https://ADDRESS/apis": dial tcp ADDRESS: connect: connection refused',
  ],
  ['a conflict', 'machine: Reconciler error: failed to patch Machine team/demo: 409 at N'],
  ['another connection error', connect('error creating HTTP client and mapper: Unauthorized')],
])('%s counts as a difference between the servers', (_, text) => {
  expect(reasonOf(text)).toBeUndefined()
})
