/**
 * Cases of MachineSets.
 * Every case does the same with upstream's core and with Capstan's, and compares the objects on both sides after each step (`settle`,
 * `settleRetries`).
 */
import { Cluster, Machine, MachineDeployment, MachineSet, PendingHooksAnnotation, UpdateInProgressAnnotation } from '@capstan/api'
import { holdFor } from '@capstan/extension'
import { isDeleting, isTrue, type Kind, keyOf, type KubeObject, ownerReference } from '@capstan/kube'
import { clusterName, machine, machineDeployment, machineSet, named } from '../objects.ts'
import { noReport } from '../providers.ts'
import type { Report } from '../side.ts'
import { kubeadmStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import { createPolicy, type DeniedRequests } from './policy.ts'

/** Creates the bootstrap and infrastructure templates of workers. */
export async function createWorkerTemplates(twin: Twin): Promise<void> {
  const spec = { template: { spec: { made: 'from the template' } } }
  await twin.create(stub.configTemplate, named('worker', { spec }))
  await twin.create(stub.machineTemplate, named('worker', { spec }))
}

const scale: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('two Machines run')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 3 } })
  await twin.settle('scaled up')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('scaled down')
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the MachineSet is deleted')
}

/** Creates a MachineSet of a version, with further `metadata`, while the control plane reports `controlPlane`. */
const preflight =
  (version: string, controlPlane: Report, metadata: object = {}): Case =>
  async (twin) => {
    await twin.setReports({ controlPlane: () => controlPlane })
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await twin.settle('the Cluster is ready')
    const { metadata: own, spec } = machineSet('ms')
    const template = { ...spec.template, spec: { ...spec.template.spec, version } }
    await twin.create(MachineSet, { metadata: { ...own, ...metadata }, spec: { ...spec, template } })
    await twin.settle('the preflight checks have run')
  }

const controlPlane = (version: string, fields: { spec?: object; status?: object } = {}): Report => ({
  spec: { version, ...fields.spec },
  status: { initialization: { controlPlaneInitialized: true }, version, ...fields.status },
})

const skip = (checks: string) => ({ annotations: { 'machineset.cluster.x-k8s.io/skip-preflight-checks': checks } })

/** Creates a Machine without a controller in its owner references, and the Machine's provider objects. */
export async function createOrphan(
  twin: Twin,
  name: string,
  labels: { [key: string]: string },
  fields: object = {},
): Promise<void> {
  await twin.create(stub.config, named(name, { spec: {} }))
  await twin.create(stub.machine, named(name, { spec: {} }))
  const { metadata, ...rest } = machine(name)
  await twin.create(Machine, { ...rest, metadata: { ...metadata, labels, ...fields } })
}

const adoption: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await createOrphan(twin, 'lone', { set: 'ms' })
  await twin.settle('the Machine runs')
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the Machine is adopted')
  await twin.patch(Machine, 'lone', { metadata: { labels: { set: null } } })
  await twin.settle('the Machine no longer matches')
}

/** A MachineSet with a bootstrap template adopts a Machine that has a bootstrap data Secret instead of a bootstrap config. */
const adoptionOfDataSecret: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(stub.machine, named('lone', { spec: {} }))
  const { metadata, spec } = machine('lone', { bootstrap: { dataSecretName: 'mine' } })
  await twin.create(Machine, { metadata: { ...metadata, labels: { set: 'ms' } }, spec })
  await twin.settle('the Machine runs')
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the Machine is adopted')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 0 } })
  await twin.settle('the Machine is deleted', (objects) => objects.every(({ kind }) => kind !== 'Machine'))
}

/** Creates a policy that rejects requests in the namespace of the case. */
export const deny = (twin: Twin, denied: DeniedRequests): Promise<void> =>
  twin.runOnBoth('create the policy', (client) => createPolicy(client, twin.namespace, { ...denied, namespace: twin.namespace }))

