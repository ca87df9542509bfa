/**
 * Inputs whose admission depends on existing objects: on the Cluster and its MachineDeployments, Machines, Nodes and control plane, on its
 * class, or on the Clusters of a class. Also inputs for the admission of ClusterClasses with MachinePool classes and with schemas of
 * variables.
 */
import { Cluster, ClusterClass, Machine, MachineDeployment } from '@capstan/api'
import type { Input } from '@capstan/kube'
import { clusterName } from '../../objects.ts'
import { everythingReady } from '../../providers.ts'
import { stub } from '../../stub-kinds.ts'
import type { Case, Cases, DryRunRequest, Twin } from '../../twin.ts'
import { createPoolTopology, poolClass, poolReport, poolTopology, registerPoolNodes } from '../topology-pools.ts'
import { aClass, aCluster, createTemplates, createTopology, topology, worker, workers } from '../topology.ts'
import { admission, each, type Change } from './table.ts'

const toCreate = (what: string, body: object): DryRunRequest => ({ what, method: 'POST', body })
const toUpdate = (what: string, body: object, name = clusterName): DryRunRequest => ({ what, method: 'PATCH', name, body })

const upgrade = toUpdate('to upgrade', topology({ version: 'v1.35.0' }))

const pause = async (twin: Twin): Promise<void> => {
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
}

/**
 * Returns a case that compares the responses to an upgrade of a Cluster. `prepare` creates the Cluster so that one of its objects or Nodes
 * does not have the topology's version.
 */
const upgradeOf =
  (prepare: (twin: Twin) => Promise<void>): Case =>
  async (twin) => {
    await prepare(twin)
    await twin.compareDryRuns(Cluster, [upgrade])
    await twin.settle('the response is compared')
  }

const changedDeployment = async (twin: Twin): Promise<void> => {
  await createTopology(twin)
  await pause(twin)
  await twin.patch(MachineDeployment, ([first]) => first, { spec: { template: { spec: { version: 'v1.33.0' } } } })
  await twin.settle('the MachineDeployment has another version')
}

const changedMachine = async (twin: Twin): Promise<void> => {
  await createTopology(twin)
  await pause(twin)
  await twin.patch(Machine, ([first]) => first, { spec: { version: 'v1.33.0' } })
  await twin.settle('the Machine has another version')
}

const changedNode = async (twin: Twin): Promise<void> => {
  await twin.setReports({ machine: () => poolReport('n') })
  await createPoolTopology(twin, poolTopology('p', { replicas: 1 }))
  await registerPoolNodes(twin, 'v1.33.0', 'n')
  await twin.settle('the Node of the pool has another version', (objects) =>
    objects.some((object) => object.kind === 'MachinePool' && JSON.stringify(object).includes('"nodeRefs":[{')),
  )
}

const controlPlaneReports = (status: object) => (twin: Twin) => {
  const { controlPlane } = everythingReady
  return twin.setReports({
    controlPlane: (object, objects) => ({ status: { ...controlPlane(object, objects)?.status, ...status } }),
  })
}

const provisioning = async (twin: Twin): Promise<void> => {
  await controlPlaneReports({ version: null })(twin)
  await createTopology(twin)
}

const completing = async (twin: Twin): Promise<void> => {
  await createTopology(twin)
  await controlPlaneReports({ version: 'v1.33.0' })(twin)
  await twin.settle('the control plane reports another version')
}

const notPropagated = async (twin: Twin): Promise<void> => {
  await createTopology(twin)
  await pause(twin)
  await twin.patch(stub.controlPlane, ([first]) => first, { spec: { version: 'v1.33.0' } })
  await twin.settle('the control plane has another version')
}

const unreconciledClass: Case = async (twin) => {
  await twin.create(ClusterClass, aClass())
  await twin.settle('the templates of the class do not exist')
  const missing = { classRef: { name: 'nowhere' } }
  await twin.compareDryRuns(Cluster, [
    toCreate('a Cluster of an unreconciled class', aCluster()),
    toCreate('a Cluster of a missing class', aCluster({ topology: missing })),
    toCreate('an unknown class of workers', aCluster({ workers: [worker('a', { class: 'nothing' })] })),
  ])
  await twin.create(Cluster, aCluster({ metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }))
  await twin.settle('a Cluster of the unreconciled class exists')
  await twin.compareDryRuns(Cluster, [
    toUpdate('the replicas', workers(worker('a', { replicas: 2 }))),
    toUpdate('the version', topology({ version: 'v1.35.0' })),
    toUpdate('a missing class', topology(missing)),
  ])
  await twin.settle('the responses are compared')
}

