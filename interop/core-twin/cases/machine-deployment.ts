/**
 * Cases of MachineDeployments.
 * Every case does the same with upstream's core and with Capstan's, and compares the objects on both sides after each step (`settle`).
 */
import { Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { getCondition, isDeleting, isTrue, keyOf, type KubeObject, Node, sleep, systemClock, timestamp } from '@capstan/kube'
import { clusterName, machineDeployment, machineSet } from '../objects.ts'
import { everythingReady, noReport } from '../providers.ts'
import { type Behaviour, nodeInfoOf, reportNodeStatus } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import { reportNodeReady } from './health-check.ts'
import { byName, createOrphan, createWorkerTemplates, deny, hasLabel, labels, machinesIn } from './machine-set.ts'

const rollout: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2 }))
  await twin.settle('two Machines run')
  await twin.patch(MachineDeployment, 'md', { spec: { template: { spec: { version: 'v1.35.1' } } } })
  await twin.settle('the rollout is complete')
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment is deleted')
}

type Steps = readonly (readonly [name: string, body: object])[]

/** Creates a MachineDeployment and changes its spec, with one patch per step. */
const changes =
  (spec: object, ...steps: Steps): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await twin.create(MachineDeployment, machineDeployment('md', spec as never))
    await twin.settle('the MachineDeployment is created')
    for (const [name, body] of steps) {
      await twin.patch(MachineDeployment, 'md', { spec: body })
      await twin.settle(name)
    }
  }

export const version = (text: string) => ({ template: { spec: { version: text } } })
export const strategy = (type: string, rollingUpdate?: object) => ({
  rollout: { strategy: { type, ...(rollingUpdate ? { rollingUpdate } : {}) } },
})

const taints = [
  { key: 'always', effect: 'NoSchedule', propagation: 'Always' },
  { key: 'first', value: 'x', effect: 'NoExecute', propagation: 'OnInitialization' },
]

const noTemplates: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the templates do not exist')
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment is deleted')
}

/** A rollout does not end, because the new Machines are never provisioned. */
const stuck: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 3 }))
  await twin.settle('the MachineDeployment is created')
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the new Machine is not provisioned')
  await twin.patch(MachineDeployment, 'md', { spec: { paused: true, replicas: 6 } })
  await twin.settle('paused and scaled up during the rollout')
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2 } })
  await twin.settle('scaled down during the rollout')
  await twin.patch(MachineDeployment, 'md', { spec: { paused: false } })
  await twin.settle('the rollout is resumed')
}

/**
 * Limits the number of infrastructure machines that are provisioned in a case, including those deleted later, so that both cores take the
 * same steps.
 */
export class ProvisioningLimit {
  #limit = 0
  /** UIDs of the provisioned machines, by UID of the Cluster: the Clusters of the two cores have different UIDs. */
  readonly #provisioned = new Map<string, Set<string>>()

  readonly behaviour: Behaviour = (object, objects) => {
    const clusterUID = objects.find(({ kind }) => kind === 'Cluster')?.metadata.uid ?? ''
    const provisioned = this.#provisioned.get(clusterUID) ?? new Set()
    this.#provisioned.set(clusterUID, provisioned)
    const { uid } = object.metadata
    if (provisioned.size < this.#limit) provisioned.add(uid)
    return provisioned.has(uid) ? everythingReady.machine(object, objects) : undefined
  }

  async set(twin: Twin, count: number): Promise<void> {
    this.#limit = count
    await twin.setReports({ machine: this.behaviour })
  }
}

/** Rolls out while Machines become available one at a time. */
const inSteps =
  (replicas: number, rollingUpdate: object): Case =>
  async (twin) => {
    const limit = new ProvisioningLimit()
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await limit.set(twin, replicas)
    await twin.create(
      MachineDeployment,
      machineDeployment('md', { replicas, ...strategy('RollingUpdate', rollingUpdate) } as never),
    )
    await twin.settle('the MachineDeployment is created')
    await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
    await twin.settle('no new Machine is available')
    for (let available = 1; available <= replicas; available++) {
      await limit.set(twin, replicas + available)
      await twin.settle(`${available} new Machines are available`)
    }
  }

/**
 * During a rollout, the new Machine is available, and one of the old Machines is not. `maxSurge` and `maxUnavailable` allow neither
 * creating nor deleting a Machine. Core deletes the unavailable Machine nevertheless, to end the deadlock.
 */
const deadlock: Case = async (twin) => {
  const limit = new ProvisioningLimit()
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await limit.set(twin, 3)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 3 }))
  await twin.settle('three Machines run', (objects) => machinesIn(objects).length === 3)
  // Not the Machine with the first name: of Machines with the same priority, core deletes that one first.
  await twin.patch(Machine, byName(2), labels('unhealthy'))
  await twin.inWorkload(clusterName, async (client, side) => {
    const { name } = byName(2)(side.objects(twin.namespace, Machine))!.status!.nodeRef!
    await reportNodeReady(client, name, 'False')
  })
  await twin.settle('one Machine is unhealthy', (objects) => availableReplicas(objects) === 2)
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the new Machine is not available', (objects) => machinesIn(objects).length === 4)
  await limit.set(twin, 4)
  await twin.settle(
    'the unhealthy Machine is deleted, and a second new Machine is created',
    (objects) => machinesIn(objects).length === 4 && !machinesIn(objects).some(hasLabel('unhealthy')),
  )
  for (const count of [5, 6]) {
    await limit.set(twin, count)
    await twin.settle(`${count - 3} new Machines are available`)
  }
  await twin.settle('the rollout is complete', isRolledOut(3))
}