/** A user removes the owner references of a Machine, and another MachineSet adopts it. Annotations of the Node name the Machine's controller. */
const controllerRemoved: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('a Node names its controller', (objects) => objects.some(isNodeOf('MachineSet', 'ms')))
  const pause = (value: '' | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
  await twin.patch(MachineSet, 'ms', { ...pause(''), spec: { replicas: 0 } })
  await twin.settle('the MachineSet is paused')
  const setName = 'cluster.x-k8s.io/set-name'
  const released = { metadata: { labels: { set: 'other', [setName]: null }, ownerReferences: null } }
  await twin.patch(Machine, ([first]) => first, released)
  await twin.patch(MachineSet, 'ms', pause(null))
  await twin.settle('the Node names no controller', (objects) => objects.some(isNodeOf(undefined, undefined)))
  await twin.create(MachineSet, machineSet('other'))
  await twin.settle('the Node names another controller', (objects) => objects.some(isNodeOf('MachineSet', 'other')))
}

/** A user removes the owner references of a Machine. A label of the Machine still names the MachineSet. */
const ownerRemoved: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('a Node names its controller', (objects) => objects.some(isNodeOf('MachineSet', 'ms')))
  await twin.patch(Machine, ([first]) => first, { metadata: { labels: { set: null }, ownerReferences: null } })
  await twin.settle('the Node names no controller', (objects) => objects.some(isNodeOf(undefined, undefined)))
}

/**
 * Returns whether an object is the Node of a Machine with this controller, or without a controller if both arguments are
 * undefined.
 */
const isNodeOf =
  (kind: string | undefined, name: string | undefined) =>
  ({ kind: ownKind, metadata: { annotations = {} } }: KubeObject): boolean =>
    ownKind === 'Node' &&
    annotations['cluster.x-k8s.io/machine'] !== undefined &&
    annotations['cluster.x-k8s.io/owner-kind'] === kind &&
    annotations['cluster.x-k8s.io/owner-name'] === name

/** Of two Machines, one cannot be adopted. */
const adoptionFails: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await createOrphan(twin, 'blocked', { set: 'ms' })
  await createOrphan(twin, 'free', { set: 'ms' })
  await twin.settle('both Machines run')
  const accepted = "object.metadata.name != 'blocked' || object.metadata.ownerReferences.all(owner, owner.kind != 'MachineSet')"
  await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machines', operation: 'UPDATE', accepted })
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('one of the Machines is adopted')
}

/**
 * A policy denies the creation of Machines, of their infrastructure or of their bootstrap configs. Each retry uses a new name, and
 * deletes the objects that it has created. The condition MachinesCreated contains the name, so upstream writes the status in each
 * retry, and this write triggers the next retry a second later. Upstream is therefore never idle.
 */
const creationFails =
  (group: string, resource: string): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await deny(twin, { group, resource, operation: 'CREATE' })
    await twin.create(MachineSet, machineSet('ms'))
    await twin.settleRetries('no Machine can be created', (objects) => objects.some(cannotCreate))
  }

const cannotCreate = (object: KubeObject): boolean =>
  object.kind === 'MachineSet' &&
  ((object as MachineSet).status?.deprecated?.v1beta1?.conditions ?? []).some(
    ({ type, status }) => type === 'MachinesCreated' && status === 'False',
  )

const withSelector =
  (requirement: object): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await twin.create(MachineSet, machineSet('ms', { selector: { matchExpressions: [requirement] } } as never))
    await twin.settle('the MachineSet is reconciled')
  }

/** A MachineSet is deleted. Core cannot convert its selector to labels. */
const selectorDeleted: Case = async (twin) => {
  await withSelector({ key: 'set', operator: 'Exists' })(twin)
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the MachineSet is deleted', (objects) => objects.every(({ kind }) => kind !== MachineSet.kind))
}

/** Two policies prevent the Cluster from becoming an owner of the templates. */
const templateOwnerDenied: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  for (const resource of ['stubmachinetemplates', 'stubconfigtemplates'])
    await twin.runOnBoth(`create the policy for ${resource}`, (client) =>
      createPolicy(client, `${twin.namespace}-${resource}`, {
        group: stub.group,
        resource,
        operation: 'UPDATE',
        namespace: twin.namespace,
      }),
    )
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settleRetries('a Machine is created', (objects) => machinesIn(objects).length === 1)
}

/** An unhealthy Machine cannot be replaced, because the bootstrap template does not exist. */
const remediationWithoutTemplate: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.delete(stub.configTemplate, 'worker')
  await addCondition(twin, byName(0), { type: 'HealthCheckSucceeded', status: 'False' })
  await addCondition(twin, byName(0), { type: 'OwnerRemediated', status: 'False', reason: 'WaitingForRemediation' })
  await twin.settle('the remediation is deferred', (objects) => objects.some(mentions('skip-preflight-checks annotation')))
}

