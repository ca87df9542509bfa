/**
 * Cases of owner references: adoption, release, and objects of other controllers.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import {
  type Client,
  ConfigMap,
  controllerOf,
  controllerReference,
  type Input,
  isDeleting,
  keyOf,
  type KubeObject,
  ownerReference,
} from '@capstan/kube'
import { cluster, clusterName, machine, machineDeployment, machineSet, named } from '../objects.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster, createReadyMachine, isGone } from './machine.ts'
import { byName, createOrphan, createWorkerTemplates, machinesIn } from './machine-set.ts'
import { createTopology } from './topology.ts'

/**
 * Creates an owner that no core reconciles. It must exist, because the garbage collector deletes objects whose owners do not
 * exist.
 */
export const createOwner = (client: Client, { namespace }: Twin): Promise<ConfigMap> =>
  client.create(ConfigMap, { metadata: { namespace, name: 'x' } })

const withMetadata = <T extends KubeObject>(object: Input<T>, metadata: object): Input<T> =>
  ({ ...object, metadata: { ...object.metadata, ...metadata } }) as Input<T>

/** A MachineSet that a user created matches the selector of a MachineDeployment. */
const deploymentAdopts: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const template = machineDeployment('md').spec.template
  const labels = { 'cluster.x-k8s.io/cluster-name': clusterName, deployment: 'md' }
  const lone = machineSet('lone', { selector: { matchLabels: { deployment: 'md' } }, template } as never)
  await twin.create(MachineSet, withMetadata(lone, { labels }))
  await twin.settle('the MachineSet has no owner')
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineSet is adopted')
  await twin.patch(MachineSet, 'lone', { metadata: { labels: { deployment: null } } })
  await twin.settle('the MachineSet no longer matches')
}

/** Two Machines match the selector of a MachineSet. The MachineSet adopts only the Machine that has no other controller. */
const controlledMachine: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await createOrphan(twin, 'lone', { set: 'ms' })
  await createOrphan(twin, 'controlled', { set: 'none' })
  await twin.settle('both Machines run')
  await twin.runOnBoth('set another controller', async (client) => {
    const other = await createOwner(client, twin)
    const body = { metadata: { labels: { set: 'ms' }, ownerReferences: [controllerReference(other, ConfigMap)] } }
    await client.patch(Machine, { namespace: twin.namespace, name: 'controlled' }, { type: 'merge', body })
  })
  await twin.settle('a Machine has another controller', isControlled('controlled', 'ConfigMap'))
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('one Machine is adopted, and another is created')
}

/** A Machine that is being deleted is not adopted. */
const deletedMachine: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await createOrphan(
    twin,
    'deleting',
    { set: 'ms' },
    { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/wait': '' } },
  )
  await twin.settle('the Machine runs')
  await twin.delete(Machine, 'deleting')
  await twin.settle('the deletion of the Machine is blocked')
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the Machine is not adopted')
}

/** Machines of another Cluster are not adopted, even if their labels match the selector. */
const otherCluster: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const foreign = machine('foreign', { clusterName: 'other' })
  await twin.create(Machine, withMetadata(foreign, { labels: { set: 'ms', 'cluster.x-k8s.io/cluster-name': 'other' } }))
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the Machine is not adopted')
}

const hold = { metadata: { finalizers: ['twin.capstan.dev/hold'] } }

/** Returns a function that reports whether an object with this name has a controller of this kind. */
const isControlled = (name: string, kind: string) => (objects: readonly KubeObject[]) =>
  objects.some(({ metadata }) => metadata.name === name && controllerOf({ metadata })?.kind === kind)

/** A MachineSet that is being deleted adopts a Machine, and deletes the Machine. */
const deletedSetAdopts: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('one Machine runs')
  await twin.patch(stub.machine, byName(0), hold)
  await createOrphan(
    twin,
    'lone',
    { set: 'none' },
    { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/wait': '' } },
  )
  await twin.delete(MachineSet, 'ms')
  await twin.settle('the deletion of the MachineSet is blocked', (objects) => machinesIn(objects).some(isDeleting))
  await twin.patch(Machine, 'lone', { metadata: { labels: { set: 'ms' } } })
  await twin.settle(
    'the Machine is adopted and being deleted',
    (objects) => isControlled('lone', 'MachineSet')(objects) && machinesIn(objects).every(isDeleting),
  )
}

/** A MachineDeployment that is being deleted adopts a MachineSet, and deletes the MachineSet. */
const deletedDeploymentAdopts: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('one Machine runs')
  await twin.patch(stub.machine, byName(0), hold)
  await twin.create(MachineSet, withMetadata(machineSet('lone', { replicas: 0 }), hold.metadata))
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the deletion of the MachineDeployment is blocked', (objects) => machinesIn(objects).some(isDeleting))
  await twin.patch(MachineSet, 'lone', { metadata: { labels: { deployment: 'md' } } })
  await twin.settle('the MachineSet is adopted', isControlled('lone', 'MachineDeployment'))
}