/** A topology is added to an existing Cluster. */
const addedTopology: Case = async (twin) => {
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass())
  await twin.settle('the class is reconciled')
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  const infrastructureRef = { apiGroup: stub.group, kind: 'StubCluster', name: 'x' }
  await twin.create(Cluster, { metadata: { name: clusterName, annotations }, spec: { infrastructureRef } })
  await twin.settle('a Cluster without a topology exists')
  const { spec } = aCluster()
  const unchecked = { metadata: { annotations: { 'unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check': '' } } }
  await twin.compareDryRuns(Cluster, [
    toUpdate('a topology', { spec }),
    toUpdate('a topology without the check', { ...unchecked, spec }),
    toUpdate('an invalid topology without the check', {
      ...unchecked,
      spec: aCluster({ workers: [worker('a', { class: 'nothing' })] }).spec,
    }),
    toUpdate('a topology of a missing class without the check', {
      ...unchecked,
      spec: aCluster({ topology: { classRef: { name: 'nowhere' } } }).spec,
    }),
  ])
  await twin.settle('the responses are compared')
}

const autoscaler = {
  metadata: { annotations: { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '1' } },
}
const withoutReplicas = (name: string) => ({ class: 'worker', name })

const autoscaledClass: Case = async (twin) => {
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass({ worker: autoscaler }))
  await twin.settle('the class is reconciled')
  await twin.compareDryRuns(Cluster, [
    toCreate('replicas', aCluster()),
    toCreate('no replicas', aCluster({ workers: [withoutReplicas('a')] })),
    toCreate('replicas in one of two', aCluster({ workers: [withoutReplicas('a'), worker('b')] })),
  ])
  await twin.settle('the responses are compared')
}

const withoutMachineInfrastructure: Case = async (twin) => {
  await createTemplates(twin)
  await twin.create(ClusterClass, aClass({ controlPlane: { machineInfrastructure: undefined } }))
  await twin.settle('the class is reconciled')
  const checks = { nodeStartupTimeoutSeconds: 60 }
  await twin.compareDryRuns(
    Cluster,
    [{ enabled: true }, { enabled: false }, { checks }, { enabled: false, checks }, { enabled: true, checks }].flatMap(
      (healthCheck) => [
        toCreate(`control plane ${JSON.stringify(healthCheck)}`, aCluster({ controlPlane: { healthCheck } })),
        toCreate(`worker ${JSON.stringify(healthCheck)}`, aCluster({ workers: [worker('a', { healthCheck })] })),
      ],
    ),
  )
  await twin.compareDryRuns(ClusterClass, [
    toCreate(
      'a health check',
      withNewName(aClass({ controlPlane: { machineInfrastructure: undefined, healthCheck: { checks } } })),
    ),
    toUpdate('a health check', { spec: { controlPlane: { healthCheck: { checks } } } }, 'quick'),
  ])
  await twin.settle('the responses are compared')
}

const withNewName = (object: Input<ClusterClass>): object => ({ ...object, metadata: { name: 'new' } })

const checks = { nodeStartupTimeoutSeconds: 300 }
const second = { ...aClass().spec.workers!.machineDeployments![0]!, class: 'second' }
const usedClass = {
  controlPlane: { healthCheck: { checks } },
  worker: { healthCheck: { checks } },
}
const deployment = (fields: object = {}) => ({ ...aClass(usedClass).spec.workers!.machineDeployments![0]!, ...fields })
const deployments = (...machineDeployments: readonly object[]) => ({ spec: { workers: { machineDeployments } } })
const pools = (...machinePools: readonly object[]) => ({ spec: { workers: { machinePools } } })
const otherTemplate = (kind: string, group = stub.group) => ({
  templateRef: { apiVersion: `${group}/v1`, kind, name: 'quick-worker' },
})