const noTemplates: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the templates do not exist')
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the MachineSet is deleted')
}

/** Changes fields that core propagates to existing Machines. */
const inPlace: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  const template = {
    metadata: { labels: { extra: 'a' }, annotations: { note: 'b' } },
    spec: {
      minReadySeconds: 3,
      deletion: { nodeDrainTimeoutSeconds: 5, nodeDeletionTimeoutSeconds: 7 },
      taints: [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }],
    },
  }
  await twin.patch(MachineSet, 'ms', { spec: { template } })
  await twin.settle('fields of the template are changed in place')
  const removed = {
    metadata: { labels: { extra: null }, annotations: { note: null } },
    spec: { taints: null, deletion: { nodeDrainTimeoutSeconds: null } },
  }
  await twin.patch(MachineSet, 'ms', { spec: { template: removed } })
  await twin.settle('some of the changes are reverted')
}

const paused: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, ...rest } = machineSet('ms')
  await twin.create(MachineSet, { ...rest, metadata: { ...metadata, annotations: { 'cluster.x-k8s.io/paused': '' } } })
  await twin.settle('the MachineSet is created paused')
  await twin.patch(MachineSet, 'ms', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the MachineSet is resumed')
}

/** Returns a patch that adds labels with empty values. */
export const labels = (...names: readonly string[]) => ({
  metadata: { labels: Object.fromEntries(names.map((name) => [name, ''])) },
})
export const hasLabel = (name: string) => (object: KubeObject) => object.metadata.labels?.[name] !== undefined
/** Returns a target that selects the object at this position among the objects of the kind, in the order of their names. */
export const byName =
  (index: number) =>
  <T extends KubeObject>(objects: readonly T[]): T | undefined =>
    objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[index]

export const machinesIn = (objects: readonly KubeObject[]) =>
  objects.filter((object): object is Machine => object.kind === Machine.kind)

/** Returns whether the Machines that are not being deleted are exactly those with these labels, one Machine for each label. */
export const remain =
  (...names: readonly string[]) =>
  (objects: readonly KubeObject[]): boolean => {
    const machines = machinesIn(objects).filter((object) => !isDeleting(object))
    return machines.length === names.length && names.every((name) => machines.some(hasLabel(name)))
  }

/** When a MachineSet is scaled down, it deletes the Machine that a user has marked with an annotation. */
const deletesMarked: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2, deletion: { order: 'Random' } } as never))
  await twin.settle('two Machines run')
  // Without the annotation, the Machine with the first name would be deleted.
  await twin.patch(Machine, byName(0), labels('first'))
  await twin.patch(Machine, byName(1), { metadata: { annotations: { 'cluster.x-k8s.io/delete-machine': '' } } })
  await twin.settle('a Machine is marked for deletion')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('scaled down', remain('first'))
}

/** A MachineSet with two Machines of different age is scaled down to one. */
const deletesByAge =
  (order: 'Newest' | 'Oldest'): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await twin.create(MachineSet, machineSet('ms', { replicas: 1, deletion: { order } }))
    await twin.settle('one Machine runs', (objects) => machinesIn(objects).length === 1)
    await twin.patch(Machine, byName(0), labels('old'))
    await twin.patch(MachineSet, 'ms', { spec: { replicas: 2 } })
    await twin.settle('two Machines run', (objects) => machinesIn(objects).length === 2)
    await twin.patch(Machine, (machines) => machines.find((object) => !hasLabel('old')(object)), labels('new'))
    await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
    await twin.settle('scaled down', remain(order === 'Newest' ? 'old' : 'new'))
  }

const withFinalizers = (finalizers: readonly string[] | null) => ({ metadata: { finalizers } })
const blockDeletion = withFinalizers(['twin.capstan.dev/hold'])
const allowDeletion = withFinalizers(null)

/** Adds a condition to the status of a Machine. */
export const addCondition = (twin: Twin, machine: (machines: readonly Machine[]) => Machine | undefined, condition: object) =>
  twin.runOnBoth('add a condition', async (client, side) => {
    const value = { reason: 'Twin', message: '', lastTransitionTime: '2026-01-01T00:00:00Z', ...condition }
    const operations = [{ op: 'add' as const, path: '/status/conditions/-', value }]
    await client.patch(
      Machine,
      keyOf(machine(side.objects(twin.namespace, Machine))!),
      { type: 'json', operations },
      { subresource: 'status' },
    )
  })

