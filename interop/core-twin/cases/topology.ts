/**
 * Cases of Clusters with a class, and functions with which other cases create such Clusters. Every case does the same with upstream's core
 * and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, ClusterClass, MachineDeployment, MachineHealthCheck } from '@capstan/api'
import { isTrue, type Input, keyOf, type Kind, type KubeObject, sleep, systemClock } from '@capstan/kube'
import { clusterName, named } from '../objects.ts'
import { everythingReady, noReport } from '../providers.ts'
import type { Behaviour } from '../side.ts'
import { oldStub, stub, type StubKinds } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'

/** Returns a reference to a stub object in the form of ClusterClasses: with `apiVersion`. */
export const ref = (kinds: StubKinds, kind: string, name: string) => ({ apiVersion: `${kinds.group}/v1`, kind, name })

export interface ClassOptions {
  /** Name of the class, and prefix of the names of its templates. Default: quick. */
  readonly name?: string
  /** Kinds of the templates. Default: those of contract v1beta2. */
  readonly kinds?: StubKinds
  /** Top-level fields that replace those of the default spec. */
  readonly spec?: object
  /** Further fields of `spec.controlPlane`. */
  readonly controlPlane?: object
  /** Further fields of the MachineDeployment class `worker`. */
  readonly worker?: object
  /** Further fields of `spec.workers`. */
  readonly workers?: object
}

/** Returns a ClusterClass with stub templates and the MachineDeployment class `worker`. */
export const aClass = ({
  name = 'quick',
  kinds = stub,
  spec,
  controlPlane,
  worker,
  workers,
}: ClassOptions = {}): Input<ClusterClass> =>
  ({
    metadata: { name },
    spec: {
      infrastructure: { templateRef: ref(kinds, 'StubClusterTemplate', name) },
      controlPlane: {
        templateRef: ref(kinds, 'StubControlPlaneTemplate', name),
        machineInfrastructure: { templateRef: ref(kinds, 'StubMachineTemplate', `${name}-control-plane`) },
        ...controlPlane,
      },
      workers: {
        machineDeployments: [
          {
            class: 'worker',
            bootstrap: { templateRef: ref(kinds, 'StubConfigTemplate', `${name}-worker`) },
            infrastructure: { templateRef: ref(kinds, 'StubMachineTemplate', `${name}-worker`) },
            ...worker,
          },
        ],
        ...workers,
      },
      ...spec,
    },
  }) as Input<ClusterClass>

/** Creates the templates to which the class `aClass({ name, kinds })` refers. */
export async function createTemplates(twin: Twin, name = 'quick', kinds = stub): Promise<void> {
  const spec = { template: { metadata: { labels: { 'from-template': 'yes' } }, spec: { made: `from ${name}` } } }
  await twin.create(kinds.clusterTemplate, named(name, { spec }))
  await twin.create(kinds.controlPlaneTemplate, named(name, { spec }))
  await twin.create(kinds.machineTemplate, named(`${name}-control-plane`, { spec }))
  await twin.create(kinds.configTemplate, named(`${name}-worker`, { spec }))
  await twin.create(kinds.machineTemplate, named(`${name}-worker`, { spec }))
}

/** Returns the topology of a MachineDeployment of class `worker`. */
export const worker = (name: string, fields: object = {}) => ({ class: 'worker', name, replicas: 1, ...fields })

export interface TopologyOptions {
  /** Further fields of `spec.topology`, which replace those that are set by default. */
  readonly topology?: object
  /** Further fields of `spec.topology.controlPlane`. */
  readonly controlPlane?: object
  /** Topologies of MachineDeployments. Default: one, with the name `a`. */
  readonly workers?: readonly object[]
  /** Further fields of `metadata`. */
  readonly metadata?: object
}

/** Returns a Cluster with a topology of the class `quick`. */
export const aCluster = ({ topology, controlPlane, workers = [worker('a')], metadata }: TopologyOptions = {}): Input<Cluster> =>
  ({
    metadata: { name: clusterName, ...metadata },
    spec: {
      topology: {
        classRef: { name: 'quick' },
        version: 'v1.34.0',
        controlPlane: { replicas: 1, ...controlPlane },
        ...(workers.length > 0 ? { workers: { machineDeployments: workers } } : {}),
        ...topology,
      },
    },
  }) as unknown as Input<Cluster>

const connected = (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'RemoteConnectionProbe'))

/** Makes the stub providers report the status fields of contract v1beta1 in addition to those of v1beta2. */
async function reportOldContract(twin: Twin): Promise<void> {
  const { cluster, controlPlane, machine, config } = everythingReady
  const withStatus =
    (behaviour: Behaviour, status: object): Behaviour =>
    (object, objects) => {
      const report = behaviour(object, objects)
      return report && { ...report, status: { ...report.status, ...status } }
    }
  await twin.setReports({
    cluster: withStatus(cluster, { ready: true }),
    controlPlane: withStatus(controlPlane, { initialized: true, ready: true, updatedReplicas: 1, unavailableReplicas: 0 }),
    machine: withStatus(machine, { ready: true }),
    config: withStatus(config, { ready: true }),
  })
}

