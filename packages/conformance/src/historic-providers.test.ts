/**
 * Tests lint with providers that were released or merged with mistakes. Each test names a commit or tag of the provider, and repeats the
 * contract kinds with the labels, versions and contract fields of their CustomResourceDefinitions there. Lint has the same findings in the
 * complete manifests of the commit or tag.
 */
import { expect, test } from 'vitest'
import { lint } from './lint.ts'
import { type Manifest, providerManifests } from './manifests.ts'
import { rules } from './rules/index.ts'

/** A JSON schema in short: a type, a list of items, a map from any key, or fields. */
type Schema = 'string' | 'integer' | 'boolean' | 'object' | readonly [Schema] | { readonly [field: string]: Schema }

const anyKey = '*'
const mapOf = (values: Schema): Schema => ({ [anyKey]: values })

function jsonSchema(schema: Schema): object {
  if (typeof schema === 'string') return { type: schema }
  if (Array.isArray(schema)) return { type: 'array', items: jsonSchema(schema[0] as Schema) }
  const fields = Object.entries(schema).map(([field, value]) => [field, jsonSchema(value)] as const)
  const [first] = fields
  return first?.[0] === anyKey
    ? { type: 'object', additionalProperties: first[1] }
    : { type: 'object', properties: Object.fromEntries(fields) }
}

interface Version {
  readonly name: string
  readonly spec: Schema
  readonly status?: Schema
}

interface Kind {
  readonly kind: string
  readonly group?: string
  readonly versions: readonly Version[]
  readonly scale?: { readonly [path: string]: string }
}

/** Returns the CustomResourceDefinition of a kind. The last version is the storage version. */
function crd(
  { kind, group = 'infrastructure.cluster.x-k8s.io', versions, scale }: Kind,
  labels: Readonly<Record<string, string>>,
) {
  const plural = `${kind.toLowerCase()}s`
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, listKind: `${kind}List`, categories: ['cluster-api'] },
      conversion: { strategy: versions.length > 1 ? 'Webhook' : 'None' },
      versions: versions.map(({ name, spec, status }) => ({
        name,
        served: true,
        storage: name === versions.at(-1)!.name,
        schema: { openAPIV3Schema: jsonSchema({ spec, ...(status === undefined ? {} : { status }) }) },
        subresources: { ...(status === undefined ? {} : { status: {} }), ...(scale === undefined ? {} : { scale }) },
        additionalPrinterColumns: [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
      })),
    },
  }
}

/** Returns a kind of an infrastructure provider, with the single version v1beta1. */
const kindOf = (kind: string, spec: Schema, status?: Schema): Kind => ({
  kind,
  versions: [{ name: 'v1beta1', spec, ...(status === undefined ? {} : { status }) }],
})

const releaseMetadata = (major: number, minor: number, contract: string) => ({
  apiVersion: 'clusterctl.cluster.x-k8s.io/v1alpha3',
  kind: 'Metadata',
  releaseSeries: [
    { major, minor: minor - 1, contract: 'v1beta1' },
    { major, minor, contract },
  ],
})

const endpoint: Schema = { host: 'string', port: 'integer' }
const addresses: Schema = [{ type: 'string', address: 'string' }]
const oldConditions: Schema = [
  { type: 'string', status: 'string', severity: 'string', reason: 'string', message: 'string', lastTransitionTime: 'string' },
]
const failureDomains = mapOf({ controlPlane: 'boolean', attributes: mapOf('string') })
const failures: Schema = { failureReason: 'string', failureMessage: 'string' }
const templateWithoutMetadata: Schema = { template: { spec: 'object' } }

/** Returns level, rule and kind of each finding of lint, sorted and without duplicates. */
function findings(objects: readonly object[]): string[] {
  const manifests = objects.map((object, index) => ({ object, file: 'components.yaml', line: index + 1 }) as Manifest)
  const found = lint(providerManifests(manifests, { isRendered: false }), rules).findings.map(({ rule, manifest }) => {
    const { spec, kind } = manifest.object as { spec?: { names?: { kind: string } }; kind: string }
    return `${rule.level} ${rule.id} ${spec?.names?.kind ?? kind}`
  })
  return [...new Set(found)].toSorted()
}