/** A MachineSet is scaled down in steps. One of its Machines is healthy, one unhealthy, one is updating, and one is being deleted. */
const deletesByPriority: Case = async (twin) => {
  const inProgress = { metadata: { annotations: { [UpdateInProgressAnnotation]: '' } } }
  await twin.registerExtension()
  twin.setResponse('UpdateMachine', () => holdFor(1, 'not yet'))
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 4 }))
  await twin.settle('four Machines run')
  for (const [index, name] of ['healthy', 'unhealthy', 'updating', 'deleted'].entries())
    await twin.patch(Machine, byName(index), labels(name))
  await addCondition(twin, byName(1), { type: 'HealthCheckSucceeded', status: 'False' })
  await twin.patch(stub.machine, byName(2), inProgress)
  await twin.patch(stub.config, byName(2), inProgress)
  await twin.patch(Machine, byName(2), {
    metadata: { annotations: { ...inProgress.metadata.annotations, [PendingHooksAnnotation]: 'UpdateMachine' } },
  })
  await twin.patch(stub.machine, byName(3), blockDeletion)
  await twin.delete(Machine, byName(3))
  await twin.settle('one Machine is updating, and one is being deleted', remain('healthy', 'unhealthy', 'updating'))
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 3 } })
  await twin.settle('no further Machine is deleted', remain('healthy', 'unhealthy', 'updating'))
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 2 } })
  await twin.settle('the updating Machine is deleted', remain('healthy', 'unhealthy'))
  await twin.patch(stub.machine, (machines) => machines.find(isDeleting), allowDeletion)
  await twin.settle('two Machines are left', (objects) => machinesIn(objects).length === 2)
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('the unhealthy Machine is deleted', remain('healthy'))
}

/** Fields of the template change while a Machine is being deleted. */
const deletingMachineChanged: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.patch(stub.machine, byName(0), blockDeletion)
  await twin.delete(Machine, byName(0))
  await twin.settle('the Machine is being deleted', (objects) => machinesIn(objects).some(isDeleting))
  const template = {
    metadata: { labels: { extra: 'a' }, annotations: { note: 'b' } },
    spec: {
      version: 'v1.35.1',
      minReadySeconds: 3,
      readinessGates: [{ conditionType: 'Extra' }],
      deletion: { nodeDrainTimeoutSeconds: 5, nodeDeletionTimeoutSeconds: 7, nodeVolumeDetachTimeoutSeconds: 9 },
      taints: [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }],
    },
  }
  await twin.patch(MachineSet, 'ms', { spec: { template } })
  const hasTimeouts = ({ spec }: Machine) => spec.deletion?.nodeDrainTimeoutSeconds === 5
  await twin.settle('the Machine has the timeouts of the template', (objects) =>
    machinesIn(objects).some((object) => isDeleting(object) && hasTimeouts(object)),
  )
  const removed = { deletion: { nodeDrainTimeoutSeconds: null, nodeDeletionTimeoutSeconds: null }, taints: null }
  await twin.patch(MachineSet, 'ms', { spec: { template: { spec: removed } } })
  await twin.settle('some of the changes are reverted', (objects) => !machinesIn(objects).some(hasTimeouts))
}

/** The Machines of a MachineSet cannot be deleted. */
const deletionDenied: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('two Machines run')
  await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machines', operation: 'DELETE' })
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('the MachineSet cannot be scaled down')
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the MachineSet cannot be deleted')
}

/** Provider objects exist without their Machines, as after a failed creation. */
const orphanedObjects: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.runOnBoth('create provider objects without Machines', async (client) => {
    const set = await client.get(MachineSet, { namespace: twin.namespace, name: 'ms' })
    const create = (kind: Kind, name: string, owned: Partial<KubeObject['metadata']>) =>
      client.create(kind, { metadata: { namespace: twin.namespace, name, ...owned }, spec: {} } as never)
    const ownerReferences = [ownerReference(set, MachineSet)]
    const selected = { 'cluster.x-k8s.io/cluster-name': clusterName, set: 'ms' }
    for (const kind of [stub.machine, stub.config]) {
      await create(kind, 'orphan', { labels: selected, ownerReferences })
      await create(kind, 'without-labels', { labels: { 'cluster.x-k8s.io/cluster-name': clusterName }, ownerReferences })
      await create(kind, 'without-owner', { labels: selected })
    }
  })
  await twin.touch(MachineSet, 'ms')
  await twin.settle('the orphaned objects are deleted', (objects) => !objects.some(({ metadata }) => metadata.name === 'orphan'))
}