/**
 * Creates a ClusterClass with its templates, a workload cluster and a Cluster of the class. Waits until the class is reconciled and core is
 * connected to the workload cluster.
 */
export async function createTopology(twin: Twin, classOptions: ClassOptions = {}, options: TopologyOptions = {}): Promise<void> {
  if (classOptions.kinds === oldStub) await reportOldContract(twin)
  await createTemplates(twin, 'quick', classOptions.kinds)
  await twin.create(ClusterClass, aClass(classOptions))
  await twin.settle('the class is reconciled')
  await twin.startWorkload(clusterName)
  await twin.create(Cluster, aCluster(options))
  await twin.settle('the objects of the topology are created', connected)
}

/** Returns a merge patch of a Cluster's `spec.topology`. */
export const topology = (spec: object) => ({ spec: { topology: spec } })
/** Returns a merge patch that sets the MachineDeployments of a Cluster's topology. */
export const workers = (...machineDeployments: readonly object[]) => topology({ workers: { machineDeployments } })

/** Changes in their order: the name of the step, and the merge patch. */
type Steps = readonly (readonly [name: string, patch: object])[]

/** Returns a case that creates a Cluster with a class, and changes the Cluster, one change per step. */
const changedCluster =
  (classOptions: ClassOptions, options: TopologyOptions, ...steps: Steps): Case =>
  async (twin) => {
    await createTopology(twin, classOptions, options)
    for (const [name, patch] of steps) {
      await twin.patch(Cluster, clusterName, patch)
      await twin.settle(name)
    }
  }

/** Returns a case that creates a Cluster with a class, and changes the class, one change per step. */
const changedClass =
  (from: ClassOptions, ...steps: readonly (readonly [name: string, to: ClassOptions])[]): Case =>
  async (twin) => {
    await createTopology(twin, from)
    for (const [name, to] of steps) {
      await twin.patch(ClusterClass, 'quick', { spec: aClass(to).spec })
      await twin.settle(name)
    }
  }

