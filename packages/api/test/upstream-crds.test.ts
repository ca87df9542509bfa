import type { DeclaredKind } from '@capstan/kube'
import { customResourceDefinition, draft } from '@capstan/kube'
import { describe, expect, it } from 'vitest'
import { Cluster, ClusterClass, ExtensionConfig, Machine, MachineDeployment, MachineSet } from '../src/index.ts'
import upstream from '../testdata/upstream-crds.json' with { type: 'json' }
import { schemaFacts } from './schema-facts.ts'

const kinds: readonly DeclaredKind[] = [Cluster, ClusterClass, Machine, MachineSet, MachineDeployment, ExtensionConfig]

// Made by scripts/upstream-crds.ts. Nothing differs; what ever has to gets a line here, with its reason.
describe.each(kinds)('the CustomResourceDefinition of $kind', (kind) => {
  const { spec } = customResourceDefinition(kind)
  const [version] = spec.versions
  const facts = upstream[kind.kind as keyof typeof upstream]

  it("has upstream's names, scope and subresources", () => {
    const { group, names, scope } = spec
    expect({ group, names, scope, subresources: version!.subresources }).toEqual({
      group: facts.group,
      names: facts.names,
      scope: facts.scope,
      subresources: facts.subresources,
    })
  })

  it("has upstream's columns", () => {
    const columns = draft(version!.additionalPrinterColumns!)
    for (const column of columns as { description?: string }[]) delete column.description
    expect(columns).toEqual(facts.columns)
  })

  it("has every field of upstream's, with its type, default and limits, and no other", () => {
    expect(schemaFacts(version!.schema!.openAPIV3Schema!)).toEqual(facts.schema)
  })

  it('says of every field at the top of spec and status what it is', () => {
    const { spec, status } = kind.schema.properties!
    const silent = [spec, status].flatMap((part) => Object.entries(part!.properties!).filter(([, field]) => !field.description))
    expect(silent.map(([name]) => name)).toEqual([])
  })
})