/** The infrastructure template of an old MachineSet is deleted, and an infrastructure machine exists without its Machine. */
const orphanOfDeletedTemplate: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(stub.machineTemplate, named('next', { spec: { template: { spec: {} } } }))
  const { metadata, spec } = machineDeployment('md')
  await twin.create(MachineDeployment, { metadata, spec: { ...spec, rollout: { strategy: { type: 'OnDelete' } } } })
  await twin.settle('one Machine runs')
  const infrastructureRef = { apiGroup: stub.machineTemplate.group, kind: stub.machineTemplate.kind, name: 'next' }
  await twin.patch(MachineDeployment, 'md', { spec: { template: { spec: { infrastructureRef } } } })
  await twin.settle('there are two MachineSets', (objects) => objects.filter(({ kind }) => kind === 'MachineSet').length === 2)
  await twin.delete(stub.machineTemplate, 'worker')
  const isOld = ({ spec }: MachineSet) => spec.template.spec.infrastructureRef.name === 'worker'
  await twin.runOnBoth('create an infrastructure machine without a Machine', async (client) => {
    const { items } = await client.list(MachineSet, { namespace: twin.namespace })
    const old = items.find(isOld)!
    const labels = { 'cluster.x-k8s.io/cluster-name': clusterName, ...old.spec.selector.matchLabels }
    const ownerReferences = [ownerReference(old, MachineSet)]
    await client.create(stub.machine, {
      metadata: { namespace: twin.namespace, name: 'orphan', labels, ownerReferences },
      spec: {},
    } as never)
  })
  await twin.touch(MachineSet, (sets) => sets.find(isOld))
  await twin.settle('the orphaned object is deleted', (objects) => !objects.some(({ metadata }) => metadata.name === 'orphan'))
}

/** The control plane object is deleted while a MachineSet has no Machines. */
const controlPlaneGone: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 0 }))
  await twin.settle('the MachineSet has no Machines')
  await twin.delete(stub.controlPlane, clusterName)
  await twin.touch(Cluster, clusterName)
  await twin.settle('the control plane is deleted')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settleRetries('no Machine can be created', (objects) =>
    objects.some((object) => object.kind === 'MachineSet' && isTrue(object as MachineSet, 'ScalingUp')),
  )
}

/** The bootstrap template is of the kubeadm provider, which only supports the minor version of the control plane. */
const kubeadmVersionSkew: Case = async (twin) => {
  const { configTemplate } = kubeadmStub
  await twin.setReports({ controlPlane: () => controlPlane('v1.36.0') })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(configTemplate, named('worker', { spec: { template: { spec: {} } } }))
  await twin.settle('the Cluster is ready')
  const { metadata, spec } = machineSet('ms')
  const bootstrap = { configRef: { apiGroup: configTemplate.group, kind: configTemplate.kind, name: 'worker' } }
  const template = { ...spec.template, spec: { ...spec.template.spec, bootstrap } }
  await twin.create(MachineSet, { metadata, spec: { ...spec, template } })
  await twin.settle('the preflight check fails', (objects) => objects.some(mentions('KubeadmVersionSkew')))
  await twin.patch(MachineSet, 'ms', { spec: { template: { spec: { version: 'v1.36.1' } } } })
  await twin.settle('a Machine is created', (objects) => machinesIn(objects).length === 1)
}

const mentions =
  (text: string) =>
  (object: KubeObject): boolean =>
    object.kind === MachineSet.kind &&
    ((object as MachineSet).status?.conditions ?? []).some(({ message }) => message.includes(text))

const naming: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { machineNaming: { template: '{{ .cluster.name }}-x-{{ .random }}' } } as never))
  await twin.settle('the Machines are named by the template')
}

const disabled: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, ...rest } = machineSet('ms')
  await twin.create(MachineSet, {
    ...rest,
    metadata: { ...metadata, annotations: { 'cluster.x-k8s.io/disable-machine-create': 'true' } },
  })
  await twin.settle('no Machine is created')
}