const classInUse: Case = async (twin) => {
  await createTemplates(twin)
  const [first] = aClass(usedClass).spec.workers!.machineDeployments!
  const workerClasses = { machineDeployments: [first, second], machinePools: [poolClass(), poolClass({ class: 'unused' })] }
  await twin.create(
    ClusterClass,
    aClass({ ...usedClass, workers: workerClasses, spec: { kubernetesVersions: ['v1.34.0', 'v1.35.0'] } }),
  )
  await twin.settle('the class is reconciled')
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  const machineDeployments = [worker('a', { healthCheck: { enabled: true } })]
  await twin.create(
    Cluster,
    aCluster({
      metadata: { annotations },
      controlPlane: { healthCheck: { enabled: true } },
      workers: [],
      topology: { workers: { machineDeployments, machinePools: [poolTopology('p')] } },
    }),
  )
  await twin.settle('a Cluster of the class exists')
  const changes: readonly Change[] = [
    ['the used class of MachinePools is removed', pools(poolClass({ class: 'unused' }))],
    ['the unused class of MachinePools is removed', pools(poolClass())],
    ['all classes of MachinePools are removed', { spec: { workers: { machinePools: null } } }],
    ['the used class of MachineDeployments is removed', deployments(second)],
    ['the unused class of MachineDeployments is removed', deployments(deployment())],
    ['all classes of workers are removed', { spec: { workers: null } }],
    ['the health check of the control plane is removed', { spec: { controlPlane: { healthCheck: null } } }],
    ['the health check of workers is removed', deployments(deployment({ healthCheck: undefined }), second)],
    ['the machine infrastructure is removed', { spec: { controlPlane: { machineInfrastructure: null } } }],
    ['the used version is removed', { spec: { kubernetesVersions: ['v1.35.0'] } }],
    ['all versions are removed', { spec: { kubernetesVersions: null } }],
    ['another version is removed', { spec: { kubernetesVersions: ['v1.34.0'] } }],
    ['an autoscaler', deployments(deployment(autoscaler), second)],
    ['an autoscaler of the unused class', deployments(deployment(), { ...second, ...autoscaler })],
    ['an autoscaler of pools', pools(poolClass(autoscaler), poolClass({ class: 'unused' }))],
    ['another kind of pools', pools(poolClass({ infrastructure: otherTemplate('OtherTemplate') }))],
    ['another group of pools', pools(poolClass({ infrastructure: otherTemplate('StubMachineTemplate', 'other.example.com') }))],
    ['another kind of bootstrap of pools', pools(poolClass({ bootstrap: otherTemplate('OtherTemplate') }))],
    ['another kind of workers', deployments(deployment({ infrastructure: otherTemplate('OtherTemplate') }), second)],
    ['another kind of bootstrap', deployments(deployment({ bootstrap: otherTemplate('OtherTemplate') }), second)],
    [
      'a required variable',
      { spec: { variables: [{ name: 'v', required: true, schema: { openAPIV3Schema: { type: 'string' } } }] } },
    ],
  ]
  await twin.compareDryRuns(
    ClusterClass,
    changes.map(([what, patch]) => toUpdate(what, patch, 'quick')),
  )
  await twin.compareDryRuns(ClusterClass, [{ what: 'to delete', method: 'DELETE', name: 'quick' }])
  await twin.settle('the responses are compared')
}

const wrongRefs = [
  null,
  { name: '' },
  { kind: 'StubMachine' },
  { kind: 'Template' },
  { apiVersion: '' },
  { apiVersion: 'a/b/c' },
  { apiVersion: 'v1' },
  { apiVersion: 'other.example.com/v1' },
]
const poolNaming = [
  '{{ .cluster.name }}-{{ .machinePool.topologyName }}',
  '{{ .machineDeployment.topologyName }}',
  '{{ .random }}',
  '{{ .cluster',
  'Upper',
  '',
]
const taint = { key: 'k', effect: 'NoSchedule', propagation: 'Always' }
const changedPool = (fields: object) => pools(poolClass(fields))
const templateOf = (kind: string, fields: unknown) =>
  fields === null ? { templateRef: null } : { templateRef: { ...otherTemplate(kind).templateRef, ...(fields as object) } }
const patchOf = (names: readonly string[], kind: string) => ({
  spec: {
    patches: [
      {
        name: 'p',
        definitions: [
          {
            selector: { apiVersion: `${stub.group}/v1`, kind, matchResources: { machinePoolClass: { names } } },
            jsonPatches: [{ op: 'add', path: '/spec/template/spec/x', value: 1 }],
          },
        ],
      },
    ],
  },
})