test('lint finds that beskar7 before #160 claims v1beta2 with failure domains of v1beta1', () => {
  // projectbeskar/beskar7, commit dfccdee of 2026-06-07
  const labels = { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta1' }
  const initialization: Schema = { provisioned: 'boolean' }
  const kinds = [
    kindOf(
      'Beskar7Cluster',
      { controlPlaneEndpoint: endpoint },
      { conditions: oldConditions, controlPlaneEndpoint: endpoint, failureDomains, initialization, ready: 'boolean' },
    ),
    kindOf(
      'Beskar7Machine',
      { providerID: 'string', inspectionImageURL: 'string', targetImageURL: 'string' },
      { addresses, conditions: oldConditions, ...failures, initialization, phase: 'string', ready: 'boolean' },
    ),
    kindOf('Beskar7MachineTemplate', templateWithoutMetadata),
  ]
  expect(findings(kinds.map((kind) => crd(kind, labels)))).toEqual([
    'MUST infra-cluster.failure-domains Beskar7Cluster',
    'MUST infra-machine.template-fields Beskar7MachineTemplate',
    'SHOULD infra-cluster.conditions Beskar7Cluster',
    'SHOULD infra-cluster.template Beskar7Cluster',
    'SHOULD infra-machine.conditions Beskar7Machine',
  ])
})

test('lint finds that CAPO v0.13 announces v1beta2 in metadata.yaml, and v1beta1 in labels', () => {
  // kubernetes-sigs/cluster-api-provider-openstack, tag v0.13.0; issues 2875 and 2895
  const labels = { 'cluster.x-k8s.io/v1beta1': 'v1beta1' }
  const kinds = [
    kindOf(
      'OpenStackCluster',
      { controlPlaneEndpoint: endpoint, identityRef: { name: 'string', cloudName: 'string', region: 'string' } },
      { failureDomains, ...failures, ready: 'boolean' },
    ),
    kindOf('OpenStackClusterTemplate', templateWithoutMetadata),
    kindOf(
      'OpenStackMachine',
      { providerID: 'string', flavor: 'string' },
      { addresses, conditions: oldConditions, ...failures, instanceID: 'string', ready: 'boolean' },
    ),
    kindOf('OpenStackMachineTemplate', templateWithoutMetadata),
  ]
  expect(findings([...kinds.map((kind) => crd(kind, labels)), releaseMetadata(0, 13, 'v1beta2')])).toEqual([
    'MUST clusterctl.metadata Metadata',
    'MUST infra-cluster.template-fields OpenStackClusterTemplate',
    'MUST infra-machine.template-fields OpenStackMachineTemplate',
    'SHOULD newest-contract OpenStackCluster',
    'SHOULD newest-contract OpenStackClusterTemplate',
    'SHOULD newest-contract OpenStackMachine',
    'SHOULD newest-contract OpenStackMachineTemplate',
  ])
})

test('lint finds that CAPM3 1.11 before #2793 announces v1beta2 in metadata.yaml, and v1beta1 in labels', () => {
  // metal3-io/cluster-api-provider-metal3, commit 82ef4692 of 2025-09-12
  const labels = { 'cluster.x-k8s.io/v1beta1': 'v1beta1' }
  const kinds = [
    kindOf(
      'Metal3Cluster',
      { cloudProviderEnabled: 'boolean', controlPlaneEndpoint: endpoint, noCloudProvider: 'boolean' },
      { conditions: oldConditions, ...failures, lastUpdated: 'string', ready: 'boolean' },
    ),
    kindOf('Metal3ClusterTemplate', templateWithoutMetadata),
    kindOf(
      'Metal3Machine',
      { providerID: 'string', automatedCleaningMode: 'string' },
      { addresses, conditions: oldConditions, ...failures, phase: 'string', ready: 'boolean' },
    ),
    kindOf('Metal3MachineTemplate', { nodeReuse: 'boolean', template: { spec: 'object' } }),
  ]
  expect(findings([...kinds.map((kind) => crd(kind, labels)), releaseMetadata(1, 11, 'v1beta2')])).toEqual([
    'MUST clusterctl.metadata Metadata',
    'MUST infra-cluster.template-fields Metal3ClusterTemplate',
    'MUST infra-machine.template-fields Metal3MachineTemplate',
    'SHOULD newest-contract Metal3Cluster',
    'SHOULD newest-contract Metal3ClusterTemplate',
    'SHOULD newest-contract Metal3Machine',
    'SHOULD newest-contract Metal3MachineTemplate',
  ])
})

test('lint finds that CAPC before #329 claims contract v1beta2 without the fields of this contract', () => {
  // kubernetes-sigs/cluster-api-provider-cloudstack, first parent of merge 32f342c of 2024-05-23. CAPC's own API version v1beta2 is
  // unrelated to contract v1beta2.
  const labels = { 'cluster.x-k8s.io/v1beta1': 'v1beta3', 'cluster.x-k8s.io/v1beta2': 'v1beta3' }
  const versions = ['v1beta1', 'v1beta2', 'v1beta3']
  const kinds: Kind[] = [
    {
      kind: 'CloudStackCluster',
      versions: versions.map((name) => ({
        name,
        spec: { controlPlaneEndpoint: endpoint },
        status: { failureDomains, ready: 'boolean' },
      })),
    },
    {
      kind: 'CloudStackMachine',
      versions: versions.map((name) => ({
        name,
        spec: { providerID: 'string', instanceID: 'string' },
        status: { addresses, instanceState: 'string', ready: 'boolean' },
      })),
    },
    {
      kind: 'CloudStackMachineTemplate',
      versions: versions.map((name) => ({
        name,
        spec: name === 'v1beta3' ? templateWithoutMetadata : { template: { metadata: 'object', spec: 'object' } },
      })),
    },
  ]
  expect(findings([...kinds.map((kind) => crd(kind, labels)), releaseMetadata(0, 4, 'v1beta1')])).toEqual([
    'MUST clusterctl.metadata Metadata',
    'MUST infra-cluster.failure-domains CloudStackCluster',
    'MUST infra-cluster.initialization CloudStackCluster',
    'MUST infra-machine.initialization CloudStackMachine',
    'MUST infra-machine.template-fields CloudStackMachineTemplate',
    'SHOULD infra-cluster.template CloudStackCluster',
  ])
})

test('lint finds that Kamaji before #107 has no template of control planes', () => {
  // clastix/cluster-api-control-plane-provider-kamaji, parent of commit d05ade0 of 2024-06-05
  const kamaji: Kind = {
    kind: 'KamajiControlPlane',
    group: 'controlplane.cluster.x-k8s.io',
    scale: {
      labelSelectorPath: '.status.selector',
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
    },
    versions: [
      {
        name: 'v1alpha1',
        spec: { dataStoreName: 'string', replicas: 'integer', version: 'string' },
        status: {
          conditions: oldConditions,
          externalManagedControlPlane: 'boolean',
          ...failures,
          initialized: 'boolean',
          ready: 'boolean',
          readyReplicas: 'integer',
          replicas: 'integer',
          selector: 'string',
          unavailableReplicas: 'integer',
          updatedReplicas: 'integer',
          version: 'string',
        },
      },
    ],
  }
  expect(findings([crd(kamaji, { 'cluster.x-k8s.io/provider': 'kamaji', 'cluster.x-k8s.io/v1beta1': 'v1alpha1' })])).toEqual([
    'SHOULD control-plane.template KamajiControlPlane',
    'SHOULD newest-contract KamajiControlPlane',
  ])
})