/** An annotation on the bootstrap template skips a preflight check. */
const skippedByTemplate: Case = async (twin) => {
  await twin.setReports({ controlPlane: () => controlPlane('v1.35.0') })
  await createReadyCluster(twin)
  const spec = { template: { spec: {} } }
  await twin.create(stub.configTemplate, { metadata: { name: 'worker', ...skip('KubernetesVersionSkew') }, spec } as never)
  await twin.create(stub.machineTemplate, named('worker', { spec }))
  const { metadata, spec: setSpec } = machineSet('ms')
  const template = { ...setSpec.template, spec: { ...setSpec.template.spec, version: 'v1.36.0' } }
  await twin.create(MachineSet, { metadata, spec: { ...setSpec, template } })
  await twin.settle('the preflight check is skipped')
}

const versionless: Case = async (twin) => {
  await twin.setReports({ controlPlane: () => controlPlane('v1.35.0') })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet('ms')
  const { version: _version, ...rest } = spec.template.spec
  await twin.create(MachineSet, { metadata, spec: { ...spec, template: { ...spec.template, spec: rest } } })
  await twin.settle('a Machine without a version runs')
}

/** A MachineSet first fails a preflight check, and passes it after the control plane is upgraded. Upstream repeats the check after 15 s. */
const preflightPasses: Case = async (twin) => {
  await twin.setReports({ controlPlane: () => controlPlane('v1.35.0', { status: { version: 'v1.34.0' } }) })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('the control plane is upgrading')
  await twin.setReports({ controlPlane: () => controlPlane('v1.35.0') })
  await twin.settle('the control plane is upgraded', (objects) => objects.filter(({ kind }) => kind === 'Machine').length === 2)
}

/** The name of the MachineSet is too long for a label value and for names of Machines. */
const longName: Case = async (twin) => {
  const name = 'a-name-of-more-than-sixty-three-characters-that-no-labels-value-can-have'
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet(name)
  const labels = { set: 'long' }
  const template = { ...spec.template, metadata: { labels } }
  await twin.create(MachineSet, { metadata, spec: { ...spec, selector: { matchLabels: labels }, template } })
  await twin.settle('one Machine runs')
}

/** Users change fields that the MachineSet applies to its objects. */
const drift: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet('ms')
  const own = { labels: { set: 'ms', mine: 'a' }, annotations: { note: 'b' } }
  await twin.create(MachineSet, { metadata, spec: { ...spec, template: { ...spec.template, metadata: own } } })
  await twin.settle('one Machine runs')
  const changed = { metadata: { labels: { mine: 'changed', added: 'x' }, annotations: { note: null, added: 'y' } } }
  await twin.patch(Machine, ([first]) => first, {
    ...changed,
    spec: { readinessGates: [{ conditionType: 'Mine' }], minReadySeconds: 9 },
  })
  await twin.settle('the Machine is changed')
  await twin.patch(stub.machine, ([first]) => first, { ...changed, spec: { made: 'by hand' } })
  await twin.patch(stub.config, ([first]) => first, changed)
  await twin.touch(MachineSet, 'ms')
  await twin.settle('the provider objects are changed')
}

/** Changes template fields. Core propagates the readiness gates to the existing Machine, but not the version and the failure domain. */
const newTemplate: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  const spec = { version: 'v1.35.1', failureDomain: 'b', readinessGates: [{ conditionType: 'Extra' }] }
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 2, template: { spec } } })
  await twin.settle('the second Machine differs')
}

/** A MachineSet is deleted while its Cluster is paused. */
const clusterPaused: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 2 } })
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the deletion of the MachineSet is requested')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('the Cluster is resumed')
}

/** Machines without a Node are deleted first. */
const deletesUnready: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 2 } })
  await twin.settle('the second Machine does not start')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('the first Machine is kept')
}

const longNaming: Case = async (twin) => {
  const template = '{{ .machineSet.name }}-with-a-very-long-name-that-must-be-cut-after-some-char-acters-{{ .random }}'
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { machineNaming: { template } } as never))
  await twin.settle('the Machine is named by the template')
}