/** The MachineSet is already an owner of the Machine, but not its controller. */
const plainOwner: Case = async (twin) => {
  const pause = (value: '' | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await createOrphan(twin, 'lone', { set: 'none' })
  await twin.create(MachineSet, machineSet('ms', { replicas: 0 }))
  await twin.settle('the Machine does not match')
  await twin.patch(MachineSet, 'ms', { ...pause(''), spec: { replicas: 1 } })
  await twin.settle('the MachineSet is paused')
  await twin.runOnBoth('make the MachineSet an owner of the Machine', async (client) => {
    const set = await client.get(MachineSet, { namespace: twin.namespace, name: 'ms' })
    const body = { metadata: { ownerReferences: [ownerReference(set, MachineSet)], labels: { set: 'ms' } } }
    await client.patch(Machine, { namespace: twin.namespace, name: 'lone' }, { type: 'merge', body })
  })
  await twin.patch(MachineSet, 'ms', pause(null))
  await twin.settle('the Machine is adopted', isControlled('lone', 'MachineSet'))
}

/** A Machine refers to two objects, one of which has another controller. */
const controlledReference =
  (role: 'machine' | 'config'): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await twin.create(stub[role === 'machine' ? 'config' : 'machine'], named('m', { spec: {} }))
    await twin.runOnBoth('create the object with another controller', async (client, side) => {
      const ownerReferences = [controllerReference(await createOwner(client, twin), ConfigMap)]
      const metadata = { namespace: twin.namespace, name: 'm', ownerReferences }
      await side.reportFor(stub[role], await client.create(stub[role], { metadata, spec: {} } as never))
    })
    await twin.create(Machine, machine('m'))
    await twin.settle('the Machine does not adopt the object with another controller', isControlled('m', 'ConfigMap'))
  }

/** Core restores owner references that a user removes. */
const removedOwners: Case = async (twin) => {
  await createReadyMachine(twin)
  for (const kind of [stub.config, stub.machine] as const) {
    await twin.patch(kind, 'm', { metadata: { ownerReferences: null, labels: null } })
    await twin.settle(`the owner of ${kind.kind} is restored`)
  }
  await twin.patch(Machine, 'm', { metadata: { ownerReferences: null } })
  await twin.settle('the owner of the Machine is restored')
}

/** The Cluster becomes an owner of the templates that a MachineSet refers to. */
const templateOwners: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 0 }))
  await twin.settle('templates have an owner')
  await twin.patch(stub.machineTemplate, 'worker', { metadata: { ownerReferences: null } })
  await twin.touch(MachineSet, 'ms')
  await twin.settle('the owner is restored')
}

const healthCheckOwner: Case = async (twin) => {
  await createReadyCluster(twin)
  const spec = { clusterName, selector: { matchLabels: { set: 'ms' } }, checks: { nodeStartupTimeoutSeconds: 300 } }
  await twin.create(MachineHealthCheck, { metadata: { name: 'mhc' }, spec } as never)
  await twin.settle('the health check has an owner')
  await twin.patch(MachineHealthCheck, 'mhc', { metadata: { ownerReferences: null, labels: null } })
  await twin.settle('the owner is restored')
}

/** A Machine begins to match the selector of a MachineSet that already has enough Machines. */
const matchesLater: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 0 }))
  await createOrphan(twin, 'lone', { set: 'none' })
  await twin.settle('the Machine does not match')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('a Machine is created')
  await twin.patch(Machine, 'lone', {
    metadata: { labels: { set: 'ms' }, annotations: { 'cluster.x-k8s.io/delete-machine': '' } },
  })
  await twin.settle('the MachineSet adopts the Machine and deletes it')
}

/** Core updates an owner reference with an older API version to the current version. */
const oldReference: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.runOnBoth('set the API version of the owner reference to an older version', async (client) => {
    const config = await client.get(stub.config, { namespace: twin.namespace, name: 'm' })
    const ownerReferences = config.metadata.ownerReferences!.map((reference) => ({
      ...reference,
      apiVersion: 'cluster.x-k8s.io/v1beta1',
    }))
    await client.patch(stub.config, keyOf(config), { type: 'merge', body: { metadata: { ownerReferences } } })
  })
  await twin.settle('the API version of the owner reference is updated')
}

/**
 * Two Machines refer to the same object. After the first Machine and the object are deleted, the second Machine adopts a new object of
 * the same name.
 */
