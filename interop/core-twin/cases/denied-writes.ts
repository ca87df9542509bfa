/**
 * Cases in which a policy of the management cluster denies a write of core.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`, `settleRetries`).
 */
import {
  Cluster,
  ClusterClass,
  ClusterResourceSet,
  ClusterResourceSetBinding,
  Machine,
  MachineDeployment,
  MachineHealthCheck,
  MachineSet,
} from '@capstan/api'
import { getCondition, isTrue, type KubeObject } from '@capstan/kube'
import { clusterName, machine, machineDeployment, named } from '../objects.ts'
import { everythingReady, noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster, createReadyMachine, isGone } from './machine.ts'
import { version } from './machine-deployment.ts'
import { createWorkerTemplates, deny } from './machine-set.ts'
import { denialMessage, type DeniedRequests, endPolicy } from './policy.ts'
import { createLabelledCluster, createSource, manifest, resourceSet } from './resource-set.ts'
import { reports } from './topology-pools.ts'
import { aClass, checks, createTemplates, createTopology, worker, workers } from './topology.ts'

const endDenial = (twin: Twin) => twin.runOnBoth('end the policy', (client) => endPolicy(client, twin.namespace))
const hasEvent = (reason: string) => (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === 'Event' && (object as { reason?: string }).reason === reason)

/** A change of a Cluster with a class, or of a template of the class, and the denied write that the change requires. */
interface DeniedChange extends Omit<DeniedRequests, 'group' | 'resource' | 'namespace'> {
  /** Kind of the denied object. */
  readonly kind: { readonly group: string; readonly plural: string }
  /** Names of the MachineDeployments in the topology before the change. */
  readonly before: readonly string[]
  readonly change: (twin: Twin) => Promise<void>
}

/** Makes a change while a policy denies a write that the change requires. Then ends the policy. */
const topologyWriteDenied =
  ({ kind, before, change, ...denied }: DeniedChange): Case =>
  async (twin) => {
    await createTopology(twin, { worker: { healthCheck: { checks } } }, { workers: before.map((name) => worker(name)) })
    await deny(twin, { ...denied, group: kind.group, resource: kind.plural })
    await change(twin)
    await twin.settleRetries('the write fails', reports('ReconcileFailed', denialMessage))
    await endDenial(twin)
    await twin.touch(Cluster, clusterName)
    await twin.settle('the write succeeds', reports('ReconcileSucceeded'))
  }

const setWorkers =
  (...names: readonly string[]) =>
  (twin: Twin) =>
    twin.patch(Cluster, clusterName, workers(...names.map((name) => worker(name))))

const longerStartup = { enabled: true, checks: { ...checks, nodeStartupTimeoutSeconds: 900 } }

/** The policy denies updates of the bootstrap template of a class, so that the class cannot become an owner of the template. */
const adoption: Case = async (twin) => {
  await createTemplates(twin)
  const { group, plural } = stub.configTemplate
  await deny(twin, { group, resource: plural, operation: 'UPDATE' })
  await twin.create(ClusterClass, aClass())
  await twin.settle('a template cannot be adopted', (objects) =>
    objects.some(
      (object) =>
        object.kind === 'ClusterClass' && getCondition(object as ClusterClass, 'RefVersionsUpToDate')?.reason === 'InternalError',
    ),
  )
  await endDenial(twin)
  await twin.touch(ClusterClass, 'quick')
  await twin.settle('all templates are adopted', (objects) =>
    objects.some(({ kind, metadata }) => kind === stub.configTemplate.kind && metadata.ownerReferences !== undefined),
  )
}

/** Creates a MachineDeployment with three replicas, and pauses its rollout when there are two MachineSets. */
async function pauseRollout(twin: Twin): Promise<void> {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.setReports({ machine: noReport })
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 3 }))
  await twin.settle('the Machines do not start')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('there are two MachineSets', (objects) => objects.filter(({ kind }) => kind === 'MachineSet').length === 2)
  await twin.patch(MachineDeployment, 'md', { spec: { paused: true } })
  await twin.settle('the rollout is paused')
}

/** The policy prevents a paused MachineDeployment from scaling its two MachineSets. */
const scaling: Case = async (twin) => {
  await pauseRollout(twin)
  await deny(twin, {
    group: MachineSet.group,
    resource: MachineSet.plural,
    operation: 'UPDATE',
    accepted: 'object.spec.replicas == oldObject.spec.replicas',
  })
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 6 } })
  await twin.settle('the MachineSets cannot be scaled', hasEvent('FailedScale'))
  await endDenial(twin)
  await twin.touch(MachineDeployment, 'md')
  await twin.settle('the MachineSets are scaled', hasEvent('SuccessfulScale'))
}

/** The policy denies the update that sets `spec.providerID` of the Machine, but not updates of its status. */
const providerIDDenied: Case = async (twin) => {
  await twin.setReports({ machine: noReport })
  await createReadyCluster(twin)
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m'))
  await twin.settle('the infrastructure is not provisioned')
  const accepted = '!has(object.spec.providerID)'
  await deny(twin, { group: Machine.group, resource: Machine.plural, operation: 'UPDATE', accepted })
  await twin.setReports({ machine: everythingReady.machine })
  await twin.settleRetries('the provider ID cannot be written', (objects) =>
    objects.some((object) => object.kind === 'Machine' && isTrue(object as Machine, 'InfrastructureReady')),
  )
  await endDenial(twin)
  await twin.touch(Machine, 'm')
  await twin.settle('the provider ID is written', (objects) =>
    objects.some((object) => object.kind === 'Machine' && (object as Machine).spec.providerID !== undefined),
  )
}