/** The MachineSet refers to provider objects instead of templates. */
const noTemplateKinds: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.create(stub.config, named('worker', { spec: {} }))
  await twin.create(stub.machine, named('worker', { spec: {} }))
  const { metadata, spec } = machineSet('ms')
  const { bootstrap, infrastructureRef, ...rest } = spec.template.spec
  const references = {
    bootstrap: { configRef: { ...bootstrap.configRef!, kind: 'StubConfig' } },
    infrastructureRef: { ...infrastructureRef, kind: 'StubMachine' },
  }
  await twin.create(MachineSet, { metadata, spec: { ...spec, template: { ...spec.template, spec: { ...rest, ...references } } } })
  await twin.settle('the references do not name templates')
}

const userData: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet('ms')
  const template = { ...spec.template, spec: { ...spec.template.spec, bootstrap: { dataSecretName: 'mine' } } }
  await twin.create(MachineSet, { metadata, spec: { ...spec, template } })
  await twin.settle('the user supplies the bootstrap data Secret')
}

/** The label of a MachineSet names a MachineDeployment that does not exist. */
const noDeployment: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet('ms')
  const labels = { ...metadata.labels, 'cluster.x-k8s.io/deployment-name': 'md' }
  await twin.create(MachineSet, { metadata: { ...metadata, labels }, spec })
  await twin.settle('no Machine is created')
  await twin.patch(MachineSet, 'ms', { metadata: { labels: { 'cluster.x-k8s.io/deployment-name': null } } })
  await twin.settle('a Machine is created', (objects) => machinesIn(objects).length === 1)
}

/** The MachineSet is deleted while its label names a MachineDeployment that does not exist. Upstream does not complete the deletion. */
const noDeploymentDeleted: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('a Machine is created', (objects) => machinesIn(objects).length === 1)
  await twin.patch(MachineSet, 'ms', { metadata: { labels: { 'cluster.x-k8s.io/deployment-name': 'md' } } })
  await twin.settle('the MachineDeployment does not exist')
  await twin.delete(MachineSet, 'ms')
  await twin.settle('Capstan deletes the MachineSet, upstream does not', (objects, side) => {
    const sets = objects.filter(({ kind }) => kind === MachineSet.kind)
    return side === 'theirs'
      ? sets.some(isDeleting) && machinesIn(objects).length === 1
      : sets.length === 0 && machinesIn(objects).length === 0
  })
}

/** The infrastructure of a Machine is being deleted, and then does not exist, while the template changes. */
const infrastructureGone: Case = async (twin) => {
  const label = (value: string) => ({ spec: { template: { metadata: { labels: { extra: value } } } } })
  const has = (kind: string, value: string) => (objects: readonly KubeObject[]) =>
    objects.some((object) => object.kind === kind && object.metadata.labels?.['extra'] === value)
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.patch(stub.machine, byName(0), blockDeletion)
  await twin.delete(stub.machine, byName(0))
  await twin.settle('the infrastructure is being deleted')
  await twin.patch(MachineSet, 'ms', label('a'))
  await twin.settle('the bootstrap config has the new label', has('StubConfig', 'a'))
  await twin.patch(stub.machine, byName(0), allowDeletion)
  await twin.settle('the infrastructure is gone', (objects) => !objects.some(({ kind }) => kind === 'StubMachine'))
  await twin.patch(MachineSet, 'ms', label('b'))
  await twin.settle('the Machine has the new label', has('Machine', 'b'))
}

/** The MachineSet refers to a kind that does not exist. */
const unknownKind =
  (role: 'infrastructure' | 'bootstrap'): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    const { metadata, spec } = machineSet('ms')
    const { infrastructureRef, bootstrap, ...rest } = spec.template.spec
    const references =
      role === 'infrastructure'
        ? { infrastructureRef: { ...infrastructureRef, kind: 'StubUnknownTemplate' }, bootstrap }
        : { infrastructureRef, bootstrap: { configRef: { ...bootstrap.configRef!, kind: 'StubUnknownTemplate' } } }
    await twin.create(MachineSet, {
      metadata,
      spec: { ...spec, template: { ...spec.template, spec: { ...rest, ...references } } },
    })
    await twin.settle('no Machine is created', (objects) =>
      objects.some((object) => object.kind === MachineSet.kind && isTrue(object as MachineSet, 'ScalingUp')),
    )
    await twin.delete(MachineSet, 'ms')
    await twin.settle('the deletion is requested')
  }

