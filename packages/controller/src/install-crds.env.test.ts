/** Tests repeated installations of CRDs, and the installation of CRDs that other programs have installed before, or install later. */
import { memoryStore } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import {
  type Client,
  createClient,
  CustomResourceDefinition,
  customResourceDefinition,
  defineKind,
  type Input,
  type KubeObject,
  s,
  seededRandom,
  silent,
  VirtualClock,
} from '@capstan/kube'
import { makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { installKinds } from './install-crds.ts'

const widget = (version: string) =>
  defineKind({
    group: 'shop.example.com',
    version,
    kind: 'Widget',
    plural: 'widgets',
    scope: 'Namespaced',
    doc: `Ours, of ${version}.`,
    spec: s.object({ width: s.int32().optional() }),
    labels: { 'cluster.x-k8s.io/provider': 'shop' },
  })
const name = 'widgets.shop.example.com'
const clock = new VirtualClock()
const random = seededRandom(1)

let server: ReturnType<typeof createApiServer>
let client: Client
beforeEach(async () => {
  server = createApiServer({ store: memoryStore(), clock, random, log: silent })
  await server.ready
  client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
})
afterEach(() => server.close())

/** Returns our CRD as another program installs it: with another description, a further version and a conversion webhook. */
function foreignCRD(): Input<CustomResourceDefinition> {
  const definition = structuredClone(customResourceDefinition(widget('v2'))) as Input<CustomResourceDefinition>
  const [v2] = definition.spec.versions
  v2!.schema!.openAPIV3Schema!.description = 'Theirs.'
  definition.spec.versions.push({ ...structuredClone(v2!), name: 'v1', storage: false })
  const clientConfig = { url: 'https://127.0.0.1:1/convert' }
  definition.spec.conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } }
  return definition
}
const versions = async () =>
  (await client.get(CustomResourceDefinition, { name })).spec.versions.map(({ name, served, storage }) => ({
    name,
    served,
    storage,
  }))

test('keeps the further version and the conversion in a CRD of another program, and replaces the schema of our version', async () => {
  await client.apply(CustomResourceDefinition, foreignCRD() as never, { fieldManager: 'kubectl' })
  await installKinds(client, [widget('v2')], { clock, random })
  expect(await versions()).toEqual([
    { name: 'v2', served: true, storage: true },
    { name: 'v1', served: true, storage: false },
  ])
  const { spec } = await client.get(CustomResourceDefinition, { name })
  expect(spec.conversion?.webhook?.clientConfig?.url).toBe('https://127.0.0.1:1/convert')
  expect(spec.versions[0]!.schema?.openAPIV3Schema?.description).toBe('Ours, of v2.')
})

describe('the address of a conversion webhook', async () => {
  const { certificate } = await makeAuthority(clock, { commonName: 'webhooks' })
  const service = { namespace: 'capi-system', name: 'webhooks', path: '/convert' }
  const url = 'https://127.0.0.1:9444/convert'
  const [inCluster, outside] = [{ service, caBundle: Buffer.from(certificate).toString('base64') }, { url }]
  const same = ({ spec }: KubeObject & { spec?: object }) => ({ spec })
  const converted = { ...widget('v2'), versions: [{ kind: widget('v1'), toStored: same, fromStored: same }] } as never

  test.each([
    ['from a Service to a URL', inCluster, outside, outside],
    ['from a URL to a Service', outside, inCluster, { ...inCluster, service: { ...service, port: 443 } }],
  ])('changes %s when the kinds are installed again', async (_, before, after, expected) => {
    await installKinds(client, [converted], { clock, random, conversion: before })
    await installKinds(client, [converted], { clock, random, conversion: after })
    const { spec } = await client.get(CustomResourceDefinition, { name })
    expect(spec.conversion?.webhook?.clientConfig).toEqual(expected)
  })
})

test('another program applies its CRD over ours without a conflict, whether we have created or updated ours', async () => {
  await installKinds(client, [widget('v2')], { clock, random })
  await client.apply(CustomResourceDefinition, foreignCRD() as never, { fieldManager: 'kubectl' })
  expect((await versions()).map((version) => version.name)).toEqual(['v2', 'v1'])
  await installKinds(client, [widget('v2')], { clock, random })
  await client.apply(CustomResourceDefinition, foreignCRD() as never, { fieldManager: 'kubectl' })
  const { spec, metadata } = await client.get(CustomResourceDefinition, { name })
  expect(spec.versions[0]!.schema?.openAPIV3Schema?.description).toBe('Theirs.')
  expect(metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`).sort()).toContain('kubectl Apply')
})

test('installing the same kinds again does not change their CRDs', async () => {
  await installKinds(client, [widget('v2')], { clock, random })
  const before = await client.get(CustomResourceDefinition, { name })
  await installKinds(client, [widget('v2')], { clock, random })
  expect((await client.get(CustomResourceDefinition, { name })).metadata.resourceVersion).toBe(before.metadata.resourceVersion)
})