/** The policy denies changes of the status of a Machine. The Machine can be deleted nevertheless. */
const statusDenied: Case = async (twin) => {
  await createReadyMachine(twin)
  await deny(twin, { group: Machine.group, resource: `${Machine.plural}/status`, operation: 'UPDATE' })
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

/** A paused MachineDeployment has two MachineSets, and the policy denies scaling down the larger one. */
const scalingDown: Case = async (twin) => {
  await pauseRollout(twin)
  const accepted = 'object.spec.replicas == oldObject.spec.replicas || oldObject.spec.replicas < 2'
  await deny(twin, { group: MachineSet.group, resource: MachineSet.plural, operation: 'UPDATE', accepted })
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 0 } })
  await twin.settle('neither MachineSet is scaled', hasEvent('FailedScale'))
  await endDenial(twin)
  await twin.touch(MachineDeployment, 'md')
  await twin.settle('both MachineSets are scaled', hasEvent('SuccessfulScale'))
}

/** A denied write of core for a ClusterResourceSet. */
interface DeniedApply extends Pick<DeniedRequests, 'group' | 'resource' | 'operation'> {
  /** Condition of the ClusterResourceSet that core sets just before the first denied write, or just after it. */
  readonly condition: 'Paused' | 'ResourcesApplied'
  /** Whether an object shows that the write has succeeded. */
  readonly isWritten: (object: KubeObject) => boolean
}

const hasCondition = (type: string) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === ClusterResourceSet.kind && getCondition(object as ClusterResourceSet, type) !== undefined,
  )

/** The policy denies a write that core makes in the management cluster for a ClusterResourceSet. */
const resourceSetWriteDenied =
  ({ condition, isWritten, ...denied }: DeniedApply): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    await createSource(twin, 'a', { 'a.yaml': manifest('one') })
    await deny(twin, denied)
    await twin.create(ClusterResourceSet, resourceSet('crs', [{ kind: 'ConfigMap', name: 'a' }]))
    // No object shows that the write failed, so the step waits for `condition`.
    await twin.settleRetries('the write fails', hasCondition(condition))
    await endDenial(twin)
    await twin.touch(ClusterResourceSet, 'crs')
    await twin.settle('the write succeeds', (objects) => objects.some(isWritten))
  }

export const deniedWriteCases: Cases = {
  'topology-health-check-creation-denied': topologyWriteDenied({
    kind: MachineHealthCheck,
    operation: 'CREATE',
    before: ['a'],
    change: setWorkers('a', 'b'),
  }),
  'topology-health-check-update-denied': topologyWriteDenied({
    kind: MachineHealthCheck,
    operation: 'UPDATE',
    before: ['a'],
    change: (twin) => twin.patch(Cluster, clusterName, workers(worker('a', { healthCheck: longerStartup }))),
  }),
  'topology-health-check-deletion-denied': topologyWriteDenied({
    kind: MachineHealthCheck,
    operation: 'DELETE',
    before: ['a', 'b'],
    change: setWorkers('a'),
  }),
  'topology-deployment-deletion-denied': topologyWriteDenied({
    kind: MachineDeployment,
    operation: 'DELETE',
    before: ['a', 'b'],
    change: setWorkers('a'),
  }),
  // Core creates new MachineDeployments before it updates existing ones.
  'topology-deployment-update-denied': topologyWriteDenied({
    kind: MachineDeployment,
    operation: 'UPDATE',
    accepted: 'object.spec.replicas != 2',
    before: ['a'],
    change: (twin) => twin.patch(Cluster, clusterName, workers(worker('a', { replicas: 2 }), worker('b'))),
  }),
  'topology-template-update-denied': topologyWriteDenied({
    kind: stub.machineTemplate,
    operation: 'UPDATE',
    accepted: 'object.metadata.name.startsWith("quick")',
    before: ['a'],
    change: async (twin) => {
      await twin.patch(stub.machineTemplate, 'quick-worker', { spec: { template: { spec: { made: 'anew' } } } })
      await twin.touch(Cluster, clusterName)
    },
  }),
  'topology-class-adoption-denied': adoption,
  'machine-update-denied': providerIDDenied,
  'machine-status-denied': statusDenied,
  'machinedeployment-scaling-denied': scaling,
  'machinedeployment-scaling-down-denied': scalingDown,
  'resourceset-source-denied': resourceSetWriteDenied({
    group: '',
    resource: 'configmaps',
    operation: 'UPDATE',
    condition: 'Paused',
    isWritten: ({ kind, metadata }) => kind === 'ConfigMap' && metadata.ownerReferences !== undefined,
  }),
  'resourceset-binding-denied': resourceSetWriteDenied({
    group: ClusterResourceSetBinding.group,
    resource: ClusterResourceSetBinding.plural,
    operation: 'CREATE',
    condition: 'Paused',
    isWritten: ({ kind }) => kind === ClusterResourceSetBinding.kind,
  }),
  'resourceset-binding-update-denied': resourceSetWriteDenied({
    group: ClusterResourceSetBinding.group,
    resource: ClusterResourceSetBinding.plural,
    operation: 'UPDATE',
    condition: 'ResourcesApplied',
    isWritten: (object) =>
      object.kind === ClusterResourceSetBinding.kind && (object as ClusterResourceSetBinding).spec?.bindings !== undefined,
  }),
}