export const machineSetCases: Cases = {
  'machineset-preflight-newer': preflight('v1.36.0', controlPlane('v1.35.0')),
  'machineset-preflight-older': preflight('v1.31.0', controlPlane('v1.35.0')),
  'machineset-preflight-skipped': preflight('v1.36.0', controlPlane('v1.35.0'), skip('KubernetesVersionSkew')),
  'machineset-preflight-all-skipped': preflight(
    'v1.36.0',
    controlPlane('v1.35.0', { status: { version: 'v1.34.0' } }),
    skip('All'),
  ),
  'machineset-preflight-skip-nothing': preflight('v1.36.0', controlPlane('v1.35.0'), skip('')),
  'machineset-preflight-upgrading': preflight('v1.35.0', controlPlane('v1.35.0', { status: { version: 'v1.34.0' } })),
  'machineset-preflight-provisioning': preflight('v1.35.0', controlPlane('v1.35.0', { status: { version: null } })),
  'machineset-preflight-no-version': preflight('v1.35.0', { status: { initialization: { controlPlaneInitialized: true } } }),
  'machineset-adoption': adoption,
  'machineset-adoption-of-data-secret': adoptionOfDataSecret,
  'machineset-adoption-fails': adoptionFails,
  'machineset-machine-controller-removed': controllerRemoved,
  'machineset-machine-owner-removed': ownerRemoved,
  'machineset-machine-denied': creationFails('cluster.x-k8s.io', 'machines'),
  'machineset-infrastructure-denied': creationFails(stub.group, 'stubmachines'),
  'machineset-bootstrap-denied': creationFails(stub.group, 'stubconfigs'),
  'machineset-selector-in-one': withSelector({ key: 'set', operator: 'In', values: ['ms'] }),
  'machineset-selector-in-two': withSelector({ key: 'set', operator: 'In', values: ['ms', 'other'] }),
  'machineset-selector-exists': withSelector({ key: 'set', operator: 'Exists' }),
  'machineset-selector-deleted': selectorDeleted,
  'machineset-template-owner-denied': templateOwnerDenied,
  'machineset-remediation-without-template': remediationWithoutTemplate,
  'machineset-preflight-version-nonsense': preflight('v1.35.0', controlPlane('latest')),
  'machineset-unknown-infrastructure': unknownKind('infrastructure'),
  'machineset-unknown-bootstrap': unknownKind('bootstrap'),
  'machineset-no-deployment': noDeployment,
  'machineset-no-deployment-deleted': noDeploymentDeleted,
  'machineset-infrastructure-gone': infrastructureGone,
  'machineset-no-templates': noTemplates,
  'machineset-in-place': inPlace,
  'machineset-paused': paused,
  'machineset-deletes-marked': deletesMarked,
  'machineset-deletes-newest': deletesByAge('Newest'),
  'machineset-deletes-oldest': deletesByAge('Oldest'),
  'machineset-deletes-by-priority': deletesByPriority,
  'machineset-deleting-machine-changed': deletingMachineChanged,
  'machineset-deletion-denied': deletionDenied,
  'machineset-orphaned-objects': orphanedObjects,
  'machineset-orphan-of-deleted-template': orphanOfDeletedTemplate,
  'machineset-control-plane-gone': controlPlaneGone,
  'machineset-preflight-kubeadm': kubeadmVersionSkew,
  'machineset-naming': naming,
  'machineset-creation-disabled': disabled,
  'machineset-scale': scale,
  'machineset-preflight-skipped-by-template': skippedByTemplate,
  'machineset-preflight-skip-unknown': preflight('v1.36.0', controlPlane('v1.35.0'), skip('Nothing,KubernetesVersionSkew')),
  'machineset-preflight-skip-spaces': preflight(
    'v1.36.0',
    controlPlane('v1.35.0'),
    skip(' ControlPlaneIsStable , KubernetesVersionSkew'),
  ),
  'machineset-preflight-passes': preflightPasses,
  'machineset-no-version': versionless,
  'machineset-long-name': longName,
  'machineset-long-naming': longNaming,
  'machineset-drift': drift,
  'machineset-new-template': newTemplate,
  'machineset-cluster-paused': clusterPaused,
  'machineset-deletes-unready': deletesUnready,
  'machineset-no-template-kinds': noTemplateKinds,
  'machineset-data-secret': userData,
}
