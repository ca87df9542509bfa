import { Cluster, hookApiVersion, hookCatalog, Machine, MachineSet } from '@capstan/api'
import { structural } from '@capstan/kube'
import { describe, expect, it, test } from 'vitest'
import { fixture } from './fixtures.ts'
import { decodeWire, missingFields } from '../wire/wire.ts'

describe.each(hookCatalog.map((hook) => [hook.name, hook] as const))('the fixture of %s', (_, hook) => {
  const request = { apiVersion: hookApiVersion(hook), kind: `${hook.name}Request`, ...(fixture(hook) as object) }

  it('has the required fields of the request, and no unknown fields', () => {
    const decoded = decodeWire(JSON.stringify(request), hook.request, `${hook.name}Request`, 'request')
    expect(decoded).toEqual(request)
    expect(missingFields(decoded, hook.request)).toEqual([])
  })

  it('contains no Cluster, Machine or MachineSet that is invalid by its schema', () => {
    const problems = objectsIn(request).flatMap((object) => {
      const kind = [Cluster, Machine, MachineSet].find((candidate) => candidate.kind === object.kind)
      return kind
        ? structural(kind.schema)
            .validateSchema(object)
            .map(({ field, text }) => `${field}: ${text}`)
        : []
    })
    expect(problems).toEqual([])
  })
})

test('changes of one fixture do not affect the next fixture', () => {
  const [hook] = hookCatalog.filter(({ name }) => name === 'BeforeClusterCreate')
  const first = fixture(hook!) as unknown as { cluster: { metadata: { name: string } } }
  first.cluster.metadata.name = 'other'
  expect(fixture(hook!)).toMatchObject({ cluster: { metadata: { name: 'demo' } } })
})

function objectsIn(value: unknown): { kind: string }[] {
  if (typeof value !== 'object' || value === null) return []
  const objects = 'kind' in value && 'spec' in value ? [value as { kind: string }] : []
  return [...objects, ...Object.values(value).flatMap(objectsIn)]
}
