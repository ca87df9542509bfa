/** Inputs for the admission of Clusters and ClusterClasses. */
import { Cluster, ClusterClass } from '@capstan/api'
import type { Input } from '@capstan/kube'
import { clusterName } from '../../objects.ts'
import { stub } from '../../stub-kinds.ts'
import type { Cases, Twin } from '../../twin.ts'
import { aClass, createTemplates } from '../topology.ts'
import { admission, type Change, each, metadataChanges } from './table.ts'

const intOrPercent = [0, 1, -1, '0%', '10%', '110%', 'ten', '10', '-5%']
const spec = (fields: object) => ({ spec: fields })
const versions = [
  'v1.34.0',
  '1.34.0',
  'v1.34',
  'v1.34.1',
  'v1.35.0',
  'v1.36.0',
  'v1.33.0',
  'v2.0.0',
  'nonsense',
  '',
  null,
  'v1.35.0+build.1',
  'v1.34.0-rc.1',
]
const cidrs = [
  [],
  ['10.0.0.0/8'],
  ['10.0.0.0'],
  ['10.0.0.0/33'],
  ['fd00::/64'],
  ['10.0.0.0/8', 'fd00::/64'],
  ['10.0.0.0/8', '11.0.0.0/8'],
  ['10.0.0.0/8', '11.0.0.0/8', 'fd00::/64'],
  ['nonsense'],
  [''],
]
const taint = (fields: object = {}) => ({ key: 'k', effect: 'NoSchedule', propagation: 'Always', ...fields })
const taintLists = [
  [taint()],
  [taint(), taint()],
  [taint({ key: 'node.kubernetes.io/not-ready' })],
  [taint({ key: 'not a key' })],
  [taint({ effect: 'Odd' })],
  [],
]
const metadataValues = [
  { labels: { a: 'b' } },
  { labels: { a: 'not valid!' } },
  { labels: { 'not a key': 'b' } },
  { annotations: { 'not a key': 'b' } },
  { annotations: { a: 'anything goes!' } },
  {},
]
const strategies = [
  { type: 'RollingUpdate' },
  { type: 'OnDelete' },
  { type: 'Odd' },
  { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
  { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'ten' } },
  { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 'ten' } },
]
const healthChecks = [
  {},
  { enabled: true },
  { enabled: false },
  { checks: { nodeStartupTimeoutSeconds: 10 } },
  { checks: { nodeStartupTimeoutSeconds: 60 } },
  { checks: { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 30 }] } },
  ...intOrPercent.map((unhealthyLessThanOrEqualTo) => ({ remediation: { triggerIf: { unhealthyLessThanOrEqualTo } } })),
  {
    checks: { nodeStartupTimeoutSeconds: 60 },
    remediation: { templateRef: { apiVersion: 'a/b/c', kind: 'RTemplate', name: 'r' } },
  },
]
const inFlight = intOrPercent.map((maxInFlight) => ({ remediation: { maxInFlight } }))

const infrastructureRef = { apiGroup: stub.group, kind: 'StubCluster', name: 'x' }
const refs = [null, {}, { name: '' }, { kind: 'lower case' }, { apiGroup: '' }, { apiGroup: 'other.example.com' }]

const plainCluster: Input<Cluster> = {
  metadata: { name: clusterName },
  spec: { infrastructureRef, controlPlaneRef: { ...infrastructureRef, kind: 'StubControlPlane' } },
}

