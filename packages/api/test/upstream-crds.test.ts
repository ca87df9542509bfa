import { customResourceDefinition, draft, type JSONSchema } from '@capstan/kube'
import { describe, expect, it } from 'vitest'
import { coreKinds } from '../src/index.ts'
import upstream from '../testdata/upstream-crds.json' with { type: 'json' }
import { schemaFacts } from './schema-facts.ts'

interface Facts {
  group: string
  version: string
  names: object
  scope: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  subresources: object
  columns: object[]
  schema: object
}

// Recorded by scripts/upstream-crds.ts. The tests allow no difference from these facts.
const recorded = upstream as unknown as { readonly [kindAndVersion: string]: Facts }
const kindsWithFacts = coreKinds.map((kind) => {
  const { metadata, spec } = customResourceDefinition(kind, { url: 'https://convert' })
  return {
    kind,
    metadata,
    spec,
    facts: Object.values(recorded).filter((version) => 'kind' in version.names && version.names.kind === kind.kind),
  }
})

describe.each(kindsWithFacts)('the CustomResourceDefinition of $kind.kind', ({ kind, metadata, spec, facts }) => {
  it("has upstream's names, scope and labels", () => {
    const { group, names, scope } = spec
    expect({ group, names, scope }).toEqual({ group: facts[0]!.group, names: facts[0]!.names, scope: facts[0]!.scope })
    expect(metadata.labels).toEqual({ 'cluster.x-k8s.io/provider': 'cluster-api', 'clusterctl.cluster.x-k8s.io': '' })
  })

  it("serves, stores and deprecates upstream's versions", () => {
    const versions = (
      list: readonly { served: boolean; storage: boolean; deprecated?: boolean }[],
      nameOf: (version: any) => string,
    ) =>
      list
        .map(
          (version) =>
            `${nameOf(version)}${version.served ? ' served' : ''}${version.storage ? ' stored' : ''}${version.deprecated ? ' deprecated' : ''}`,
        )
        .toSorted((a, b) => (a < b ? -1 : 1))
    expect(versions(spec.versions, ({ name }) => name)).toEqual(versions(facts, ({ version }) => version))
  })

  it.each(facts)("has upstream's subresources and columns in $version", ({ version, subresources, columns }) => {
    const ourVersion = spec.versions.find(({ name }) => name === version)!
    const shown = draft(ourVersion.additionalPrinterColumns ?? [])
    for (const column of shown as { description?: string }[]) delete column.description
    expect({ subresources: ourVersion.subresources ?? {}, columns: shown }).toEqual({ subresources, columns })
  })

  it.each(facts)(
    'has exactly the fields of upstream in $version, with their types, defaults and limits',
    ({ version, schema }) => {
      const ourVersion = spec.versions.find(({ name }) => name === version)!
      expect(schemaFacts(ourVersion.schema!.openAPIV3Schema as JSONSchema)).toEqual(schema)
    },
  )

  it('describes every field at the top of spec and status', () => {
    const { spec, status } = kind.schema.properties!
    const undocumented = [spec, status].flatMap((part) =>
      Object.entries(part?.properties ?? {}).filter(([, field]) => !field.description),
    )
    expect(undocumented.map(([name]) => name)).toEqual([])
  })
})