const poolChanges: readonly Change[] = [
  ['two pools', pools(poolClass(), poolClass({ class: 'other' }))],
  ['two pools of one name', pools(poolClass(), poolClass())],
  ['two pools of one name beside another', pools(poolClass(), poolClass({ class: 'other' }), poolClass())],
  ['a pool named as a MachineDeployment', changedPool({ class: 'worker' })],
  ...each('pool class', ['', 'not valid!', null], (name) => changedPool({ class: name })),
  ...each('pool naming', poolNaming, (template) => changedPool({ naming: { template } })),
  ...each('pool bootstrap', wrongRefs, (fields) => changedPool({ bootstrap: templateOf('StubConfigTemplate', fields) })),
  ...each('pool infrastructure', wrongRefs, (fields) =>
    changedPool({ infrastructure: templateOf('StubMachineTemplate', fields) }),
  ),
  ...each('pool metadata', [{ labels: { a: 'not valid!' } }, { annotations: { 'not a key': 'b' } }, {}], (metadata) =>
    changedPool({ metadata }),
  ),
  ...each('pool taints', [[taint], []], (taints) => changedPool({ taints })),
  ...each('pool failureDomains', [['a'], [], ['']], (failureDomains) => changedPool({ failureDomains })),
  ...each('pool minReadySeconds', [0, 5, -1], (minReadySeconds) => changedPool({ minReadySeconds })),
  ...each('pool deletion', [{ nodeDrainTimeoutSeconds: -1 }, { nodeDrainTimeoutSeconds: 1 }, {}], (deletion) =>
    changedPool({ deletion }),
  ),
  ...['StubMachineTemplate', 'StubConfigTemplate', 'StubControlPlaneTemplate'].flatMap((kind) =>
    each(`pool patch of ${kind}`, [['pool'], ['*'], ['po*'], ['*ol'], ['p*l'], ['nothing'], [''], []], (names) =>
      patchOf(names as string[], kind),
    ),
  ),
]

const string = { type: 'string' }
const rule = (fields: object, schema: object = string) => ({
  ...schema,
  'x-kubernetes-validations': [{ rule: 'self == self', message: 'm', ...fields }],
})
const unbounded = { type: 'array', items: { type: 'string' } }
const listOf = (fields: object) => ({ type: 'array', items: { type: 'object', properties: { k: string }, ...fields } })
const objectWith = (name: string, schema: object) => ({ type: 'object', properties: { [name]: schema } })

