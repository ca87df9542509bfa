import { expect, test } from 'vitest'
import { errorText, reasonOf } from './error-lines.ts'

test.each([
  ['returns undefined for a line with a verbosity level', '{"ts":1,"caller":"x.go:1","msg":"Starting","v":0}', undefined],
  ['returns undefined for an empty line', '', undefined],
  [
    'replaces random suffixes and a number of five digits in an error',
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

const connectError = (err: string) =>
  errorText(JSON.stringify({ msg: 'Connect failed', controller: 'clustercache', object: { name: 'demo' }, err }))!

test.each([
  [
    'a refused connection to the API server of a workload cluster',
    'error creating HTTP client and mapper: cluster is not reachable: Get "https://127.0.0.1:20000/?timeout=5s": dial tcp 127.0.0.1:20000: connect: connection refused',
  ],
  [
    'a connection to a workload cluster that has no kubeconfig yet',
    'error creating REST config: error getting kubeconfig secret: Secret "demo-kubeconfig" not found',
  ],
])('reasonOf returns a reason for %s', (_, err) => {
  expect(reasonOf(connectError(err))).toMatch('before its kubeconfig')
})

test.each([
  [
    'a status request to an etcd member',
    'kubeadmcontrolplane: Reconciler error: failed to remove etcd member for deleting Machine team/demo-*: failed to create etcd client: could not establish a connection to etcd members hosted on demo-*: failed to get etcd status: context deadline exceeded',
  ],
  ['a call to an etcd member', 'retrying of unary invoker failed'],
])('reasonOf returns a reason for a timeout of %s', (_, text) => {
  expect(reasonOf(text)).toMatch('etcd members')
})

test.each([
  ['a timeout of another call', 'kubeadmcontrolplane: Reconciler error: failed to list Machines: context deadline exceeded'],
  [
    'a watch whose connection the server refuses',
    'machine: failed to watch: Get "https://ADDRESS/apis": dial tcp ADDRESS: connect: connection refused',
  ],
  ['a conflict', 'machine: Reconciler error: failed to patch Machine team/demo: 409 at N'],
  ['an unauthorized connection to a workload cluster', connectError('error creating HTTP client and mapper: Unauthorized')],
])('reasonOf returns undefined for %s', (_, text) => {
  expect(reasonOf(text)).toBeUndefined()
})