const lifecycle: Case = async (twin) => {
  await createTopology(twin)
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

/** Returns a predicate for `settle`: whether all MachineDeployments have the version. */
export const isUpgraded = (version: string) => (objects: readonly KubeObject[]) =>
  objects
    .filter(({ kind }) => kind === 'MachineDeployment')
    .every((machineDeployment) => (machineDeployment as MachineDeployment).spec.template.spec.version === version)

const upgrade =
  (from: ClassOptions, options: TopologyOptions, version: string): Case =>
  async (twin) => {
    await createTopology(twin, from, options)
    await twin.patch(Cluster, clusterName, topology({ version }))
    await twin.settle('the Cluster is upgraded', isUpgraded(version))
  }

/** The control plane provider does not apply the new version. */
const stuckUpgrade: Case = async (twin) => {
  await createTopology(twin)
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the control plane is stuck')
  await twin.patch(Cluster, clusterName, workers(worker('a', { replicas: 2 }), worker('b')))
  await twin.settle('workers change during the upgrade')
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.36.0' }))
  await twin.settle('another version is rejected')
}

/** The control plane provider does not apply the version of the first of two steps. */
const stuckChain: Case = async (twin) => {
  await createTopology(twin, { spec: { kubernetesVersions: ['v1.34.0', 'v1.35.0', 'v1.36.0'] } })
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.36.0' }))
  await twin.settle('the control plane is stuck')
  await twin.patch(Cluster, clusterName, workers(worker('a', { replicas: 2 })))
  await twin.settle('the new Machine waits for the upgrade')
}

const blockedByAnnotation: Case = async (twin) => {
  const annotation = 'before-upgrade.hook.cluster.cluster.x-k8s.io/wait'
  await createTopology(twin, {}, { metadata: { annotations: { [annotation]: 'yes' } } })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the annotation blocks the upgrade')
  await twin.patch(Cluster, clusterName, { metadata: { annotations: { [annotation]: null } } })
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
}

/** A user changes the spec, and then the labels, of a template of the class. */
const changedTemplate =
  (role: 'machineTemplate' | 'configTemplate' | 'controlPlaneTemplate' | 'clusterTemplate', name: string): Case =>
  async (twin) => {
    await createTopology(twin)
    await twin.patch(stub[role], name, { spec: { template: { spec: { made: 'anew' } } } })
    // Upstream does not watch templates.
    await twin.touch(Cluster, clusterName)
    await twin.settle('the template has another spec')
    await twin.patch(stub[role], name, { spec: { template: { metadata: { labels: { more: 'labels' } } } } })
    await twin.touch(Cluster, clusterName)
    await twin.settle('the template has other labels')
  }

const rebase: Case = async (twin) => {
  await createTopology(twin)
  await createTemplates(twin, 'other')
  await twin.create(ClusterClass, aClass({ name: 'other' }))
  await twin.settle('another class exists')
  await twin.patch(Cluster, clusterName, topology({ classRef: { name: 'other' } }))
  await twin.settle('the Cluster is rebased')
}

const incompatibleRebase: Case = async (twin) => {
  await createTopology(twin)
  await createTemplates(twin, 'other', oldStub)
  await twin.create(ClusterClass, aClass({ name: 'other', kinds: oldStub }))
  await twin.settle('another class exists')
  await twin.patch(Cluster, clusterName, topology({ classRef: { name: 'other' } }))
  await twin.settle('the rebase is rejected')
}

/** A patch cannot be applied, so no object of the topology is created. */
const patchFails: Case = async (twin) => {
  await createTemplates(twin)
  const missingPath = { op: 'replace', path: '/spec/template/spec/nothing/here', value: 1 }
  await twin.create(ClusterClass, aClass(patched(patch('p', toControlPlane(missingPath)))))
  await twin.settle('the class is reconciled')
  await twin.create(Cluster, aCluster(inZone('a')))
  await twin.settle('no object of the topology is created')
}

const noClass: Case = async (twin) => {
  await twin.create(Cluster, aCluster())
  await twin.settle('the class does not exist')
  await createTemplates(twin)
  await createTemplates(twin, 'other')
  await twin.create(ClusterClass, aClass({ name: 'other' }))
  await twin.settle('another class exists')
  const body = topology({ classRef: { name: 'other' } })
  await twin.compareDryRuns(Cluster, [{ what: 'another class', method: 'PATCH', name: clusterName, body }])
  await twin.create(ClusterClass, aClass())
  await twin.settle('the class exists')
}

const noTemplates: Case = async (twin) => {
  await twin.create(ClusterClass, aClass())
  await twin.settle('the templates do not exist')
  await twin.create(Cluster, aCluster())
  await twin.settle('a Cluster of the class is created')
}

/** A finalizer blocks the deletion of a Cluster whose topology cannot be created. */
const deletedUncreated: Case = async (twin) => {
  await twin.create(ClusterClass, aClass())
  await twin.create(Cluster, aCluster())
  await twin.settle('the templates do not exist')
  await twin.patch(Cluster, clusterName, {
    metadata: { finalizers: ['cluster.cluster.x-k8s.io', 'twin.capstan.dev/hold'] },
  })
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is being deleted')
}

const classInUse: Case = async (twin) => {
  await createTopology(twin)
  await twin.delete(ClusterClass, 'quick')
  await twin.patch(ClusterClass, 'quick', { spec: { workers: { machineDeployments: null } } })
  await twin.settle('deletion and change of the class are rejected')
}

const paused: Case = async (twin) => {
  await createTopology(twin)
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.patch(Cluster, clusterName, workers(worker('a', { replicas: 2 })))
  await twin.settle('the topology is paused')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('the topology is resumed')
}

/** A user changes objects that the topology has created. */
const drift: Case = async (twin) => {
  await createTopology(twin)
  await twin.patch(MachineDeployment, ([first]) => first, {
    metadata: { labels: { mine: 'stays' } },
    spec: { template: { metadata: { labels: { mine: 'stays' } }, spec: { version: 'v1.33.0' } } },
  })
  await twin.settle('the MachineDeployment is changed')
  await twin.patch(stub.controlPlane, ([first]) => first, { spec: { version: 'v1.33.0', mine: 'stays' } })
  await twin.settle('the control plane is changed')
}

/** All objects of the topology lose their managedFields. Then labels and annotations are removed from the topology. */
const managedFieldsLost: Case = async (twin) => {
  const withMetadata = (fields: object) => ({ controlPlane: fields, workers: [worker('a', fields)] })
  const classOptions = { controlPlane: { healthCheck: { checks } }, worker: { healthCheck: { checks } } }
  await createTopology(twin, classOptions, withMetadata({ metadata: metadata('t') }))
  await twin.runOnBoth('remove the managedFields', async (client) => {
    const kinds = [
      stub.cluster,
      stub.controlPlane,
      stub.machineTemplate,
      stub.configTemplate,
      MachineDeployment,
      MachineHealthCheck,
    ]
    for (const kind of kinds as readonly Kind[]) {
      const { items } = await client.list(kind, { namespace: twin.namespace, labelSelector: 'topology.cluster.x-k8s.io/owned' })
      const body = { metadata: { managedFields: [{}] } }
      for (const object of items) await client.patch(kind, keyOf(object), { type: 'merge', body })
    }
  })
  await twin.touch(Cluster, clusterName)
  await twin.settle('the managedFields are repaired')
  const removed = { metadata: { labels: { t: null, both: null }, annotations: { t: null, both: null } } }
  await twin.patch(Cluster, clusterName, topology({ controlPlane: removed, workers: { machineDeployments: [worker('a')] } }))
  await twin.settle('labels and annotations are removed')
}

const isControlPlane = ({ kind }: KubeObject): boolean => kind === stub.controlPlane.kind

/** The template of the control plane sets fields that a class or topology usually sets. */
const ownControlPlaneFields: Case = async (twin) => {
  await createTemplates(twin)
  const infrastructureRef = { apiGroup: stub.group, kind: 'StubMachineTemplate', name: 'mine' }
  const own = { replicas: 3, machineTemplate: { spec: { infrastructureRef } } }
  await twin.patch(stub.controlPlaneTemplate, 'quick', { spec: { template: { spec: own } } })
  const template = '{{ hasKey .builtin.controlPlane "replicas" }}'
  const replicas = patch('replicas', toControlPlane(set('hasReplicas', { valueFrom: { template } })))
  await twin.create(ClusterClass, aClass({ controlPlane: { machineInfrastructure: undefined }, spec: { patches: [replicas] } }))
  await twin.settle('the class is reconciled')
  await twin.create(Cluster, aCluster({ topology: { controlPlane: undefined } }))
  await twin.settle('the objects of the topology are created', (objects) => objects.some(isControlPlane))
}

/** Returns the definition of a variable of a ClusterClass. */
export const variable = (name: string, schema: object, required = false) => ({
  name,
  required,
  schema: { openAPIV3Schema: schema },
})
const variables = [
  variable('zone', { type: 'string', enum: ['a', 'b'] }, true),
  variable('size', { type: 'integer', default: 3, minimum: 1 }),
  variable('network', {
    type: 'object',
    properties: { mtu: { type: 'integer', default: 1500 }, name: { type: 'string', maxLength: 5 } },
  }),
  variable('flag', { type: 'boolean', 'x-kubernetes-validations': [{ rule: 'self', message: 'must be set' }] }),
]
/** Returns fields of a topology that set variables. */
export const values = (...list: readonly (readonly [name: string, value: unknown])[]) => ({
  variables: list.map(([name, value]) => ({ name, value })),
})

/** Returns the selector of a patch of a ClusterClass. */
export const selector = (kind: string, matchResources: object) => ({ apiVersion: `${stub.group}/v1`, kind, matchResources })
/** Returns a JSON patch operation that adds a `value` or `valueFrom` at a path in the spec of a template. */
export const set = (path: string, source: { value: unknown } | { valueFrom: object }) => ({
  op: 'add',
  path: `/spec/template/spec/${path}`,
  ...source,
})
/** Returns a patch of a ClusterClass. */
export const patch = (name: string, definitions: readonly object[], fields: object = {}) => ({ name, definitions, ...fields })
const zone = set('zone', { valueFrom: { variable: 'zone' } })
const everywhere = [
  { selector: selector('StubClusterTemplate', { infrastructureCluster: true }), jsonPatches: [zone] },
  { selector: selector('StubControlPlaneTemplate', { controlPlane: true }), jsonPatches: [zone] },
  {
    selector: selector('StubMachineTemplate', { controlPlane: true, machineDeploymentClass: { names: ['*'] } }),
    jsonPatches: [zone],
  },
  { selector: selector('StubConfigTemplate', { machineDeploymentClass: { names: ['wor*'] } }), jsonPatches: [zone] },
]
/** Returns the definitions of a patch that changes the control plane template. */
export const toControlPlane = (...jsonPatches: readonly object[]) => [
  { selector: selector('StubControlPlaneTemplate', { controlPlane: true }), jsonPatches },
]
const builtinsToControlPlane = (...names: readonly string[]) =>
  toControlPlane(...names.map((name, index) => set(`b${index}`, { valueFrom: { variable: `builtin.${name}` } })))
const builtinsToWorkers = (...names: readonly string[]) => [
  {
    selector: selector('StubConfigTemplate', { machineDeploymentClass: { names: ['worker'] } }),
    jsonPatches: names.map((name, index) => set(`b${index}`, { valueFrom: { variable: `builtin.${name}` } })),
  },
]
/** Returns options of a class with the variables `zone`, `size`, `network` and `flag` and with the given patches. */
export const patched = (...patches: readonly object[]): ClassOptions => ({ spec: { variables, patches } })
/** Returns options of a Cluster that sets the variable `zone`, and further variables. */
export const inZone = (
  value: string,
  ...furtherValues: readonly (readonly [name: string, value: unknown])[]
): TopologyOptions => ({
  topology: values(['zone', value], ...furtherValues),
})

export const checks = {
  nodeStartupTimeoutSeconds: 300,
  unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 60 }],
}
/** Returns labels and annotations: `{ c: 'c', both: 'c' }` for the letter `c`. Those of two letters have only the key `both` in common. */
export const metadata = (letter: string) => ({
  labels: { [letter]: letter, both: letter },
  annotations: { [letter]: letter, both: letter },
})
const machineFields = {
  deletion: { nodeDrainTimeoutSeconds: 5, nodeVolumeDetachTimeoutSeconds: 6, nodeDeletionTimeoutSeconds: 7 },
  readinessGates: [{ conditionType: 'Extra' }],
  taints: [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }],
}
const annotated = (name: string, annotation: string) =>
  worker(name, { metadata: { annotations: { [`topology.cluster.x-k8s.io/${annotation}`]: '' } } })
