import { readFileSync } from 'node:fs'
import type { JSONSchema } from '@capstan/kube'
import { expect, it } from 'vitest'
import { hookCatalog } from './hooks/catalog.ts'
import { hooksOpenApi } from './openapi.ts'
import { type HooksDocument, outlineOf } from './openapi-outline.suite.ts'

const document = hooksOpenApi(hookCatalog, 'v1.14.0')
const group = '/hooks.runtime.cluster.x-k8s.io/v1alpha1'

it('has one path for each hook; all paths except that of Discovery end with the name of the handler', () => {
  const paths = Object.keys(document.paths)
  expect(paths).toHaveLength(17)
  expect(paths.filter((path) => !path.endsWith('/{name}'))).toEqual([`${group}/discovery`])
  expect(document.paths[`${group}/discovery`]).toMatchObject({ post: { operationId: 'hooksRuntimeClusterV1alpha1Discovery' } })
  expect(document.paths[`${group}/aftercontrolplaneupgrade/{name}`]).toMatchObject({
    post: {
      tags: ['Lifecycle Hooks'],
      operationId: 'hooksRuntimeClusterV1alpha1AfterControlPlaneUpgrade',
      parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
    },
  })
})

it('contains exactly the referenced components, without extension keywords at the top of their schemas', () => {
  const text = JSON.stringify(document)
  const { schemas } = document.components
  const referencedNames = [...text.matchAll(/#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!)
  expect(new Set(referencedNames)).toEqual(new Set(Object.keys(schemas)))
  expect(Object.values(schemas).flatMap((schema) => Object.keys(schema).filter((name) => name.startsWith('x-')))).toEqual([])
})

it('is independent of the order of the hooks', () => {
  expect(JSON.stringify(hooksOpenApi([...hookCatalog].reverse(), 'v1.14.0'))).toBe(JSON.stringify(document))
})

it('contains the schema of a request down to the fields of the Cluster', () => {
  const { schemas } = document.components
  const request = schemas['sigs.k8s.io.cluster-api.api.runtime.hooks.v1alpha1.BeforeClusterUpgradeRequest']!
  expect(request.required).toEqual(['apiVersion', 'kind', 'cluster', 'fromKubernetesVersion', 'toKubernetesVersion'])
  expect(request.properties?.['cluster']).toEqual({
    description: 'The Cluster (cluster.x-k8s.io/v1beta2), without status and managed fields.',
    allOf: [{ $ref: '#/components/schemas/sigs.k8s.io.cluster-api.api.core.v1beta2.Cluster' }],
  })
  expect(Object.keys(schemas['sigs.k8s.io.cluster-api.api.core.v1beta2.Cluster']?.properties ?? {})).toEqual([
    'apiVersion',
    'kind',
    'metadata',
    'spec',
  ])
})

it("has only components of upstream's document, and no inline schema with properties", () => {
  const recorded = readFileSync(new URL('../../testdata/hooks-openapi.json', import.meta.url), 'utf8')
  const upstream = new Set(Object.keys((JSON.parse(recorded) as HooksDocument).components.schemas))
  const { schemas } = document.components
  expect(Object.keys(schemas).filter((name) => !upstream.has(name))).toEqual([])
  const inline: string[] = []
  const walk = (schema: JSONSchema, path: string, isComponent = false) => {
    if (schema.properties && !isComponent) inline.push(path)
    for (const [field, property] of Object.entries(schema.properties ?? {})) walk(property, `${path}.${field}`)
    if (schema.items) walk(schema.items, `${path}[]`)
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}{}`)
  }
  for (const [name, schema] of Object.entries(schemas)) walk(schema, name.slice(name.lastIndexOf('.') + 1), true)
  expect(inline).toEqual([])
})

/** Differences from the document that is generated from upstream's types, with reasons. Without `ours`, only upstream has the field. */
const explained: readonly { readonly reason: string; readonly at: RegExp; readonly upstream?: string; readonly ours?: string }[] =
  [
    { reason: 'core leaves the status out', at: / request \.(.*\.)?(cluster|machine|machineSet)\.status(\..*|\[.*)?$/ },
    { reason: 'core leaves out managedFields and selfLink', at: /\.metadata\.(managedFields|selfLink)(\[.*)?$/ },
    {
      reason: 'core always sends apiVersion and kind',
      at: / request \.(apiVersion|kind)$/,
      upstream: 'string',
      ours: 'string required',
    },
    {
      reason: 'a response that does not block may omit it',
      at: / 200 \.retryAfterSeconds$/,
      upstream: 'integer int32 required',
      ours: 'integer int32',
    },
    { reason: 'an empty patch may be omitted', at: /Patch\.patchType$/, upstream: 'string required', ours: 'string' },
    { reason: 'an empty patch may be omitted', at: /Patch\.patch$/, upstream: 'string byte required', ours: 'string byte' },
    {
      reason: 'variables are optional by default',
      at: /\.variables\[\]\.required$/,
      upstream: 'boolean required',
      ours: 'boolean',
    },
  ]

it("has the paths and fields of upstream's document, except for explained differences", () => {
  const recorded = readFileSync(new URL('../../testdata/hooks-openapi.json', import.meta.url), 'utf8')
  const upstream = outlineOf(JSON.parse(recorded) as HooksDocument)
  const ours = outlineOf(document as HooksDocument)
  const usedReasons = new Set<string>()
  const differences = [...new Set([...upstream.keys(), ...ours.keys()])].flatMap((path) => {
    const [upstreamType, ourType] = [upstream.get(path), ours.get(path)]
    if (upstreamType === ourType) return []
    const explanation = explained.find(
      (difference) =>
        difference.at.test(path) &&
        (difference.ours === undefined
          ? ourType === undefined
          : difference.ours === ourType && difference.upstream === upstreamType),
    )
    if (explanation) usedReasons.add(explanation.reason)
    return explanation ? [] : [`${path}: ${ourType}, upstream ${upstreamType}`]
  })
  expect(differences).toEqual([])
  expect(usedReasons).toEqual(new Set(explained.map(({ reason }) => reason)))
})