/** Schemas of variables, in addition to those of `clusters.ts`. */
const furtherSchemas = [
  rule({ rule: 'self.all(a, self.all(b, self.all(c, a == b || b == c)))' }, unbounded),
  rule(
    { rule: 'self.all(a, self.all(b, self.all(c, a == b || b == c)))' },
    { ...unbounded, maxItems: 5, items: { type: 'string', maxLength: 5 } },
  ),
  rule({ rule: 'self.all(a, a.matches("x"))' }, unbounded),
  { type: 'array', items: rule({ rule: 'self.contains("x")' }) },
  { type: 'array', items: { type: 'array', items: rule({ rule: 'self.matches("(a|b)*c")' }) } },
  ...['.a', 'a', '.b', '.a.b', "['a']", '.', '', '.a[0]', '.a[*]', '..a', '.a ', ' .a'].map((fieldPath) =>
    rule({ fieldPath }, objectWith('a', string)),
  ),
  rule({ fieldPath: '.a' }),
  rule({ fieldPath: '.list[0]' }, objectWith('list', unbounded)),
  rule({ fieldPath: '.map.key' }, objectWith('map', { type: 'object', additionalProperties: string })),
  rule({ fieldPath: ".map['key']" }, objectWith('map', { type: 'object', additionalProperties: string })),
  { type: 'array', items: rule({ rule: 'self == oldSelf' }) },
  { type: 'array', 'x-kubernetes-list-type': 'set', items: rule({ rule: 'self == oldSelf' }) },
  {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
    items: rule({ rule: 'self == oldSelf' }, { ...objectWith('k', string), required: ['k'] }),
  },
  { type: 'object', additionalProperties: rule({ rule: 'self == oldSelf' }) },
  objectWith('a', rule({ rule: 'self == oldSelf' })),
  listOf(rule({ rule: 'self.k == oldSelf.k' }, objectWith('k', string))),
  rule({ rule: 'self == oldSelf', optionalOldSelf: true }),
  rule({ rule: 'oldSelf.hasValue() ? self == oldSelf.value() : true', optionalOldSelf: true }),
  ...['FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate', 'Other', ''].map((reason) =>
    rule({ reason }),
  ),
  ...['"a" + self', '"a" + ', 'self', '1', '""', 'string(self.size())', ''].map((messageExpression) =>
    rule({ messageExpression }),
  ),
  rule({ message: 'x'.repeat(2048) }),
  rule({ message: 'x'.repeat(2049) }),
  rule({ message: undefined }),
  rule({ message: ' ' }),
  rule({ rule: 'self\n== self', message: undefined }),
  rule({ rule: '  ' }),
  rule({ rule: 'self.unknown == 1' }, objectWith('a', string)),
  rule({ rule: 'self.a == 1' }, objectWith('a', string)),
  rule({ rule: 'has(self.a)' }, objectWith('a', string)),
  rule({ rule: 'self.a.b == "x"' }, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
  rule({ rule: 'quantity(self).isGreaterThan(quantity("1"))' }),
  rule({ rule: 'isIP(self) && ip(self).family() == 4' }),
  rule({ rule: 'url(self).getHost() == "x"' }),
  { type: 'object', required: ['a'] },
  { type: 'object', required: ['b'], properties: { a: string } },
  { type: 'array', items: string, uniqueItems: true },
  { type: 'array', minItems: 2, maxItems: 1, items: string },
  { type: 'integer', multipleOf: 0 },
  { type: 'number', minimum: 5, maximum: 1 },
  { type: 'integer', format: 'int32', default: 3_000_000_000 },
  { type: 'string', format: 'unheard' },
  { type: 'string', nullable: true },
  { type: 'string', nullable: true, default: null },
  { oneOf: [{ type: 'string' }, { type: 'integer' }] },
  { type: 'string', oneOf: [{ minLength: 1 }, { pattern: 'a' }], default: 'b' },
  { type: 'string', allOf: [{ minLength: 3 }], default: 'b' },
  { type: 'string', not: { enum: ['b'] }, default: 'b' },
  { type: 'object', anyOf: [{ required: ['a'] }], properties: { a: string }, default: {} },
  { type: 'string', enum: ['a', 'a'] },
  { type: 'string', enum: [] },
  { type: 'array', items: string, 'x-kubernetes-list-type': 'set' },
  { type: 'string', 'x-metadata': { labels: { a: 'b' }, annotations: { c: 'd' } } },
  { type: 'string', 'x-metadata': { labels: { a: 'not valid!' } } },
  { type: 'string', 'x-metadata': { annotations: { 'not a key': 'x' } } },
  { type: 'object', properties: { a: { type: 'string', 'x-metadata': { labels: { 'not a key': 'x' } } } } },
]
const variableOf = (fields: object) => ({
  spec: { variables: [{ name: 'v', required: false, schema: { openAPIV3Schema: string }, ...fields }] },
})

const schemaChanges: readonly Change[] = [
  ...each('schema', furtherSchemas, (openAPIV3Schema) => variableOf({ schema: { openAPIV3Schema } })),
  ...each(
    'metadata',
    [
      {},
      { labels: { a: 'b' } },
      { labels: { a: 'not valid!' } },
      { labels: { 'not a key': 'b' } },
      { annotations: { a: 'anything goes!' } },
      { annotations: { 'not a key': 'b' } },
    ],
    (metadata) => variableOf({ deprecatedV1Beta1Metadata: metadata }),
  ),
  ['no schema', variableOf({ schema: null })],
  ['an empty schema', variableOf({ schema: {} })],
  ['required is missing', variableOf({ required: undefined })],
]

export const topologyStateAdmissionCases: Cases = {
  'admission-upgrade-changed-deployment': upgradeOf(changedDeployment),
  'admission-upgrade-changed-machine': upgradeOf(changedMachine),
  'admission-upgrade-changed-node-of-pool': upgradeOf(changedNode),
  'admission-upgrade-provisioning': upgradeOf(provisioning),
  'admission-upgrade-completing': upgradeOf(completing),
  'admission-upgrade-not-propagated': upgradeOf(notPropagated),
  'admission-topology-unreconciled-class': unreconciledClass,
  'admission-topology-added': addedTopology,
  'admission-topology-autoscaled-class': autoscaledClass,
  'admission-topology-no-machine-infrastructure': withoutMachineInfrastructure,
  'admission-clusterclass-in-use': classInUse,
  'admission-clusterclass-pools': admission({
    kind: ClusterClass,
    valid: aClass({ workers: { machinePools: [poolClass()] } }),
    changes: poolChanges,
  }),
  'admission-clusterclass-schemas': admission({ kind: ClusterClass, valid: aClass(), changes: schemaChanges }),
}