const threeWorkers = [worker('a'), worker('b'), worker('c')]
const patchTo35 = topology({ version: 'v1.35.0' })
const stepTo35 = ['the Cluster is upgraded', patchTo35] as const

const withDefaultZone = (zoneName: string): ClassOptions => ({
  spec: { variables: [variable('zone', { type: 'string', default: zoneName })], patches: [patch('zones', everywhere)] },
})

/** The reference to the class has the namespace of the Cluster. */
const sameNamespace: Case = async (twin) => {
  await createTopology(twin, {}, { topology: { classRef: { name: 'quick', namespace: twin.namespace } } })
}

/**
 * The class is created while the admission webhook handles the request to create its Cluster. The webhook waits up to two seconds until core
 * has reconciled the class.
 */
const createdTogether: Case = async (twin) => {
  await createTemplates(twin)
  await twin.startWorkload(clusterName)
  const variables = [variable('size', { type: 'integer', default: 3 })]
  const createClass = async () => {
    await sleep(systemClock, 300)
    await twin.create(ClusterClass, aClass({ spec: { variables } }))
  }
  await Promise.all([twin.create(Cluster, aCluster()), createClass()])
  await twin.settle('the variable has its default', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && ((object as Cluster).spec.topology?.variables ?? []).length > 0),
  )
}

