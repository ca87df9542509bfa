/** Limits of the work for large objects. Long lists are validated in pieces, so that other requests run between the pieces. */
import type { FieldError, Work } from '@capstan/kube'
import { atOnce, PieceSize } from '@capstan/kube'
import { expect, test } from 'vitest'
import { readNulls } from './go-nulls.ts'
import { validatePodTemplate } from './pod/spec.ts'
import { fieldSelector } from './pod/volumes.ts'
import type { PodSpec, Service, ServiceSpec } from './schemas/types.ts'
import { clusterIPErrors, validateService } from './service/validate.ts'

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))

const service = (spec: object): Work<FieldError[]> =>
  validateService({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: spec as ServiceSpec } as Service)
const template = (spec: object): Work<FieldError[]> =>
  validatePodTemplate('template', { metadata: {} as never, spec: spec as PodSpec })
const container = (index: number) => ({ name: `c${index}`, image: 'i' })

test.each<[string, (count: number) => Work<FieldError[]>]>([
  ['source ranges of a Service', (n) => service({ type: 'LoadBalancer', loadBalancerSourceRanges: many(n, () => 'x') })],
  ['ports of a Service', (n) => service({ ports: many(n, (i) => ({ name: `p${i}`, port: 1 + i, protocol: 'TCP' })) })],
  ['external addresses of a Service', (n) => service({ externalIPs: many(n, () => 'x') })],
  ['containers', (n) => template({ containers: many(n, container) })],
  ['init containers', (n) => template({ initContainers: many(n, container) })],
  ['ephemeral containers', (n) => template({ ephemeralContainers: many(n, container) })],
  ['volumes', (n) => template({ volumes: many(n, (i) => ({ name: `v${i}`, emptyDir: {} })) })],
])('%s are validated in pieces', (_, validate) => {
  expect(piecesOf(validate(10 * PieceSize)) - piecesOf(validate(1))).toBe(10)
})

function piecesOf(work: Work<unknown>): number {
  let count = 1
  while (!work.next().done) count++
  return count
}

test('of the errors of 20,000 invalid clusterIPs, only 10,000 have a text', () => {
  const clusterIPs = many(20_000, () => 'x')
  const errors = clusterIPErrors({ type: 'ClusterIP', clusterIP: 'x', clusterIPs } as ServiceSpec)
  expect(errors.length).toBe(20_001)
  expect(errors.filter(({ text }) => text.startsWith('Invalid value: "x"'))).toHaveLength(10_000)
})

test('of the errors of 20,000 invalid ipFamilies, only 10,000 have a text', () => {
  const ipFamilies = many(20_000, () => 'IPv5')
  const errors = clusterIPErrors({ type: 'ClusterIP', ipFamilies } as ServiceSpec)
  expect(errors.length).toBe(39_999)
  expect(errors.filter(({ text }) => text !== '')).toHaveLength(10_000)
})

test.each<[string, string, string]>([
  ['a subscript', "metadata.labels['app']", ''],
  ['no subscript', 'metadata.name', ''],
  ['an empty key', "metadata.labels['']", 'name part must be non-empty'],
  ['a subscript of another field', "spec['x']", 'field label does not support subscript'],
  ['a long text of subscripts', "['".repeat(500_000), 'error converting fieldPath'],
])('a field path with %s is validated', (_, fieldPath, problem) => {
  const errors = fieldSelector('p', { apiVersion: 'v1', fieldPath }, ['metadata.name'])
  expect(errors.map(({ text }) => text).join()).toContain(problem)
  expect(errors.length > 0).toBe(problem !== '')
})

test('decoding nulls reads the fields that an object has, not all fields of its type', () => {
  let reads = 0
  const counted = new Proxy({ name: 'c', image: null } as object, {
    get: (target, field) => (reads++, Reflect.get(target, field)),
  })
  const pod = { metadata: {}, spec: { containers: [counted] } }
  atOnce(readNulls('io.k8s.api.core.v1.Pod', pod))
  expect(pod).toEqual({ metadata: {}, spec: { containers: [{ name: 'c' }] } })
  expect(reads).toBeLessThan(10)
})