const deploymentIn = (objects: readonly KubeObject[]) =>
  objects.find((object): object is MachineDeployment => object.kind === MachineDeployment.kind)
const availableReplicas = (objects: readonly KubeObject[]) => deploymentIn(objects)?.status?.availableReplicas
/** Whether the MachineDeployment has `replicas` Machines, all available and up to date, and there is only one MachineSet. */
export const isRolledOut = (replicas: number) => (objects: readonly KubeObject[]) => {
  const { status } = deploymentIn(objects) ?? {}
  return (
    status?.replicas === replicas &&
    status.availableReplicas === replicas &&
    status.upToDateReplicas === replicas &&
    objects.filter(({ kind }) => kind === MachineSet.kind).length === 1
  )
}

/** An orphaned MachineSet, which the selector matches, cannot be adopted. */
const adoptionFails: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineSet('lone')
  await twin.create(MachineSet, { metadata: { ...metadata, labels: { ...metadata.labels, deployment: 'md' } }, spec })
  await twin.settle('the MachineSet runs one Machine', (objects) => machinesIn(objects).length === 1)
  const accepted =
    "object.metadata.name != 'lone' || object.metadata.ownerReferences.all(owner, owner.kind != 'MachineDeployment')"
  await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machinesets', operation: 'UPDATE', accepted })
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineSet is not adopted', (objects) => objects.some(isEvent('FailedAdopt')))
}

export const isEvent = (reason: string) => (object: KubeObject) =>
  object.kind === 'Event' && (object as { reason?: string }).reason === reason

/** A policy denies the deletion of MachineSets, after a rollout and when the MachineDeployment is deleted. */
const deletionDenied: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machinesets', operation: 'DELETE' })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the old MachineSet cannot be deleted', (objects) => objects.some(isEvent('FailedDelete')))
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment cannot be deleted')
}

const withFinalizers = (finalizers: readonly string[] | null) => ({ metadata: { finalizers } })

/** All old Machines are deleted at once. Their infrastructure is removed one by one, so that both cores observe the same counts. */
const allAtOnce: Case = async (twin) => {
  const replicas = 3
  const limit = new ProvisioningLimit()
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await limit.set(twin, replicas)
  const rollingUpdate = { maxSurge: 0, maxUnavailable: '100%' }
  await twin.create(
    MachineDeployment,
    machineDeployment('md', { replicas, ...strategy('RollingUpdate', rollingUpdate) } as never),
  )
  await twin.settle('the MachineDeployment is created')
  await twin.runOnBoth('block the deletion of every old Machine', async (client) => {
    const { items } = await client.list(stub.machine, { namespace: twin.namespace })
    const body = withFinalizers(['twin.capstan.dev/hold'])
    for (const machine of items) await client.patch(stub.machine, keyOf(machine), { type: 'merge', body })
  })
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the old Machines are being deleted')
  for (let deleted = 1; deleted <= replicas; deleted++) {
    await twin.patch(stub.machine, (machines) => machines.find(isDeleting), withFinalizers(null))
    await twin.settle(`${deleted} old Machines are deleted`)
  }
  await limit.set(twin, 2 * replicas)
  await twin.settle('the new Machines are available')
}