/** A user deletes objects that the topology has created. */
const deploymentDeleted: Case = async (twin) => {
  await createTopology(twin, { worker: { healthCheck: { checks } } })
  await twin.delete(MachineDeployment, ([first]) => first)
  await twin.settle('the MachineDeployment is deleted')
  await twin.delete(stub.configTemplate, (templates) => templates.find(({ metadata }) => metadata.name !== 'quick-worker'))
  await twin.touch(Cluster, clusterName)
  await twin.settle('the bootstrap template of the MachineDeployment is deleted')
}

const healthCheckDeleted: Case = async (twin) => {
  await createTopology(twin, { worker: { healthCheck: { checks } } })
  await twin.delete(MachineHealthCheck, ([first]) => first)
  await twin.touch(Cluster, clusterName)
  await twin.settle('the health check is deleted')
  await twin.patch(MachineHealthCheck, ([first]) => first, { spec: { checks: { nodeStartupTimeoutSeconds: 900 } } })
  await twin.touch(Cluster, clusterName)
  await twin.settle('the health check is changed')
}

/** The finalizer of an infrastructure machine blocks the deletion of a Cluster with health checks. */
const deletionBlocked: Case = async (twin) => {
  await createTopology(twin, { controlPlane: { healthCheck: { checks } }, worker: { healthCheck: { checks } } })
  await twin.patch(stub.machine, ([first]) => first, { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is being deleted')
  await twin.patch(stub.machine, ([first]) => first, { metadata: { finalizers: null } })
  await twin.settle('the Cluster is deleted')
}

/** A user removes the label that marks objects of topologies. */
const disowned =
  (role: 'controlPlane' | 'machineDeployment'): Case =>
  async (twin) => {
    await createTopology(twin)
    const body = { metadata: { labels: { 'topology.cluster.x-k8s.io/owned': null } } }
    if (role === 'controlPlane') await twin.patch(stub.controlPlane, ([first]) => first, body)
    else await twin.patch(MachineDeployment, ([first]) => first, body)
    await twin.touch(Cluster, clusterName)
    await twin.settle('the label is removed')
  }

/** An autoscaler sets the replicas of a MachineDeployment. Annotations contain the limits of the autoscaler. */
const autoscaled: Case = async (twin) => {
  const limits = (minimum: string, maximum: string) => ({
    metadata: {
      annotations: {
        'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': minimum,
        'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': maximum,
      },
    },
  })
  const { replicas: _replicas, ...scaled } = worker('a', limits('2', '4'))
  await createTopology(twin, {}, { workers: [scaled] })
  await twin.patch(MachineDeployment, ([first]) => first, { spec: { replicas: 3 } })
  await twin.settle('scaled by the autoscaler')
  await twin.patch(Cluster, clusterName, workers({ ...scaled, ...limits('4', '5') }))
  await twin.settle('the limits of the autoscaler change')
  await twin.touch(MachineDeployment, ([first]) => first)
  await twin.settle('the webhook is called again')
}

/**
 * The topology of a MachineDeployment is removed, and added again under the same name while a finalizer blocks the deletion of the
 * MachineDeployment.
 */
const deploymentDeletionBlocked: Case = async (twin) => {
  await createTopology(twin, {}, { workers: [worker('a'), worker('b')] })
  await twin.runOnBoth('add a finalizer to the MachineDeployments', async (client) => {
    const { items } = await client.list(MachineDeployment, { namespace: twin.namespace })
    for (const { metadata } of items) {
      const finalizers = [...(metadata.finalizers ?? []), 'twin.capstan.dev/hold']
      await client.patch(MachineDeployment, keyOf({ metadata } as never), { type: 'merge', body: { metadata: { finalizers } } })
    }
  })
  await twin.patch(Cluster, clusterName, workers(worker('b')))
  await twin.settle('the topology of a MachineDeployment is removed')
  await twin.patch(Cluster, clusterName, workers(worker('a'), worker('b')))
  await twin.settle('the topology of the MachineDeployment is added again')
}

/** The variables of the class change while a Cluster uses them. */
const variablesChange: Case = async (twin) => {
  await createTopology(twin, patched(patch('zones', everywhere)), inZone('a'))
  const withVariables = (list: readonly object[]) => ({
    spec: aClass({ spec: { variables: list, patches: [patch('zones', everywhere)] } }).spec,
  })
  await twin.patch(ClusterClass, 'quick', withVariables([variable('zone', { type: 'string', enum: ['x', 'y'] }, true)]))
  await twin.settle('the value is no longer valid')
  await twin.patch(
    ClusterClass,
    'quick',
    withVariables([variable('zone', { type: 'string' }, true), variable('added', { type: 'string', default: 'd' })]),
  )
  await twin.settle('a variable is added')
  await twin.patch(Cluster, clusterName, { metadata: { labels: { touched: 'yes' } } })
  await twin.settle('the Cluster is changed')
}

const pausedClass: Case = async (twin) => {
  await createTopology(twin)
  await twin.patch(ClusterClass, 'quick', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
  await twin.settle('the class is paused')
  await twin.patch(ClusterClass, 'quick', { spec: aClass({ worker: { metadata: metadata('c') } }).spec })
  await twin.settle('the paused class is changed')
  await twin.patch(ClusterClass, 'quick', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the class is resumed')
}

const templateDeleted: Case = async (twin) => {
  await createTopology(twin)
  await twin.delete(stub.machineTemplate, 'quick-worker')
  await twin.touch(Cluster, clusterName)
  await twin.settle('a template of the class is deleted')
}

const versionTakenBack: Case = async (twin) => {
  await createTopology(twin)
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the control plane is stuck')
  await twin.patch(Cluster, clusterName, {
    metadata: { annotations: { 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check': '' } },
    ...topology({ version: 'v1.34.0' }),
  })
  await twin.settle('the Cluster is set back to the old version')
}

export const topologyCases: Cases = {
  'topology-life': lifecycle,
  'topology-deletion-blocked': deletionBlocked,
  'topology-own-control-plane-fields': ownControlPlaneFields,
  'topology-no-workers': changedCluster({}, { workers: [] }),
  'topology-scale': changedCluster(
    {},
    {},
    ['workers are scaled up', workers(worker('a', { replicas: 2 }))],
    ['the control plane is scaled up', topology({ controlPlane: { replicas: 3 } })],
    ['replicas are not set', workers({ class: 'worker', name: 'a' })],
  ),
  'topology-workers-added-and-removed': changedCluster(
    {},
    {},
    ['two workers', workers(worker('a'), worker('b'))],
    ['one worker', workers(worker('b'))],
  ),
  'topology-upgrade': upgrade({}, {}, 'v1.35.0'),
  'topology-upgrade-patch-version': upgrade({}, {}, 'v1.34.5'),
  'topology-upgrade-three-workers': upgrade({}, { workers: threeWorkers }, 'v1.35.0'),
  'topology-upgrade-concurrency': upgrade(
    {},
    { workers: threeWorkers, metadata: { annotations: { 'topology.cluster.x-k8s.io/upgrade-concurrency': '2' } } },
    'v1.35.0',
  ),
  'topology-upgrade-chained': upgrade({ spec: { kubernetesVersions: ['v1.34.0', 'v1.35.0', 'v1.36.0'] } }, {}, 'v1.36.0'),
  'topology-upgrade-chained-stuck': stuckChain,
  'topology-upgrade-too-far': changedCluster(
    {},
    {},
    ['the upgrade is rejected', topology({ version: 'v1.36.0' })],
    ['the downgrade is rejected', topology({ version: 'v1.33.0' })],
  ),
  'topology-upgrade-unknown-version': changedCluster({ spec: { kubernetesVersions: ['v1.34.0', 'v1.35.0'] } }, {}, [
    'the upgrade is rejected',
    topology({ version: 'v1.35.1' }),
  ]),
  'topology-upgrade-defer': changedCluster(
    {},
    { workers: [annotated('a', 'defer-upgrade'), worker('b')] },
    ['the upgrade of the worker a is deferred', patchTo35],
    ['the upgrade is no longer deferred', workers(worker('a'), worker('b'))],
  ),
  'topology-upgrade-hold': changedCluster(
    {},
    { workers: [worker('a'), annotated('b', 'hold-upgrade-sequence'), worker('c')] },
    ['the upgrade of the workers b and c is on hold', patchTo35],
    ['the upgrade is no longer on hold', workers(...threeWorkers)],
  ),
  'topology-upgrade-blocked-by-annotation': blockedByAnnotation,
  'topology-upgrade-stuck': stuckUpgrade,
  'topology-rotates-worker-machines': changedTemplate('machineTemplate', 'quick-worker'),
  'topology-rotates-control-plane-machines': changedTemplate('machineTemplate', 'quick-control-plane'),
  'topology-rotates-configs': changedTemplate('configTemplate', 'quick-worker'),
  'topology-changes-control-plane': changedTemplate('controlPlaneTemplate', 'quick'),
  'topology-changes-infrastructure': changedTemplate('clusterTemplate', 'quick'),
  'topology-rebase': rebase,
  'topology-rebase-incompatible': incompatibleRebase,
  'topology-no-class': noClass,
  'topology-no-templates': noTemplates,
  'topology-no-templates-deleted': deletedUncreated,
  'topology-class-in-use': classInUse,
  'topology-paused': paused,
  'topology-drift': drift,
  'topology-managed-fields-lost': managedFieldsLost,
  'topology-old-contract': changedCluster({ kinds: oldStub }, {}, stepTo35),
  'topology-metadata': changedCluster(
    { controlPlane: { metadata: metadata('c') }, worker: { metadata: metadata('c') } },
    { controlPlane: { metadata: metadata('t') }, workers: [worker('a', { metadata: metadata('t') })] },
    ['the metadata is removed', topology({ controlPlane: { metadata: null }, workers: { machineDeployments: [worker('a')] } })],
  ),
  'topology-machine-fields-of-class': changedCluster(
    { controlPlane: machineFields, worker: { ...machineFields, minReadySeconds: 2 } },
    {},
  ),
  'topology-machine-fields-of-cluster': changedCluster(
    {},
    { controlPlane: machineFields, workers: [worker('a', { ...machineFields, minReadySeconds: 2, failureDomain: 'x' })] },
    [
      'the fields are removed',
      topology({
        controlPlane: { deletion: null, readinessGates: null, taints: null },
        workers: { machineDeployments: [worker('a')] },
      }),
    ],
  ),
  'topology-rollout-strategy': changedCluster(
    { worker: { rollout: { strategy: { type: 'OnDelete' } }, deletion: { order: 'Oldest' } } },
    {},
    [
      'another strategy',
      workers(
        worker('a', { rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } }),
      ),
    ],
  ),
  'topology-rollout-after': changedCluster({}, {}, [
    'the rollout time has passed',
    topology({
      controlPlane: { rollout: { after: '2020-01-01T00:00:00Z' } },
      workers: { machineDeployments: [worker('a', { rollout: { after: '2020-01-01T00:00:00Z' } })] },
    }),
  ]),
  'topology-naming': changedCluster(
    {
      spec: {
        infrastructure: {
          naming: { template: '{{ .cluster.name }}-infra-{{ .random }}' },
          templateRef: ref(stub, 'StubClusterTemplate', 'quick'),
        },
      },
      controlPlane: { naming: { template: 'cp-{{ .cluster.name }}' } },
      worker: { naming: { template: '{{ .machineDeployment.topologyName }}-of-{{ .cluster.name }}' } },
    },
    {},
  ),
  'topology-health-checks-of-class': changedCluster(
    { controlPlane: { healthCheck: { checks } }, worker: { healthCheck: { checks } } },
    {},
    [
      'the health checks are disabled',
      topology({
        controlPlane: { healthCheck: { enabled: false } },
        workers: { machineDeployments: [worker('a', { healthCheck: { enabled: false } })] },
      }),
    ],
  ),
  'topology-health-checks-of-cluster': changedCluster(
    { worker: { healthCheck: { checks } } },
    { workers: [worker('a', { healthCheck: { checks: { nodeStartupTimeoutSeconds: 900 }, remediation: { maxInFlight: 1 } } })] },
    ['the health check of the class applies again', workers(worker('a'))],
  ),
  'topology-availability-gates': changedCluster({ spec: { availabilityGates: [{ conditionType: 'Extra' }] } }, {}),
  'topology-variables': changedCluster(patched(patch('zones', everywhere)), inZone('a'), [
    'the zone changes',
    topology(values(['zone', 'b'], ['size', 3])),
  ]),
  'topology-variables-rejected': changedCluster(
    patched(patch('zones', everywhere)),
    inZone('a'),
    ['a value outside of the enum', topology(values(['zone', 'c']))],
    ['a required variable is missing', topology(values(['size', 1]))],
    ['an unknown variable', topology(values(['zone', 'a'], ['nothing', 1]))],
    ['a value of another type', topology(values(['zone', 'a'], ['size', 'big']))],
    ['a number below the minimum', topology(values(['zone', 'a'], ['size', 0]))],
    ['an unknown field', topology(values(['zone', 'a'], ['network', { mtu: 1, color: 'red' }]))],
    ['a string above the maximum length', topology(values(['zone', 'a'], ['network', { name: 'abcdef' }]))],
    ['a rule is violated', topology(values(['zone', 'a'], ['flag', false]))],
    ['a variable is given twice', topology(values(['zone', 'a'], ['zone', 'b']))],
  ),
  'topology-variable-defaults': changedCluster(patched(patch('zones', everywhere)), inZone('a', ['network', { name: 'n' }])),
  'topology-variable-overrides': changedCluster(patched(patch('zones', everywhere)), {
    ...inZone('a'),
    controlPlane: { variables: { overrides: [{ name: 'zone', value: 'b' }] } },
    workers: [worker('a', { variables: { overrides: [{ name: 'zone', value: 'b' }] } }), worker('b')],
  }),
  'topology-patch-disabled': changedCluster(
    patched(patch('zones', everywhere, { enabledIf: '{{ eq .zone "b" }}' })),
    inZone('a'),
    ['the patch is enabled', topology(values(['zone', 'b']))],
  ),
  'topology-patch-templates': changedCluster(
    patched(
      patch(
        'texts',
        toControlPlane(
          set('text', { valueFrom: { template: 'zone {{ .zone | upper }} of {{ .builtin.cluster.name }}' } }),
          set('limit', { valueFrom: { template: 'at most {{ .size }} or {{ .size | int }}' } }),
          set('number', { valueFrom: { template: '{{ .size }}' } }),
          set('list', { value: ['x'] }),
          set('list/0', { value: 'first' }),
          set('list/-', { value: 'last' }),
          { op: 'replace', path: '/spec/template/spec/made', value: 'by a patch' },
        ),
      ),
    ),
    inZone('a', ['size', 12_345_678]),
  ),
  'topology-patch-removes': changedCluster(
    patched(patch('p', toControlPlane({ op: 'remove', path: '/spec/template/spec/made' }))),
    inZone('a'),
  ),
  'topology-patch-removes-labels': changedCluster(
    patched(
      patch(
        'p',
        [
          selector('StubClusterTemplate', { infrastructureCluster: true }),
          selector('StubMachineTemplate', { machineDeploymentClass: { names: ['worker'] } }),
          selector('StubConfigTemplate', { machineDeploymentClass: { names: ['worker'] } }),
        ].map((selected) => ({
          selector: selected,
          jsonPatches: [{ op: 'remove', path: '/spec/template/metadata/labels' }],
        })),
      ),
    ),
    inZone('a'),
  ),
  'topology-patch-fails': patchFails,
  'topology-patch-of-core-fields': changedCluster(
    patched(patch('p', toControlPlane(set('version', { value: 'v1.0.0' }), set('replicas', { value: 7 })))),
    inZone('a'),
  ),
  'topology-patch-builtin-cluster': changedCluster(
    patched(
      patch(
        'p',
        builtinsToControlPlane(
          'cluster.name',
          'cluster.namespace',
          'cluster.topology.version',
          'cluster.topology.class',
          'cluster.topology.classRef.name',
          'controlPlane.version',
          'controlPlane.replicas',
        ),
      ),
    ),
    inZone('a'),
    stepTo35,
  ),
  'topology-patch-builtin-workers': changedCluster(
    patched(
      patch(
        'p',
        builtinsToWorkers(
          'machineDeployment.version',
          'machineDeployment.class',
          'machineDeployment.topologyName',
          'machineDeployment.replicas',
        ),
      ),
    ),
    inZone('a'),
    ['workers are scaled up', workers(worker('a', { replicas: 2 }))],
  ),
  'topology-class-gets-patches': changedClass({ spec: { variables: [variable('zone', { type: 'string', default: 'a' })] } }, [
    'the class gets patches',
    { spec: { variables: [variable('zone', { type: 'string', default: 'a' })], patches: [patch('p', everywhere)] } },
  ]),
  'topology-class-changes-default': changedClass(
    {},
    ['a variable with a default is added', withDefaultZone('a')],
    ['the default changes', withDefaultZone('b')],
  ),
  'topology-class-gets-metadata': changedClass({}, [
    'the class gets metadata',
    { controlPlane: { metadata: metadata('c') }, worker: { metadata: metadata('c') } },
  ]),
  'topology-class-loses-health-check': changedClass({ worker: { healthCheck: { checks } } }, [
    'the class has no health check',
    {},
  ]),
  'topology-class-of-namespace': sameNamespace,
  'topology-deployment-deleted': deploymentDeleted,
  'topology-health-check-deleted': healthCheckDeleted,
  'topology-control-plane-disowned': disowned('controlPlane'),
  'topology-deployment-disowned': disowned('machineDeployment'),
  'topology-autoscaled': autoscaled,
  'topology-deployment-deletion-blocked': deploymentDeletionBlocked,
  'topology-variables-change': variablesChange,
  'topology-class-paused': pausedClass,
  'topology-template-deleted': templateDeleted,
  'topology-version-taken-back': versionTakenBack,
  'topology-patch-enabled-by-nonsense': changedCluster(
    patched(
      patch('text', toControlPlane(set('a', { value: 1 })), { enabledIf: 'perhaps' }),
      patch('yes', toControlPlane(set('b', { value: 1 })), { enabledIf: '{{ if .zone }}true{{ end }}' }),
      patch('quoted', toControlPlane(set('c', { value: 1 })), { enabledIf: '"true"' }),
    ),
    inZone('a'),
  ),
  'topology-upgrade-build-tags': upgrade({}, {}, 'v1.34.0+build.1'),
  'topology-upgrade-chained-patches': upgrade(
    { spec: { kubernetesVersions: ['v1.34.0', 'v1.34.3', 'v1.35.1', 'v1.35.2', 'v1.36.0'] } },
    {},
    'v1.36.0',
  ),
  'topology-upgrade-no-workers': upgrade({}, { workers: [] }, 'v1.35.0'),
  'topology-upgrade-and-change': changedCluster({}, { workers: [worker('a'), worker('b')] }, [
    'version, replicas and metadata at once',
    topology({
      version: 'v1.35.0',
      controlPlane: { replicas: 3, metadata: metadata('t') },
      workers: { machineDeployments: [worker('a', { replicas: 2, metadata: metadata('t') }), worker('c')] },
    }),
  ]),
  'topology-cluster-metadata': changedCluster({}, { metadata: { labels: { mine: 'x' }, annotations: { note: 'y' } } }, [
    'labels of the topology are removed',
    { metadata: { labels: { 'topology.cluster.x-k8s.io/owned': null, 'cluster.x-k8s.io/cluster-name': null } } },
  ]),
}

/** Cases that require a reconcile within two seconds. */
export const timedTopologyCases: Cases = { 'topology-class-created-together': createdTogether }