const clusterChanges: readonly Change[] = [
  ...metadataChanges,
  ...each('paused', [true, false, null], (paused) => spec({ paused })),
  ...each('infrastructureRef', refs, (value) => spec({ infrastructureRef: value })),
  ...each('controlPlaneRef', refs, (value) => spec({ controlPlaneRef: value })),
  ['neither reference', spec({ infrastructureRef: null, controlPlaneRef: null })],
  ...each('pods', cidrs, (cidrBlocks) => spec({ clusterNetwork: { pods: { cidrBlocks } } })),
  ...each('services', cidrs, (cidrBlocks) => spec({ clusterNetwork: { services: { cidrBlocks } } })),
  ...each('serviceDomain', ['cluster.local', '', 'not valid!'], (serviceDomain) => spec({ clusterNetwork: { serviceDomain } })),
  ...each('apiServerPort', [0, 1, 6443, 65_536, -1], (apiServerPort) => spec({ clusterNetwork: { apiServerPort } })),
  ...each(
    'controlPlaneEndpoint',
    [{ host: 'a', port: 1 }, { host: 'a' }, { port: 1 }, { host: '', port: 0 }, { host: 'a', port: 65_536 }, {}],
    (controlPlaneEndpoint) => spec({ controlPlaneEndpoint }),
  ),
  ...each(
    'availabilityGates',
    [
      [],
      [{ conditionType: 'A' }],
      [{ conditionType: 'A' }, { conditionType: 'A' }],
      [{ conditionType: 'not a type' }],
      [{ conditionType: 'A', polarity: 'Negative' }],
    ],
    (availabilityGates) => spec({ availabilityGates }),
  ),
  ...each('name', ['a.b', '1a', `a${'b'.repeat(63)}`], (name) => ({ metadata: { name } })),
  [
    'several errors',
    {
      metadata: { name: 'a.b' },
      ...spec({
        infrastructureRef: null,
        controlPlaneRef: null,
        clusterNetwork: { pods: { cidrBlocks: ['x', 'y'] }, services: { cidrBlocks: ['z'] } },
      }),
    },
  ],
  ['a topology', spec({ topology: { classRef: { name: 'quick' }, version: 'v1.34.0' } })],
]

const worker = (fields: object = {}) => ({ class: 'worker', name: 'a', ...fields })
const managedCluster = {
  metadata: { name: clusterName },
  spec: {
    topology: {
      classRef: { name: 'quick' },
      version: 'v1.34.0',
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [worker({ replicas: 1 })] },
    },
  },
} as unknown as Input<Cluster>
const topology = (fields: object) => spec({ topology: fields })
const controlPlane = (fields: object) => topology({ controlPlane: fields })
const workers = (...machineDeployments: readonly object[]) => topology({ workers: { machineDeployments } })
const unsafeAnnotation = (name: string) => ({ [`unsafe.topology.cluster.x-k8s.io/${name}`]: '' })

const wrongMetadata = { labels: { 'not valid': '' } }
const wrongHealthCheck = { checks: { nodeStartupTimeoutSeconds: 10 } }
const wrongStrategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'ten' } }
const controlPlaneTaint = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule', propagation: 'Always' }