const sharedByMachines =
  (role: 'machine' | 'config'): Case =>
  async (twin) => {
    await createReadyMachine(twin)
    const shared = machine('m').spec
    const { spec } = machine('n')
    await twin.create(stub[role === 'machine' ? 'config' : 'machine'], named('n', { spec: {} }))
    await twin.create(
      Machine,
      machine(
        'n',
        role === 'machine' ? { ...spec, infrastructureRef: shared.infrastructureRef } : { ...spec, bootstrap: shared.bootstrap },
      ),
    )
    await twin.settle('the second Machine does not adopt the object of the first Machine', isControlled('n', 'Machine'))
    await twin.delete(Machine, 'm')
    await twin.settle('the object is deleted with the first Machine', (objects) =>
      objects.every(({ kind, metadata }) => kind !== 'Machine' || metadata.name !== 'm'),
    )
    await twin.create(stub[role], named('m', { spec: {} }))
    await twin.settle('the second Machine adopts the new object', isControlled('m', 'Machine'))
  }

/**
 * Two Clusters refer to the same infrastructure object. While both exist, at least one of them is paused, because each core would
 * otherwise set the label `cluster.x-k8s.io/cluster-name` of the object to the names of the two Clusters in turn, without end.
 */
const sharedByClusters: Case = async (twin) => {
  const { spec } = cluster()
  const createCluster = async (name: string) => {
    await twin.create(stub.controlPlane, named(name, { spec: {} }))
    await twin.create(Cluster, { metadata: { name }, spec: { ...spec, controlPlaneRef: { ...spec.controlPlaneRef!, name } } })
  }
  const pause = (name: string, paused: true | null) => twin.patch(Cluster, name, { spec: { paused } })
  const isOwnedBy =
    (...names: string[]) =>
    (objects: readonly KubeObject[]) =>
      objects.some(({ kind, metadata }) => kind === 'StubCluster' && names.every((name) => hasOwner(metadata, name)))
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await createCluster('first')
  await twin.settle('the first Cluster owns the object', isOwnedBy('first'))
  await pause('first', true)
  await twin.settle('the first Cluster is paused')
  await createCluster('second')
  await twin.settle('the second Cluster owns the object, too', isOwnedBy('first', 'second'))
  await pause('second', true)
  await twin.settle('both Clusters are paused')
  await pause('first', null)
  await twin.settle('the first Cluster sets its label again')
  await twin.delete(Cluster, 'first')
  await twin.settle('the object is deleted with the first Cluster', isGone('StubCluster'))
  await pause('second', null)
  await twin.settle('the second Cluster has lost its infrastructure')
}

const hasOwner = ({ ownerReferences = [] }: KubeObject['metadata'], name: string): boolean =>
  ownerReferences.some((reference) => reference.name === name)

/** Another Cluster becomes the controller of the infrastructure object of a Cluster with a class. */
const controlledByCluster: Case = async (twin) => {
  await createTopology(twin, {}, { workers: [] })
  await twin.create(Cluster, { metadata: { name: 'other' }, spec: { paused: true, clusterNetwork: { serviceDomain: 'x' } } })
  await twin.settle('the other Cluster is paused')
  await twin.runOnBoth('make the other Cluster the controller', async (client) => {
    const other = await client.get(Cluster, { namespace: twin.namespace, name: 'other' })
    const { items } = await client.list(stub.cluster, { namespace: twin.namespace })
    const body = { metadata: { ownerReferences: [controllerReference(other, Cluster)] } }
    await client.patch(stub.cluster, keyOf(items[0]!), { type: 'merge', body })
  })
  await twin.settle('the infrastructure of the Cluster has another controller')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

export const ownerCases: Cases = {
  'owners-machinedeployment-adopts': deploymentAdopts,
  'owners-machineset-controlled-machine': controlledMachine,
  'owners-machineset-deleted-machine': deletedMachine,
  'owners-machineset-other-cluster': otherCluster,
  'owners-machineset-being-deleted': deletedSetAdopts,
  'owners-machinedeployment-being-deleted': deletedDeploymentAdopts,
  'owners-machineset-plain-owner': plainOwner,
  'owners-machineset-one-too-many': matchesLater,
  'owners-infrastructure-controlled': controlledReference('machine'),
  'owners-bootstrap-controlled': controlledReference('config'),
  'owners-infrastructure-shared-by-machines': sharedByMachines('machine'),
  'owners-bootstrap-shared-by-machines': sharedByMachines('config'),
  'owners-infrastructure-shared-by-clusters': sharedByClusters,
  'owners-infrastructure-of-another-cluster': controlledByCluster,
  'owners-machine-removed': removedOwners,
  'owners-machine-old-version': oldReference,
  'owners-templates': templateOwners,
  'owners-healthcheck': healthCheckOwner,
}