const machineSetDenied =
  (operation: 'CREATE' | 'UPDATE'): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    if (operation === 'UPDATE') {
      await twin.create(MachineDeployment, machineDeployment('md'))
      await twin.settle('the MachineDeployment is created')
    }
    await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machinesets', operation })
    if (operation === 'UPDATE') await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2 } })
    else await twin.create(MachineDeployment, machineDeployment('md'))
    await twin.settle('the write of the MachineSet is denied')
  }

/** The infrastructure of a Machine blocks the deletion of the MachineDeployment. */
const deletionBlocked: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2 }))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(stub.machine, ([first]) => first, withFinalizers(['twin.capstan.dev/hold']))
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('one Machine is left')
  await twin.patch(stub.machine, ([first]) => first, withFinalizers(null))
  await twin.settle('the MachineDeployment is deleted')
}

const annotated = (annotations: { [key: string]: string | null }) => ({ metadata: { annotations } })

/** Changes annotations, a label and the replicas of a MachineDeployment. Core copies some of the annotations to its MachineSets. */
const metadata: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', {
    metadata: {
      labels: { tier: 'one' },
      annotations: {
        note: 'a',
        'machineset.cluster.x-k8s.io/skip-preflight-checks': 'All',
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
        'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '1',
        'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': '3',
      },
    },
  })
  await twin.settle('annotations and labels are added')
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: null } })
  await twin.settle('replicas are not set')
  await twin.patch(MachineDeployment, 'md', {
    ...annotated({ 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '2' }),
    spec: { replicas: null },
  })
  await twin.settle('the autoscaler has a higher minimum')
  await twin.patch(MachineDeployment, 'md', annotated({ note: null, 'machineset.cluster.x-k8s.io/skip-preflight-checks': null }))
  await twin.settle('annotations are removed')
}

/** A user changes the MachineSet of a MachineDeployment. */
const machineSetChanged: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  // Core deletes the additional Machines at once. If they registered Nodes, it would depend on timing whether core labels these Nodes.
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineSet, ([first]) => first, {
    metadata: { labels: { extra: 'a' }, annotations: { extra: 'b', 'machinedeployment.clusters.x-k8s.io/revision': '7' } },
    spec: { replicas: 3, template: { metadata: { labels: { extra: 'c' } } }, deletion: { order: 'Newest' } },
  })
  await twin.settle('the MachineSet is changed')
  await twin.setReports({ machine: everythingReady.machine })
  await twin.patch(MachineSet, ([first]) => first, { spec: { template: { spec: { version: 'v1.34.0' } } } })
  await twin.settle('the MachineSet gets another version')
}

/** The revision of the current MachineSet, and later of the old one, is not a number. */
const revisionNonsense: Case = async (twin) => {
  const revision = (text: string) => ({ metadata: { annotations: { 'machinedeployment.clusters.x-k8s.io/revision': text } } })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 1, ...strategy('OnDelete') } as never))
  await twin.settle('a Machine runs', someMachineIs('UpToDate', ''))
  await twin.patch(MachineSet, ([first]) => first, revision('x'))
  await twin.settle('the current revision is not a number')
  await twin.patch(MachineSet, ([first]) => first, revision('3'))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is outdated', someMachineIs('NotUpToDate', 'Version'))
  await twin.patch(MachineSet, (sets) => sets.find(({ spec }) => spec.replicas === 1), revision('y'))
  await twin.settle('the old revision is not a number')
}

const machineSetDeleted: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.delete(MachineSet, ([first]) => first)
  await twin.settle('the MachineSet is deleted')
}

const pausedByAnnotation: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', { ...annotated({ 'cluster.x-k8s.io/paused': '' }), spec: { replicas: 2 } })
  await twin.settle('the MachineDeployment is paused')
  await twin.patch(MachineDeployment, 'md', annotated({ 'cluster.x-k8s.io/paused': null }))
  await twin.settle('the MachineDeployment is resumed')
}

/** The labels of the template and the selector change. */
const selectorChanged: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', {
    spec: {
      selector: { matchLabels: { deployment: 'md', more: 'x' } },
      template: { metadata: { labels: { more: 'x' } } },
    },
  })
  await twin.settle('the selector changes')
}