const topologyChanges: readonly Change[] = [
  ...metadataChanges,
  ['no topology', topology(null as never)],
  ...each('version', versions, (version) => topology({ version })),
  ...each('version without check', versions, (version) => ({
    metadata: { annotations: unsafeAnnotation('disable-update-version-check') },
    ...topology({ version }),
  })),
  ...each('class', ['nowhere', '', null, 'Not Valid', 'quick'], (name) => topology({ classRef: { name } })),
  ...each('class namespace', ['other', '', 'Not Valid'], (namespace) => topology({ classRef: { namespace } })),
  ...each('control plane metadata', metadataValues, (metadata) => controlPlane({ metadata })),
  ...each('control plane taints', taintLists, (taints) => controlPlane({ taints })),
  ...each('control plane health check', healthChecks, (healthCheck) => controlPlane({ healthCheck })),
  ...each('control plane replicas', [null, 0, 1, 2, 3, -1], (replicas) => controlPlane({ replicas })),
  ...each('worker class', ['nothing', '', null], (name) => workers(worker({ class: name }))),
  ...each('worker name', ['', 'A', 'a.b', 'x'.repeat(64), 'not valid!'], (name) => workers(worker({ name }))),
  ['two workers of one name', workers(worker(), worker())],
  ['two workers', workers(worker(), worker({ name: 'b' }))],
  ...each('worker metadata', metadataValues, (metadata) => workers(worker({ metadata }))),
  ...each('worker taints', taintLists, (taints) => workers(worker({ taints }))),
  ...each('worker strategy', strategies, (strategy) => workers(worker({ rollout: { strategy } }))),
  ...each('worker health check', [...healthChecks, ...inFlight], (healthCheck) => workers(worker({ healthCheck }))),
  ...each('worker replicas', [null, 0, -1], (replicas) => workers(worker({ replicas }))),
  [
    'replicas beside an autoscaler',
    workers(
      worker({ replicas: 1, metadata: { annotations: { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '1' } } }),
    ),
  ],
  [
    'an autoscaler',
    workers(worker({ metadata: { annotations: { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': '1' } } })),
  ],
  ...each('upgrade-concurrency', ['1', '0', '-1', 'two', '', '9', '99999999999999999999'], (value) => ({
    metadata: { annotations: { 'topology.cluster.x-k8s.io/upgrade-concurrency': value } },
  })),
  ...each(
    'variables',
    [
      [],
      [{ name: 'zone', value: 'a' }],
      [{ name: 'zone', value: 'c' }],
      [{ name: 'zone', value: 1 }],
      [{ name: 'nothing', value: 1 }],
      [
        { name: 'zone', value: 'a' },
        { name: 'zone', value: 'a' },
      ],
      [{ name: 'size', value: 0 }],
      [{ name: 'size', value: 5 }],
      [{ name: '', value: 5 }],
      [{ name: 'network', value: {} }],
      [{ name: 'network', value: { mtu: 'big' } }],
      [{ name: 'network', value: { color: 'red' } }],
      [{ name: 'network', value: { color: 'red', name: 'long' } }],
      null,
    ],
    (variables) => topology({ variables }),
  ),
  ...each(
    'overrides',
    [[{ name: 'zone', value: 'b' }], [{ name: 'zone', value: 'c' }], [{ name: 'nothing', value: 1 }], []],
    (overrides) => workers(worker({ variables: { overrides } })),
  ),
  ...each(
    'machinePools',
    [
      [],
      [{ class: 'pool', name: 'p' }],
      [{ class: 'nothing', name: 'p' }],
      [
        { class: 'pool', name: 'p' },
        { class: 'pool', name: 'p' },
      ],
      [{ class: 'pool', name: 'p', taints: [taint()] }],
    ],
    (machinePools) => topology({ workers: { machinePools } }),
  ),
  [
    'several errors',
    {
      metadata: { annotations: { 'topology.cluster.x-k8s.io/upgrade-concurrency': '0' } },
      ...topology({
        controlPlane: { metadata: wrongMetadata, taints: [controlPlaneTaint], healthCheck: wrongHealthCheck },
        workers: {
          machineDeployments: [
            worker({ metadata: wrongMetadata, rollout: { strategy: wrongStrategy }, taints: [controlPlaneTaint] }),
            worker({ name: 'b', class: 'nothing', healthCheck: wrongHealthCheck }),
          ],
        },
      }),
    },
  ],
]

const createClass = async (twin: Twin): Promise<void> => {
  await createTemplates(twin)
  const variable = (name: string, openAPIV3Schema: object) => ({ name, required: false, schema: { openAPIV3Schema } })
  const variables = [
    variable('zone', { type: 'string', enum: ['a', 'b'] }),
    variable('size', { type: 'integer', default: 3, minimum: 1 }),
    variable('network', {
      type: 'object',
      properties: {
        mtu: { type: 'integer', default: 1500 },
        name: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self.size() < 3', message: 'must be short' }] },
      },
    }),
  ]
  await twin.create(ClusterClass, aClass({ spec: { variables } }))
  await twin.settle('the class is reconciled')
}

const templateRef = { apiVersion: `${stub.group}/v1`, kind: 'StubClusterTemplate', name: 'quick' }
const templateRefs = [
  null,
  { ...templateRef, name: '' },
  { ...templateRef, kind: 'StubCluster' },
  { ...templateRef, kind: 'Template' },
  { ...templateRef, apiVersion: '' },
  { ...templateRef, apiVersion: 'a/b/c' },
  { ...templateRef, apiVersion: 'v1' },
  { ...templateRef, apiVersion: `${stub.group}/v2` },
  { ...templateRef, apiVersion: 'other.example.com/v1' },
  { ...templateRef, kind: 'OtherTemplate' },
  { ...templateRef, name: 'Not Valid' },
]
const naming = [
  '{{ .cluster.name }}-{{ .random }}',
  '{{ .cluster.name }}',
  '{{ .nothing }}',
  '{{ .cluster',
  'Upper',
  '-',
  '',
  '{{ .machineDeployment.topologyName }}',
]
const workerClass = (changedFields: object, ...furtherClasses: readonly object[]) => {
  const [validClass] = aClass().spec.workers!.machineDeployments!
  return spec({ workers: { machineDeployments: [{ ...validClass, ...changedFields }, ...furtherClasses] } })
}
const schemas = [
  { type: 'string' },
  { type: 'string', default: 'a' },
  { type: 'string', default: 1 },
  { type: 'string', enum: ['a'], default: 'b' },
  { type: 'string', enum: [1] },
  { type: 'string', pattern: '(' },
  { type: 'string', minLength: 3, maxLength: 1, default: 'ab' },
  { type: 'string', example: 1 },
  { type: 'odd' },
  {},
  { type: 'null' },
  { type: 'integer', minimum: 1, default: 0 },
  { type: 'number', default: 1.5 },
  { type: 'boolean', default: 'yes' },
  { type: 'array' },
  { type: 'array', items: { type: 'string' }, default: ['a'] },
  { type: 'array', items: { type: 'string' }, default: [1] },
  { type: 'object' },
  { type: 'object', properties: { a: { type: 'string', default: 'x' } } },
  { type: 'object', properties: { a: { type: 'string', default: 1 } } },
  { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
  { type: 'object', additionalProperties: { type: 'integer' }, default: { a: 'b' } },
  { type: 'object', required: ['a'], properties: { a: { type: 'string' } }, default: {} },
  { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'self.size() > 1' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'self.size(' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'self + 1' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: '' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'true', message: '' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'true', message: 'two\nlines' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'true', reason: 'Odd' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'immutable' }] },
  { type: 'string', 'x-kubernetes-validations': [{ rule: 'self.size() > 3', message: 'long' }], default: 'ab' },
  { type: 'string', format: 'date-time', default: 'yesterday' },
  { type: 'string', 'x-kubernetes-int-or-string': true },
]
const variableNames = ['zone', '', 'builtin', 'a.b', 'a b', 'x'.repeat(257)]
const zone = { name: 'zone', required: true, schema: { openAPIV3Schema: { type: 'string' } } }
const add = (fields: object = {}) => ({ op: 'add', path: '/spec/template/spec/x', value: 1, ...fields })
const selectorOf = (matchResources: object, fields: object = {}) => ({
  apiVersion: `${stub.group}/v1`,
  kind: 'StubControlPlaneTemplate',
  matchResources,
  ...fields,
})
const controlPlaneSelector = selectorOf({ controlPlane: true })
const definition = (selector: object, ...jsonPatches: readonly object[]) => ({ selector, jsonPatches })
const patchLists = [
  [],
  [{ name: 'p', definitions: [definition(controlPlaneSelector, add())] }],
  [{ name: '', definitions: [definition(controlPlaneSelector, add())] }],
  [{ name: 'inline', definitions: [definition(controlPlaneSelector, add())] }],
  [
    { name: 'p', definitions: [definition(controlPlaneSelector, add())] },
    { name: 'p', definitions: [definition(controlPlaneSelector, add())] },
  ],
  [{ name: 'p' }],
  [{ name: 'p', definitions: [] }],
  [{ name: 'p', definitions: [definition(controlPlaneSelector, add())], external: { generatePatchesExtension: 'a.b' } }],
  [{ name: 'p', definitions: [definition(controlPlaneSelector, add({ path: '/metadata' }))], external: {} }],
  [{ name: 'p', enabledIf: '{{ .zone' }],
  [{ name: 'p', definitions: [definition(selectorOf({}), add({ path: '/metadata' }))] }],
  [{ name: 'p', external: {} }],
  [{ name: 'p', external: { generatePatchesExtension: 'a.b' } }],
  [{ name: 'p', external: { validateTopologyExtension: 'a.b', settings: { a: 'b' } } }],
  [{ name: 'p', external: { discoverVariablesExtension: 'a.b' } }],
  ...['{{ true }}', '{{ .zone', '{{ nothing }}', 'true', ''].map((enabledIf) => [
    { name: 'p', enabledIf, definitions: [definition(controlPlaneSelector, add())] },
  ]),
  ...[
    {},
    { controlPlane: false },
    { infrastructureCluster: true },
    { machineDeploymentClass: { names: ['worker'] } },
    { machineDeploymentClass: { names: ['nothing'] } },
    { machineDeploymentClass: { names: ['*'] } },
    { machineDeploymentClass: { names: ['w*r'] } },
    { machineDeploymentClass: { names: ['*a*'] } },
    { machineDeploymentClass: { names: ['a b*'] } },
    { machineDeploymentClass: { names: ['w*r', 'nothing'] } },
    { machineDeploymentClass: { names: [''] } },
    { machineDeploymentClass: { names: [] } },
    { machinePoolClass: { names: ['pool'] } },
    { controlPlane: true, infrastructureCluster: true },
  ].map((matchResources) => [{ name: 'p', definitions: [definition(selectorOf(matchResources), add())] }]),
  ...[
    { apiVersion: 'other.example.com/v1' },
    { apiVersion: '' },
    { kind: 'Other' },
    { kind: '' },
    { kind: 'StubMachineTemplate' },
  ].map((fields) => [{ name: 'p', definitions: [definition(selectorOf({ controlPlane: true }, fields), add())] }]),
  ...[
    { op: 'replace' },
    { op: 'remove', value: null },
    { op: 'remove' },
    { op: 'test' },
    { op: '' },
    { path: '/metadata/name' },
    { path: 'spec/x' },
    { path: '/spec' },
    { path: '' },
    { path: '/spec/list/0' },
    { path: '/spec/list/1' },
    { path: '/spec/list/-' },
    { path: '/spec/list/00' },
    { path: '/spec/list/+1' },
    { path: '/spec/list/1/2' },
    { op: 'replace', path: '/spec/list/-' },
    { op: 'replace', path: '/spec/list/0/-1' },
    { op: 'remove', path: '/spec/list/-', value: null },
    { op: 'replace', path: '/spec/list/0' },
    { op: 'remove', path: '/spec/list/0', value: null },
    { value: null },
    { valueFrom: { variable: 'zone' } },
    { value: null, valueFrom: { variable: 'zone' } },
    { value: null, valueFrom: { variable: 'nothing' } },
    { value: null, valueFrom: { variable: 'nothing.x' } },
    { value: null, valueFrom: { variable: 'zone.x' } },
    { value: null, valueFrom: { variable: 'zone[0]' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.name' } },
    { value: null, valueFrom: { variable: 'builtin' } },
    { value: null, valueFrom: { variable: 'builtins' } },
    { value: null, valueFrom: { variable: 'builtin.nothing' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.metadata' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.metadata.labels' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.metadata.labels.team' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.network.pods[0]' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.topology.classRef' } },
    { value: null, valueFrom: { variable: 'builtin.machineDeployment.bootstrap' } },
    { value: null, valueFrom: { variable: 'builtin.machineDeployment.version' } },
    { value: null, valueFrom: { variable: 'builtin.cluster.network.services[0]' } },
    { value: null, valueFrom: { variable: 'builtin.controlPlane.machineTemplate.infrastructureRef' } },
    { value: null, valueFrom: { template: '{{ .zone }}' } },
    { value: null, valueFrom: { template: '{{ .zone' } },
    { value: null, valueFrom: { template: '{{ .zone | nothing }}' } },
    { value: null, valueFrom: { template: '{{ .zone }}', variable: 'zone' } },
    { value: null, valueFrom: {} },
  ].map((fields) => {
    const patch = Object.fromEntries(Object.entries(add(fields)).filter(([, value]) => value !== null))
    return [{ name: 'p', definitions: [definition(controlPlaneSelector, patch)] }]
  }),
]
const versionLists = [
  [],
  ['v1.34.0'],
  ['v1.34.0', 'v1.35.0'],
  ['v1.35.0', 'v1.34.0'],
  ['v1.34.0', 'v1.34.0'],
  ['v1.34.0', 'v1.36.0'],
  ['v1.34', 'v1.36'],
  ['v1.34.0', 'v1.34'],
  ['1.34.0'],
  ['nonsense'],
  [''],
  ['v1.34.0', 'v1.34.1', 'v1.35.0'],
  ['v1.34.0+a.1', 'v1.34.0+a.2'],
  ['v1.34.0-rc.1', 'v1.34.0'],
]

const classChanges: readonly Change[] = [
  ...metadataChanges,
  ...each('infrastructure template', templateRefs, (value) => spec({ infrastructure: { templateRef: value } })),
  ...each('control plane template', templateRefs, (value) => spec({ controlPlane: { templateRef: value } })),
  ...each('control plane machine template', templateRefs, (value) =>
    spec({ controlPlane: { machineInfrastructure: { templateRef: value } } }),
  ),
  ['no control plane machines', spec({ controlPlane: { machineInfrastructure: null } })],
  ...each('worker bootstrap template', templateRefs, (value) => workerClass({ bootstrap: { templateRef: value } })),
  ...each('worker infrastructure template', templateRefs, (value) => workerClass({ infrastructure: { templateRef: value } })),
  ...each('worker class', ['', 'other', 'not valid!', null], (name) => workerClass({ class: name })),
  ['two worker classes of one name', workerClass({}, aClass().spec.workers!.machineDeployments![0]!)],
  ['no workers', spec({ workers: null })],
  ...each('worker metadata', metadataValues, (metadata) => workerClass({ metadata })),
  ...each('control plane metadata', metadataValues, (metadata) => spec({ controlPlane: { metadata } })),
  ...each('worker taints', taintLists, (taints) => workerClass({ taints })),
  ...each('control plane taints', taintLists, (taints) => spec({ controlPlane: { taints } })),
  ...each('worker strategy', strategies, (strategy) => workerClass({ rollout: { strategy } })),
  ...each('worker health check', [...healthChecks, ...inFlight], (healthCheck) => workerClass({ healthCheck })),
  ...each('control plane health check', healthChecks, (healthCheck) => spec({ controlPlane: { healthCheck } })),
  ...each('worker naming', naming, (template) => workerClass({ naming: { template } })),
  ...each('control plane naming', naming, (template) => spec({ controlPlane: { naming: { template } } })),
  ...each('infrastructure naming', naming, (template) => spec({ infrastructure: { naming: { template } } })),
  ...each('variable name', variableNames, (name) => spec({ variables: [{ ...zone, name }] })),
  ['a variable twice', spec({ variables: [zone, zone] })],
  ...each('schema', schemas, (openAPIV3Schema) => spec({ variables: [{ ...zone, schema: { openAPIV3Schema } }] })),
  ...each('patches', patchLists, (patches) => spec({ variables: [zone], patches })),
  ...each('kubernetesVersions', versionLists, (kubernetesVersions) => spec({ kubernetesVersions })),
  [
    'versions and an extension',
    spec({ kubernetesVersions: ['v1.34.0'], upgrade: { external: { generateUpgradePlanExtension: 'a.b' } } }),
  ],
  [
    'several errors',
    spec({
      infrastructure: { templateRef: { ...templateRef, kind: 'StubCluster' }, naming: { template: '{{ .nothing }}' } },
      controlPlane: { metadata: wrongMetadata, taints: [controlPlaneTaint], healthCheck: wrongHealthCheck },
      workers: {
        machineDeployments: ['a', 'a'].map((name) => ({
          ...aClass().spec.workers!.machineDeployments![0],
          class: name,
          metadata: wrongMetadata,
          taints: [controlPlaneTaint],
          rollout: { strategy: wrongStrategy },
          healthCheck: wrongHealthCheck,
          naming: { template: '{{ .nothing }}' },
        })),
      },
      variables: [{ ...zone, schema: { openAPIV3Schema: { type: 'string', default: 1 } } }],
      patches: [{ name: 'p', definitions: [definition(selectorOf({}), add({ path: '/metadata/name' }))] }],
      kubernetesVersions: ['v1.35.0', 'v1.34.0'],
    }),
  ],
]

export const clusterAdmissionCases: Cases = {
  'admission-cluster': admission({ kind: Cluster, valid: plainCluster, changes: clusterChanges }),
  'admission-cluster-topology': admission({
    kind: Cluster,
    valid: managedCluster,
    changes: topologyChanges,
    before: createClass,
  }),
  'admission-clusterclass': admission({ kind: ClusterClass, valid: aClass(), changes: classChanges }),
}
