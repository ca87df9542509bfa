import { expect, test } from 'vitest'
import type { Pod } from '../../kinds/schemas/types.ts'
import { existingPodWarnings } from './existing-pods.ts'

const baseline = { level: 'baseline', version: 'latest' } as const
const neverOver = () => false
const head = 'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"'

const pod = (name: string, spec: object = {}, owner?: string) =>
  ({
    metadata: { name, ...(owner === undefined ? {} : { ownerReferences: [{ controller: true, uid: owner }] }) },
    spec: { containers: [{ name: 'c' }], ...spec },
  }) as unknown as Pod

test('pods that violate the same checks cause one warning, which names the first pod in alphabetical order', () => {
  const pods = [
    pod('z', { hostPID: true }),
    pod('good'),
    pod('b', { hostNetwork: true, volumes: [{ name: 'v', hostPath: {} }] }),
    pod('m', { hostIPC: true }),
    pod('k', { hostPID: true }),
    pod('c', { volumes: [{ name: 'v', hostPath: {} }] }),
    pod('d', { volumes: [{ name: 'w', hostPath: {} }] }),
  ]
  expect(existingPodWarnings('ns', pods, baseline, neverOver)).toEqual([
    head,
    'b: host namespaces, hostPath volumes',
    'c (and 1 other pod): hostPath volumes',
    'k (and 2 other pods): host namespaces',
  ])
})

test('pods that satisfy the standard cause no warning', () => {
  expect(existingPodWarnings('ns', [pod('a'), pod('b')], baseline, neverOver)).toEqual([])
  expect(existingPodWarnings('ns', [], baseline, neverOver)).toEqual([])
})

test('at most 3000 pods are checked, beginning with pods without a controller and one pod of each controller', () => {
  const replicas = Array.from({ length: 3000 }, (_, index) => pod(`r-${index}`, { hostPID: true }, 'set'))
  const others = [pod('alone', { hostIPC: true }), pod('owned', { volumes: [{ name: 'v', hostPath: {} }] }, 'job')]
  expect(existingPodWarnings('ns', [...replicas, ...others], baseline, neverOver)).toEqual([
    'new PodSecurity enforce level only checked against the first 3000 of 3002 existing pods',
    head,
    'alone (and 2998 other pods): host namespaces',
    'owned: hostPath volumes',
  ])
})

test('the check stops when its time is over', () => {
  let checks = 0
  const pods = ['a', 'b', 'c'].map((name) => pod(name, { hostPID: true }))
  expect(existingPodWarnings('ns', pods, baseline, () => ++checks === 2)).toEqual([
    'new PodSecurity enforce level only checked against the first 2 of 3 existing pods',
    head,
    'a (and 1 other pod): host namespaces',
  ])
})