const templateDeleted: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.delete(stub.machineTemplate, 'worker')
  await twin.touch(MachineDeployment, 'md')
  await twin.settle('the template is deleted')
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2 } })
  await twin.settle('scaled up')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the version changes')
}

/** Returns a predicate for `settle`: whether the condition UpToDate of any Machine has this reason, and a message that contains `message`. */
const someMachineIs = (reason: string, message: string) => (objects: readonly KubeObject[]) =>
  objects.some((object) => {
    const condition = object.kind === 'Machine' ? getCondition(object as Machine, 'UpToDate') : undefined
    return condition?.reason === reason && condition.message?.includes(message)
  })

/** The kubelet of a Machine has another version than the Machine. */
const otherKubelet: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 1 }))
  await twin.settle('a Machine runs', someMachineIs('UpToDate', ''))
  const report = (kubeletVersion: string) =>
    twin.inWorkload(clusterName, async (client) => {
      const [node] = (await client.list(Node)).items
      await reportNodeStatus(client, node!.metadata.name, { nodeInfo: nodeInfoOf(kubeletVersion) })
    })
  await report('v1.34.0')
  await twin.settle('the kubelet is older', someMachineIs('Updating', 'kubeletVersion v1.34.0, v1.35.0 required'))
  await report('v1.35.0+build')
  await twin.settle('the kubelet has build metadata', someMachineIs('Updating', 'kubeletVersion v1.35.0+build, v1.35.0 required'))
  await report('v1.35.0')
  await twin.settle('the kubelet has the version of the Machine', someMachineIs('UpToDate', ''))
}

/** Another client adds a taint to the Node of an outdated Machine, and removes the revision annotation of the old MachineSet. */
const outdatedNode: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 1, ...strategy('OnDelete') } as never))
  await twin.settle('a Machine runs', someMachineIs('UpToDate', ''))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the Machine is outdated', someMachineIs('NotUpToDate', 'Version'))
  await twin.inWorkload(clusterName, async (client) => {
    const [node] = (await client.list(Node)).items
    const body = { spec: { taints: [...node!.spec!.taints!, { key: 'theirs', effect: 'NoSchedule' }] } }
    await client.patch(Node, keyOf(node!), { type: 'merge', body }, { fieldManager: 'kubelet' })
  })
  await twin.touch(Machine, byName(0))
  await twin.settle('the Node has another taint')
  const withoutRevision = { metadata: { annotations: { 'machinedeployment.clusters.x-k8s.io/revision': null } } }
  await twin.patch(MachineSet, (sets) => sets.find(({ spec }) => spec.replicas === 1), withoutRevision)
  await twin.settle('the old MachineSet has no revision')
  await twin.touch(Machine, byName(0))
  await twin.settle('the Node is still outdated')
}

const noVersion: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const { metadata, spec } = machineDeployment('md', { replicas: 1 })
  const { version: _version, ...machineSpec } = spec.template.spec
  await twin.create(MachineDeployment, { metadata, spec: { ...spec, template: { ...spec.template, spec: machineSpec } } })
  await twin.settle('a Machine runs', someMachineIs('Updating', 'kubeletVersion v1.35.0,  required'))
}

/** A rollout is due, but the strategy OnDelete does not replace the Machine. */
const rolloutAfterExpired: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 1, ...strategy('OnDelete') } as never))
  await twin.settle('a Machine runs', someMachineIs('UpToDate', ''))
  const after = timestamp(Date.now() + 2_000)
  await sleep(systemClock, 3_000)
  await twin.patch(MachineDeployment, 'md', { spec: { rollout: { after } } })
  await twin.settle('the rollout is due', someMachineIs('NotUpToDate', 'MachineDeployment spec.rolloutAfter expired'))
  await twin.delete(Machine, ([first]) => first)
  await twin.settle('the Machine is replaced', someMachineIs('UpToDate', ''))
}

/** The infrastructure of a Machine blocks the deletion of the current MachineSet. */
const machineSetDeletionBlocked: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(stub.machine, byName(0), withFinalizers(['twin.capstan.dev/hold']))
  await twin.delete(MachineSet, byName(0))
  await twin.settle('the MachineSet is being deleted', (objects) => machinesIn(objects).some(isDeleting))
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2, template: { metadata: { labels: { extra: 'a' } } } } })
  await twin.settle('the MachineSet has the new label', (objects) => objects.some(isMachineSetWith('extra')))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the version changes', (objects) => machinesIn(objects).length === 3)
  await twin.patch(stub.machine, (machines) => machines.find(isDeleting), withFinalizers(null))
  await twin.settle('the rollout is complete', isRolledOut(2))
}

