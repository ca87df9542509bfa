/**
 * Tests lint with mistakes of providers, each in manifests that are otherwise valid. An issue in a title, such as openstack#2895 (of
 * cluster-api-provider-openstack), reports a provider that made the mistake, or a difference between core and upstream's book.
 */
import { expect, test } from 'vitest'
import { lint } from './lint.ts'
import { MalformedManifest, type Manifest, providerManifests } from './manifests.ts'
import { isChecked, linkOf } from './rule.ts'
import { rules } from './rules/index.ts'
import { sarif } from './sarif.ts'

/** The tests change any field of schemas and manifests. */
// biome-ignore lint/suspicious/noExplicitAny: objects of any shape
type Any = any

const string = () => ({ type: 'string' })
const integer = () => ({ type: 'integer' })
const boolean = () => ({ type: 'boolean' })
const object = (properties: Any = {}): Any => ({ type: 'object', properties })
const listOf = (items: Any): Any => ({ type: 'array', items })
const metadata = () => object({ labels: object(), annotations: object() })
const condition = () => object({ type: string(), status: string(), reason: string(), message: string() })

function crd(group: string, kind: string, spec: Any, status: Any, scale?: Any): Any {
  const plural = `${kind.toLowerCase()}s`
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${group}`,
      labels: { 'cluster.x-k8s.io/v1beta2': 'v1', 'cluster.x-k8s.io/provider': 'infrastructure-foo' },
    },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, listKind: `${kind}List`, categories: ['cluster-api'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: object({ spec: object(spec), ...(status ? { status: object(status) } : {}) }) },
          subresources: { ...(status ? { status: {} } : {}), ...(scale ? { scale } : {}) },
          additionalPrinterColumns: [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
        },
      ],
    },
  }
}

const templateOf = (group: string, kind: string, spec: Any = {}): Any =>
  crd(group, `${kind}Template`, { template: object({ metadata: metadata(), spec: object(spec) }) }, undefined)

const infrastructure = 'infrastructure.cluster.x-k8s.io'
const bootstrap = 'bootstrap.cluster.x-k8s.io'
const controlPlane = 'controlplane.cluster.x-k8s.io'

/**
 * Returns, by kind, the CustomResourceDefinitions of a provider that implements the contracts InfraCluster, InfraMachine, InfraMachinePool,
 * BootstrapConfig and ControlPlane and violates no rule.
 */
function provider(): Record<string, Any> {
  const provisioned = () => object({ provisioned: boolean() })
  const machineTemplate = () =>
    object({
      metadata: metadata(),
      spec: object({
        infrastructureRef: object({ apiGroup: string(), kind: string(), name: string() }),
        deletion: object({
          nodeDrainTimeoutSeconds: integer(),
          nodeVolumeDetachTimeoutSeconds: integer(),
          nodeDeletionTimeoutSeconds: integer(),
        }),
      }),
    })
  const crds = [
    crd(
      infrastructure,
      'FooCluster',
      { controlPlaneEndpoint: object({ host: string(), port: integer() }) },
      {
        initialization: provisioned(),
        conditions: listOf(condition()),
        failureDomains: listOf(object({ name: string(), controlPlane: boolean(), attributes: object() })),
      },
    ),
    templateOf(infrastructure, 'FooCluster'),
    crd(
      infrastructure,
      'FooMachine',
      { providerID: string() },
      { initialization: provisioned(), addresses: listOf(object({ type: string(), address: string() })) },
    ),
    templateOf(infrastructure, 'FooMachine', { size: string() }),
    crd(
      infrastructure,
      'FooMachinePool',
      { providerIDList: listOf(string()) },
      { initialization: provisioned(), ready: boolean(), replicas: integer(), infrastructureMachineKind: string() },
    ),
    templateOf(infrastructure, 'FooMachinePool'),
    crd(bootstrap, 'FooConfig', {}, { initialization: object({ dataSecretCreated: boolean() }), dataSecretName: string() }),
    templateOf(bootstrap, 'FooConfig'),
    crd(
      controlPlane,
      'FooControlPlane',
      { replicas: integer(), version: string(), machineTemplate: machineTemplate() },
      {
        initialization: object({ controlPlaneInitialized: boolean() }),
        replicas: integer(),
        readyReplicas: integer(),
        availableReplicas: integer(),
        upToDateReplicas: integer(),
        selector: string(),
        versions: listOf(object({ version: string() })),
      },
      {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
    ),
    templateOf(controlPlane, 'FooControlPlane', { machineTemplate: object({ metadata: metadata() }) }),
  ]
  return Object.fromEntries(crds.map((definition) => [definition.spec.names.kind, definition]))
}

const statusOf = (crd: Any): Any => crd.spec.versions[0].schema.openAPIV3Schema.properties.status.properties
const specOf = (crd: Any): Any => crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties

const manifestsOf = (objects: readonly Any[]): Manifest[] =>
  objects.map((object, index) => ({ object, file: 'components.yaml', line: index + 1 }))

function findingsOf(
  objects: readonly Any[],
  options: Partial<Parameters<typeof providerManifests>[1]> = {},
): { rule: string; path: string; message: string }[] {
  const { findings } = lint(providerManifests(manifestsOf(objects), { isRendered: false, ...options }), rules)
  return findings.map(({ rule, path, message }) => ({ rule: rule.id, path, message }))
}

test('manifests that follow every rule have no findings', () => {
  expect(findingsOf(Object.values(provider()))).toEqual([])
})

const claimV1Beta1 = (definition: Any) => {
  definition.metadata.labels = { 'cluster.x-k8s.io/v1beta1': 'v1' }
}

const mistakes: readonly [name: string, make: (kinds: Record<string, Any>) => void, rules: readonly string[]][] = [
  [
    'a CustomResourceDefinition whose name core cannot compute',
    ({ FooCluster }) => void (FooCluster.metadata.name = `fooclusteren.${infrastructure}`),
    ['crd-name'],
  ],
  ['cluster scope', ({ FooCluster }) => void (FooCluster.spec.scope = 'Cluster'), ['namespaced-scope']],
  ['a wrong list kind', ({ FooCluster }) => void (FooCluster.spec.names.listKind = 'Foos'), ['list-kind']],
  [
    'a template without contract label (cluster-api#3307)',
    ({ FooMachineTemplate }) => void (FooMachineTemplate.metadata.labels = {}),
    ['contract-label'],
  ],
  [
    'a label for a version that does not exist (cloudstack#329)',
    ({ FooMachine }) => void (FooMachine.metadata.labels['cluster.x-k8s.io/v1beta2'] = 'v1_v2'),
    ['label-versions'],
  ],
  [
    'the label of an older contract for a version that does not exist',
    ({ FooMachine }) => void (FooMachine.metadata.labels['cluster.x-k8s.io/v1beta1'] = 'v1beta1'),
    ['other-label-versions'],
  ],
  [
    'a v1beta1 status of a kind with only the v1beta2 label (kubevirt#391)',
    ({ FooCluster }) => {
      delete statusOf(FooCluster).initialization
      statusOf(FooCluster).ready = boolean()
    },
    ['infra-cluster.initialization'],
  ],
  [
    'failure domains as a map under contract v1beta2 (beskar7#160)',
    ({ FooCluster }) =>
      void (statusOf(FooCluster).failureDomains = { type: 'object', additionalProperties: object({ controlPlane: boolean() }) }),
    ['infra-cluster.failure-domains'],
  ],
  [
    'failure domains without names',
    ({ FooCluster }) => void (statusOf(FooCluster).failureDomains = listOf(object({ controlPlane: boolean() }))),
    ['infra-cluster.failure-domains'],
  ],
  [
    'conditions with a severity under contract v1beta2 (openstack#2895)',
    ({ FooCluster }) => void (statusOf(FooCluster).conditions.items.properties.severity = string()),
    ['infra-cluster.conditions'],
  ],
  [
    'a kind with only contract v1beta1 (hetzner#2017)',
    ({ FooConfig }) => {
      claimV1Beta1(FooConfig)
      statusOf(FooConfig).ready = boolean()
    },
    ['newest-contract'],
  ],
  [
    'a pool without status.ready (cluster-api#14030)',
    ({ FooMachinePool }) => void delete statusOf(FooMachinePool).ready,
    ['infra-machine-pool.both-ready'],
  ],
  [
    'a pool with neither status.ready nor status.initialization',
    ({ FooMachinePool }) => {
      delete statusOf(FooMachinePool).ready
      delete statusOf(FooMachinePool).initialization
    },
    ['infra-machine-pool.initialization', 'infra-machine-pool.both-ready', 'infra-machine-pool.both-ready'],
  ],
  [
    'provider IDs that are not strings',
    ({ FooMachinePool }) => void (specOf(FooMachinePool).providerIDList.items = integer()),
    ['infra-machine-pool.provider-id-list'],
  ],
  [
    'a pool without replicas',
    ({ FooMachinePool }) => void delete statusOf(FooMachinePool).replicas,
    ['infra-machine-pool.replicas'],
  ],
  [
    'a pool with Machines of a kind that is not shipped (cluster-api#9005)',
    (kinds) => {
      delete kinds.FooMachine
      delete kinds.FooMachineTemplate
    },
    ['infra-machine-pool.machine-kind'],
  ],
  ['a machine without provider ID', ({ FooMachine }) => void delete specOf(FooMachine).providerID, ['infra-machine.provider-id']],
  [
    'addresses as strings',
    ({ FooMachine }) => void (statusOf(FooMachine).addresses = listOf(string())),
    ['infra-machine.addresses'],
  ],
  [
    'a missing scale subresource',
    ({ FooControlPlane }) => void delete FooControlPlane.spec.versions[0].subresources.scale,
    ['control-plane.scale'],
  ],
  [
    'a scale subresource without selector',
    ({ FooControlPlane }) => void delete FooControlPlane.spec.versions[0].subresources.scale.labelSelectorPath,
    ['control-plane.scale'],
  ],
  [
    'a control plane that reports no version',
    ({ FooControlPlane }) => void delete statusOf(FooControlPlane).versions,
    ['control-plane.version'],
  ],
  [
    'a missing counter of up-to-date replicas',
    ({ FooControlPlane }) => void delete statusOf(FooControlPlane).upToDateReplicas,
    ['control-plane.replicas'],
  ],
  [
    'a missing drain timeout (talos#258)',
    ({ FooControlPlane }) =>
      void delete specOf(FooControlPlane).machineTemplate.properties.spec.properties.deletion.properties.nodeDrainTimeoutSeconds,
    ['control-plane.machines'],
  ],
  [
    'rolloutAfter where contract v1beta1 had it',
    ({ FooControlPlane }) => void (specOf(FooControlPlane).rolloutAfter = string()),
    ['control-plane.rollout-after'],
  ],
  [
    'a control plane without template (cluster-stacks#25)',
    (kinds) => void delete kinds.FooControlPlaneTemplate,
    ['control-plane.template'],
  ],
  ['a machine without template', (kinds) => void delete kinds.FooMachineTemplate, ['infra-machine.template']],
  [
    'a template without metadata',
    ({ FooMachineTemplate }) => void delete specOf(FooMachineTemplate).template.properties.metadata,
    ['infra-machine.template-fields'],
  ],
  [
    'a missing status subresource',
    ({ FooCluster }) => void delete FooCluster.spec.versions[0].subresources.status,
    ['status-subresource'],
  ],
  [
    'two served versions without conversion (openstack#2940)',
    ({ FooCluster }) => {
      const old = structuredClone(FooCluster.spec.versions[0])
      old.name = 'v1beta1'
      old.schema.openAPIV3Schema.properties.spec.properties.region = string()
      FooCluster.spec.versions.push(old)
    },
    ['conversion'],
  ],
  [
    'a default that a newer version of a template adds (cluster-api#6093)',
    ({ FooMachineTemplate }) => {
      FooMachineTemplate.spec.conversion = { strategy: 'Webhook' }
      FooMachineTemplate.spec.versions.push({ ...structuredClone(FooMachineTemplate.spec.versions[0]), name: 'v1beta1' })
      specOf(FooMachineTemplate).template.properties.spec.properties.size.default = 'small'
    },
    ['template-defaults'],
  ],
  [
    'a missing data secret name',
    ({ FooConfig }) => void delete statusOf(FooConfig).dataSecretName,
    ['bootstrap-config.data-secret'],
  ],
  [
    'missing printer columns',
    ({ FooCluster }) => void delete FooCluster.spec.versions[0].additionalPrinterColumns,
    ['printer-columns'],
  ],
  [
    'a capacity that is not a map (autoscaling from zero)',
    ({ FooMachineTemplate }) =>
      void (FooMachineTemplate.spec.versions[0].schema.openAPIV3Schema.properties.status = object({ capacity: string() })),
    ['infra-machine.autoscaling-from-zero'],
  ],
  [
    'readiness gates that are not a list',
    ({ FooControlPlane }) => void (specOf(FooControlPlane).machineTemplate.properties.spec.properties.readinessGates = object()),
    ['control-plane.readiness-gates-and-taints'],
  ],
  [
    'externalManagedControlPlane as a string',
    ({ FooControlPlane }) => void (statusOf(FooControlPlane).externalManagedControlPlane = string()),
    ['control-plane.externally-managed'],
  ],
  [
    'an endpoint of a control plane whose port is a string',
    ({ FooControlPlane }) => void (specOf(FooControlPlane).controlPlaneEndpoint = object({ host: string(), port: string() })),
    ['control-plane.endpoint'],
  ],
  ['a missing category', ({ FooCluster }) => void delete FooCluster.spec.names.categories, ['short-names']],
]

test.each(mistakes)('lint reports %s, and no other mistake', (_, make, expected) => {
  const kinds = provider()
  make(kinds)
  expect(findingsOf(Object.values(kinds)).map(({ rule }) => rule)).toEqual(expected)
})

test('the suggested edit for a missing field mentions the controller only if the field is in the status', () => {
  const { FooMachine, FooMachineTemplate } = provider()
  delete statusOf(FooMachine).initialization
  delete specOf(FooMachineTemplate).template.properties.metadata
  const { findings } = lint(providerManifests(manifestsOf([FooMachine, FooMachineTemplate]), { isRendered: false }), rules)
  expect(findings.map(({ edit }) => edit)).toEqual([
    'Add status.initialization.provisioned (boolean) to version v1, and let the controller set it.',
    'Add spec.template.metadata (object) to version v1.',
  ])
})

test('the CustomResourceDefinition of an IPAM pool must have the name that core computes, and status.conditions', () => {
  const group = 'ipam.cluster.x-k8s.io'
  const pool = () => crd(group, 'FooIPPool', {}, { conditions: listOf(condition()) })
  // Only kinds that end with Pool, in groups with the part `ipam`, count as pools.
  expect(findingsOf([pool(), crd(group, 'IPAddress', {}, {}), crd('foo.com', 'ConnectionPool', {}, {})])).toEqual([])

  const renamed = pool()
  renamed.metadata.name = `foopools.${group}`
  expect(findingsOf([renamed])).toEqual([
    {
      rule: 'ipam.pool-crd',
      path: 'metadata.name',
      message: `Name is foopools.${group}, expected fooippools.${group} for kind FooIPPool`,
    },
  ])
  expect(findingsOf([crd(group, 'FooIPPool', {}, {})])).toMatchObject([
    { rule: 'ipam.pool-conditions', message: 'Version v1 has no status.conditions, expected a list' },
  ])
})

const metadataFile = (...series: Any[]): Any => ({
  apiVersion: 'clusterctl.cluster.x-k8s.io/v1alpha3',
  kind: 'Metadata',
  releaseSeries: series,
})

test('release metadata must have the contract of the labels, and a series for the release', () => {
  const { FooMachine, FooMachineTemplate } = provider()
  const metadataWith = (contract: string) =>
    metadataFile({ major: 0, minor: 1, contract: 'v1beta1' }, { major: 1, minor: 2, contract })
  const kinds = [FooMachine, FooMachineTemplate]
  expect(findingsOf([...kinds, metadataWith('v1beta2')])).toEqual([])
  expect(findingsOf([...kinds, metadataWith('v1beta2')], { release: 'v1.2.9' })).toEqual([])
  expect(findingsOf([...kinds, metadataWith('v1beta1')])).toEqual([
    {
      rule: 'clusterctl.metadata',
      path: 'releaseSeries[1].contract',
      message: `Series 1.2 has contract v1beta1, the newest label of foomachines.${infrastructure}, foomachinetemplates.${infrastructure} is v1beta2`,
    },
  ])
  expect(findingsOf([...kinds, metadataWith('v1beta2')], { release: 'v1.3.0' })).toMatchObject([
    { rule: 'clusterctl.metadata', message: 'No series covers release v1.3.0' },
  ])
  expect(findingsOf([...kinds, metadataFile()])).toMatchObject([{ message: 'releaseSeries is empty' }])
})

test("manifests with roles need an aggregated role with all verbs for kinds outside of upstream's groups", () => {
  const group = 'infrastructure.foo.com'
  const { FooMachine: own } = provider()
  const kinds = [
    { ...own, metadata: { ...own.metadata, name: `foomachines.${group}` }, spec: { ...own.spec, group } },
    templateOf(group, 'FooMachine'),
  ]
  const role = (labels: Any, verbs: string[]) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'capi', labels },
    rules: [{ apiGroups: [group], resources: ['foomachines', 'foomachinetemplates'], verbs }],
  })
  const aggregated = { 'cluster.x-k8s.io/aggregate-to-manager': 'true' }
  const allVerbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']
  expect(findingsOf(kinds)).toEqual([])
  expect(findingsOf([...kinds, role(aggregated, allVerbs)])).toEqual([])
  expect(findingsOf([...kinds, role(aggregated, ['*'])])).toEqual([])
  expect(findingsOf([...kinds, role({}, allVerbs)]).map(({ rule }) => rule)).toEqual(['foreign-group-role', 'foreign-group-role'])
  expect(findingsOf([...kinds, role(aggregated, ['get', 'list', 'watch'])])[0]!.message).toMatch(
    /^Core is not allowed to create, delete, patch, update foomachines\.infrastructure\.foo\.com/,
  )
})

test('manifests with roles need a role that allows updates of the finalizers of kinds that own Machines', () => {
  const { FooControlPlane, FooControlPlaneTemplate, FooMachinePool, FooMachinePoolTemplate } = provider()
  const kinds = [FooControlPlane, FooControlPlaneTemplate, FooMachinePool, FooMachinePoolTemplate]
  const role = (resources: string[], verbs = ['update']) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'foo-manager' },
    rules: [{ apiGroups: [controlPlane, infrastructure], resources, verbs }],
  })
  const owners = ['foocontrolplanes', 'foomachinepools']
  const finalizers = owners.map((resource) => `${resource}/finalizers`)
  const messagesOf = (...roles: Any[]) =>
    findingsOf([...kinds, ...roles])
      .filter(({ rule }) => rule === 'owner-finalizers-role')
      .map(({ message }) => message)
  expect(messagesOf()).toEqual([])
  expect(messagesOf(role(finalizers))).toEqual([])
  expect(messagesOf(role([finalizers[0]!]), role([finalizers[1]!]))).toEqual([])
  expect(messagesOf(role(['*/finalizers']))).toEqual([])
  expect(messagesOf(role(['*'], ['*']))).toEqual([])
  expect(messagesOf(role(owners))).toEqual([
    `No role allows updates of foocontrolplanes/finalizers in group ${controlPlane}`,
    `No role allows updates of foomachinepools/finalizers in group ${infrastructure}`,
  ])
  expect(messagesOf(role([finalizers[0]!]), role([finalizers[1]!], ['get']))).toEqual([
    `No role allows updates of foomachinepools/finalizers in group ${infrastructure}`,
  ])
})

test('documentation must mention the variables that users must set', () => {
  const { FooMachine, FooMachineTemplate } = provider()
  const secret = (...values: string[]) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'foo' }, data: { values } })
  const messagesOf = (documentation: string | undefined, ...values: string[]) =>
    findingsOf([FooMachine, FooMachineTemplate, secret(...values)], documentation === undefined ? {} : { documentation })
      .filter(({ rule }) => rule === 'clusterctl.variables')
      .map(({ path, message }) => `${path}: ${message}`)
  expect(messagesOf('Set `FOO_TOKEN`.', '${FOO_TOKEN}', 'https://${FOO_HOST}:1', '${FOO_HOST}')).toEqual([
    'data.values[1]: No documentation mentions variable FOO_HOST, which has no default',
  ])
  expect(messagesOf('FOO_TOKENS', '${FOO_TOKEN}')).toHaveLength(1)
  expect(messagesOf('', '${ FOO }', '${ BAR}', '${BAZ }')).toHaveLength(3)
  expect(messagesOf('', '${FOO:=a}', '${FOO:-a}', '${FOO=a}', '$${FOO}', '${CLUSTER_NAME}')).toEqual([])
  expect(messagesOf(undefined, '${FOO_TOKEN}')).toEqual([])
})

test('a components file must have labels, one namespace, and a container named manager with --namespace and --watch-filter', () => {
  const { FooMachine, FooMachineTemplate } = provider()
  const labels = { 'cluster.x-k8s.io/provider': 'infrastructure-foo' }
  const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  const deployment = (name: string, args: string[]) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'foo', namespace: 'foo-system', labels },
    spec: { template: { spec: { containers: [{ name, args }] } } },
  })
  const good = [FooMachine, FooMachineTemplate, namespace('foo-system')]
  const flags = ['--namespace=', '--watch-filter=']
  const rulesOf = (...objects: Any[]) => findingsOf([...good, ...objects], { isRendered: true }).map(({ rule }) => rule)
  expect(rulesOf(deployment('manager', flags))).toEqual([])
  expect(rulesOf(deployment('manager', []))).toEqual(['infrastructure.several-instances'])
  expect(rulesOf(deployment('main', flags))).toEqual(['clusterctl.manager-container'])
  expect(rulesOf(namespace('other'))).toEqual(['clusterctl.one-namespace'])
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' } }
  expect(rulesOf(secret)).toEqual(['clusterctl.provider-label', 'clusterctl.one-namespace'])
})

test('kinds outside of the contracts, and core itself, are not checked', () => {
  const definitions = [
    crd(infrastructure, 'FooIdentity', {}, {}),
    crd('cluster.x-k8s.io', 'Machine', {}, {}),
    crd('foo.com', 'Cluster', {}, {}),
  ]
  definitions.forEach((definition) => void (definition.metadata.labels = {}))
  expect(providerManifests(manifestsOf(definitions), { isRendered: false }).kinds).toEqual([])
})

test('a schema that preserves unknown fields counts as having every field', () => {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const { FooMachine, FooMachineTemplate } = provider()
  FooMachine.spec.versions[0].schema.openAPIV3Schema.properties = { spec: open, status: open }
  FooMachineTemplate.spec.versions[0].schema.openAPIV3Schema = open
  expect(findingsOf([FooMachine, FooMachineTemplate])).toEqual([])
})

test.each([
  [{ metadata: {}, spec: {} }, 'metadata.name: expected a name'],
  [{ metadata: { name: 'x' } }, 'spec.group: expected a string that is not empty'],
  [{ metadata: { name: 'x' }, spec: { group: 'g', names: { kind: 'K', plural: 'ks' } } }, 'spec.versions: expected a list'],
  [
    { metadata: { name: 'x' }, spec: { group: 'g', names: { kind: 'K', plural: 'ks' }, versions: [null] } },
    'spec.versions[0].name: expected a string',
  ],
])('a CustomResourceDefinition that no server accepts is rejected: %j', (parts, message) => {
  const read = () => providerManifests(manifestsOf([{ kind: 'CustomResourceDefinition', ...parts }]), { isRendered: false })
  expect(read).toThrow(MalformedManifest)
  expect(read).toThrow(message)
})

test('SARIF results have the level, file and line of the findings', () => {
  const { FooMachine } = provider()
  const manifests = manifestsOf([FooMachine])
  const log = sarif(lint(providerManifests(manifests, { isRendered: false }), rules), '1.0.0') as Any
  expect(log.runs[0].results).toMatchObject([
    {
      ruleId: 'infra-machine.template',
      level: 'error',
      locations: [{ physicalLocation: { artifactLocation: { uri: 'components.yaml' }, region: { startLine: 1 } } }],
    },
  ])
  expect(log.runs[0].tool.driver.rules.map((rule: Any) => rule.id)).toContain('infra-machine.template')
})

test('ids of rules are unique, and every rule has a check or a reason for having none', () => {
  const ids = rules.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const rule of rules) expect(isChecked(rule) ? rule.check.looksAt : (rule.check as Any).none).toMatch(/\w/)
})

test('the link of a rule contains the anchor of the heading in upstream’s book', () => {
  const rule = rules.find(({ id }) => id === 'infra-cluster.failure-domains')!
  expect(linkOf(rule)).toBe(
    'https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-cluster#infracluster-failure-domains',
  )
})