const isMachineSetWith = (name: string) => (object: KubeObject) => object.kind === MachineSet.kind && hasLabel(name)(object)

/** A user removes the label `machine-template-hash` of a MachineSet. */
const machineSetUnlabelled: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineSet, byName(0), { metadata: { labels: { 'machine-template-hash': null } } })
  await twin.settle('the MachineSet lacks the label', (objects) => !objects.some(isMachineSetWith('machine-template-hash')))
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2 } })
  await twin.settle('the MachineDeployment is not scaled', isDeploymentPhase('ScalingUp'))
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('the rollout does not begin', (objects) => isTrue(deploymentIn(objects)!, 'RollingOut'))
}

const isDeploymentPhase = (phase: string) => (objects: readonly KubeObject[]) => deploymentIn(objects)?.status?.phase === phase

/** The selector has an expression that core cannot convert to labels. */
const selectorExpression: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  const selector = { matchExpressions: [{ key: 'deployment', operator: 'Exists' }] }
  await twin.create(MachineDeployment, machineDeployment('md', { selector } as never))
  await twin.settle('the MachineDeployment is created')
}

/** A Machine without a MachineSet has the labels that the MachineDeployment selects. */
const otherMachine: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created', isRolledOut(1))
  await twin.setReports({ machine: noReport })
  await createOrphan(twin, 'lone', { deployment: 'none' })
  await twin.settle('the other Machine is not ready')
  await twin.patch(Machine, 'lone', { metadata: { labels: { deployment: 'md' } } })
  await twin.touch(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment reports the other Machine', (objects) =>
    (getCondition(deploymentIn(objects)!, 'MachinesReady')?.message ?? '').includes('lone'),
  )
  await twin.delete(MachineDeployment, 'md')
  await twin.settle('the MachineDeployment is deleted', (objects) => deploymentIn(objects) === undefined)
}

/** The MachineDeployment refers to a kind that does not exist. */
const unknownKind: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('the MachineDeployment is created', isRolledOut(1))
  const { infrastructureRef } = machineDeployment('md').spec.template.spec
  const template = { spec: { infrastructureRef: { ...infrastructureRef, kind: 'StubUnknownTemplate' } } }
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 2, template } })
  await twin.settle('the reconcile fails', isDeploymentPhase('Unknown'))
}

export const machineDeploymentCases: Cases = {
  'machinedeployment-machineset-deletion-blocked': machineSetDeletionBlocked,
  'machinedeployment-revision-nonsense': revisionNonsense,
  'machinedeployment-unknown-kind': unknownKind,
  'machinedeployment-machineset-unlabelled': machineSetUnlabelled,
  'machinedeployment-selector-exists': selectorExpression,
  'machinedeployment-other-machine': otherMachine,
  'machinedeployment-deadlock': deadlock,
  'machinedeployment-adoption-fails': adoptionFails,
  'machinedeployment-deletion-denied': deletionDenied,
  'machinedeployment-paused-taints': changes(
    { replicas: 1 },
    ['paused', { paused: true }],
    ['the template has taints', { template: { spec: { taints } } }],
    ['the taints are removed', { template: { spec: { taints: null } } }],
    ['resumed', { paused: false }],
  ),
  'machinedeployment-other-kubelet': otherKubelet,
  'machinedeployment-no-version': noVersion,
  'machinedeployment-rollout-after-expired': rolloutAfterExpired,
  'machinedeployment-scale': changes(
    { replicas: 1 },
    ['scaled up', { replicas: 3 }],
    ['scaled down', { replicas: 1 }],
    ['scaled down to zero', { replicas: 0 }],
  ),
  'machinedeployment-no-surge': changes({ replicas: 2, ...strategy('RollingUpdate', { maxSurge: 0, maxUnavailable: 1 }) }, [
    'the rollout is complete',
    version('v1.35.1'),
  ]),
  'machinedeployment-surge-percent': inSteps(4, { maxSurge: '50%', maxUnavailable: '25%' }),
  'machinedeployment-surge-all': inSteps(2, { maxSurge: '100%', maxUnavailable: 0 }),
  'machinedeployment-unavailable-all': allAtOnce,
  'machinedeployment-on-delete': changes(
    { replicas: 2, ...strategy('OnDelete') },
    ['the template changes', version('v1.35.1')],
    ['scaled up', { replicas: 3 }],
    ['scaled down', { replicas: 1 }],
  ),
  'machinedeployment-outdated-node': outdatedNode,
  'machinedeployment-version-changes-back': changes(
    { replicas: 1 },
    ['the version changes', version('v1.35.1')],
    ['the version changes back', version('v1.35.0')],
  ),
  'machinedeployment-paused-created': changes(
    { replicas: 1, paused: true },
    ['scaled', { replicas: 2 }],
    ['resumed', { paused: false }],
  ),
  'machinedeployment-paused-in-place': changes(
    { replicas: 2 },
    ['paused', { paused: true }],
    ['the template has another label', { template: { metadata: { labels: { extra: 'a' } } } }],
    ['the template has a drain timeout', { template: { spec: { deletion: { nodeDrainTimeoutSeconds: 9 } } } }],
    ['the deletion order changes', { deletion: { order: 'Oldest' } }],
    ['scaled', { replicas: 3 }],
    ['the version changes', version('v1.35.1')],
    ['resumed', { paused: false }],
  ),
  'machinedeployment-paused-new-template': changes(
    { replicas: 1 },
    ['paused', { paused: true }],
    ['the version changes', version('v1.35.1')],
    ['scaled', { replicas: 2 }],
  ),
  'machinedeployment-in-place': changes(
    { replicas: 1 },
    [
      'the template has another label and annotation',
      { template: { metadata: { labels: { extra: 'a' }, annotations: { note: 'b' } } } },
    ],
    ['the template has a taint', { template: { spec: { taints: [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }] } } }],
    [
      'label, annotation and taint are removed',
      { template: { metadata: { labels: { extra: null }, annotations: { note: null } }, spec: { taints: null } } },
    ],
  ),
  'machinedeployment-failure-domain': changes({ replicas: 1 }, [
    'the failure domain changes',
    { template: { spec: { failureDomain: 'b' } } },
  ]),
  'machinedeployment-data-secret': changes({ replicas: 1 }, [
    'the bootstrap data Secret is set beside the reference',
    { template: { spec: { bootstrap: { dataSecretName: 'mine' } } } },
  ]),
  'machinedeployment-rollout-after': changes({ replicas: 1 }, [
    'the rollout time is in the past',
    { rollout: { after: '2020-01-01T00:00:00Z' } },
  ]),
  'machinedeployment-no-templates': noTemplates,
  'machinedeployment-stuck': stuck,
  'machinedeployment-machineset-denied': machineSetDenied('CREATE'),
  'machinedeployment-scaling-denied': machineSetDenied('UPDATE'),
  'machinedeployment-deletion-blocked': deletionBlocked,
  'machinedeployment-rollout': rollout,
  'machinedeployment-metadata': metadata,
  'machinedeployment-machineset-changed': machineSetChanged,
  'machinedeployment-machineset-deleted': machineSetDeleted,
  'machinedeployment-paused-by-annotation': pausedByAnnotation,
  'machinedeployment-selector-changed': selectorChanged,
  'machinedeployment-template-deleted': templateDeleted,
  'machinedeployment-rollout-in-future': changes({ replicas: 1 }, [
    'the rollout time is in the future',
    { rollout: { after: '2099-01-01T00:00:00Z' } },
  ]),
  'machinedeployment-min-ready-seconds': changes(
    { replicas: 1 },
    ['minReadySeconds is one hour', { template: { spec: { minReadySeconds: 3600 } } }],
    ['the version changes', version('v1.35.1')],
  ),
  'machinedeployment-readiness-gates': changes({ replicas: 1 }, [
    'the template has a readiness gate',
    { template: { spec: { readinessGates: [{ conditionType: 'Extra' }] } } },
  ]),
  'machinedeployment-naming': changes({ replicas: 1, machineNaming: { template: 'x-{{ .machineSet.name }}-{{ .random }}' } }, [
    'the naming template changes',
    { machineNaming: { template: 'y-{{ .random }}' }, replicas: 2 },
  ]),
  'machinedeployment-strategy-changes': changes(
    { replicas: 2, ...strategy('OnDelete') },
    ['the version changes', version('v1.35.1')],
    ['the strategy changes', strategy('RollingUpdate')],
  ),
}
