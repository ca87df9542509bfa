/**
 * Cases in which a reference to bootstrap or infrastructure objects changes to another kind, or to the same kind in another API group.
 */
import { Cluster, ClusterClass, Machine, MachineDeployment } from '@capstan/api'
import type { KubeObject } from '@capstan/kube'
import { clusterName, machineDeployment, named } from '../objects.ts'
import { everythingReady } from '../providers.ts'
import { kubeadmStub, oldStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster, createReadyMachine } from './machine.ts'
import { createWorkerTemplates, machinesIn } from './machine-set.ts'
import { createPoolTopology, poolClass, poolReport, poolTopology, reports } from './topology-pools.ts'
import { aClass, createTopology } from './topology.ts'

/** Makes the stub bootstrap providers report the status fields of both contract versions. */
const reportBothContracts = (twin: Twin) =>
  twin.setReports({
    config: (object, objects) => {
      const { status } = everythingReady.config(object, objects)!
      return { status: { ...status, ready: true } }
    },
  })

const spec = { template: { spec: { made: 'from the template' } } }

const usesGroup = (group: string) => (objects: readonly KubeObject[]) =>
  machinesIn(objects).length > 0 && machinesIn(objects).every(({ spec }) => spec.bootstrap.configRef?.apiGroup === group)

const ofMachine: Case = async (twin) => {
  await createReadyMachine(twin)
  await reportBothContracts(twin)
  const changed = (apiGroup: string, kind: string) => ({ spec: { bootstrap: { configRef: { apiGroup, kind, name: 'm' } } } })
  await twin.patch(Machine, 'm', changed(kubeadmStub.config.group, kubeadmStub.config.kind))
  await twin.settle('the bootstrap object does not exist')
  await twin.create(kubeadmStub.config, named('m', { spec: {} }))
  await twin.settle('the bootstrap object does not report', (objects) =>
    objects.some(({ kind, metadata }) => kind === kubeadmStub.config.kind && metadata.ownerReferences !== undefined),
  )
  await twin.create(oldStub.config, named('m', { spec: {} }))
  await twin.patch(Machine, 'm', changed(oldStub.group, oldStub.config.kind))
  await twin.settle('the bootstrap object is ready', usesGroup(oldStub.group))
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted', (objects) => machinesIn(objects).length === 0)
}

const ofDeployment: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(oldStub.configTemplate, named('worker', { spec }))
  await reportBothContracts(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('a Machine runs', usesGroup(stub.group))
  const configRef = { apiGroup: oldStub.group, kind: oldStub.configTemplate.kind, name: 'worker' }
  await twin.patch(MachineDeployment, 'md', { spec: { template: { spec: { bootstrap: { configRef } } } } })
  await twin.settle('the Machine is replaced', usesGroup(oldStub.group))
}

/**
 * A ClusterClass changes to a bootstrap template of another kind or API group. The change fails in a dry run, in which core applies the new
 * template with the UID of the current one.
 */
const ofClass =
  (template: typeof stub.configTemplate): Case =>
  async (twin) => {
    await createTopology(twin)
    await twin.create(template, named('other', { spec }))
    await twin.patch(ClusterClass, 'quick', { spec: aClass({ worker: otherBootstrap(template) }).spec })
    await twin.settle('the bootstrap template cannot be replaced', reports('ReconcileFailed', 'uid mismatch'))
    await twin.patch(ClusterClass, 'quick', { spec: aClass().spec })
    await twin.settle('the ClusterClass refers to the former template again', reports('ReconcileSucceeded'))
  }

const otherBootstrap = ({ group, kind }: typeof stub.configTemplate) => ({
  bootstrap: { templateRef: { apiVersion: `${group}/v1`, kind, name: 'other' } },
})

/** A Cluster changes to a class whose bootstrap template has another API group. */
const ofOtherClass: Case = async (twin) => {
  await createTopology(twin)
  await twin.create(oldStub.configTemplate, named('other', { spec }))
  const { metadata: _metadata, ...fields } = aClass({ worker: otherBootstrap(oldStub.configTemplate) })
  await twin.create(ClusterClass, { ...fields, metadata: { name: 'second' } })
  await twin.settle('the second class is reconciled')
  await twin.patch(Cluster, clusterName, { spec: { topology: { classRef: { name: 'second' } } } })
  await twin.settle('the bootstrap template cannot be replaced', reports('ReconcileFailed', 'uid mismatch'))
}

/** A ClusterClass changes to a bootstrap template of another kind or API group for its MachinePools. */
const ofPoolClass =
  (template: typeof stub.configTemplate): Case =>
  async (twin) => {
    await twin.setReports({ machine: () => poolReport() })
    await createPoolTopology(twin, poolTopology('p'))
    await twin.create(template, named('other', { spec }))
    const machinePools = [poolClass(otherBootstrap(template))]
    await twin.patch(ClusterClass, 'quick', { spec: aClass({ workers: { machinePools } }).spec })
    await twin.settle('the bootstrap object cannot be changed', reports('ReconcileFailed', 'cannot be changed'))
  }

/** A user changes a MachineDeployment, which a topology has created, to an infrastructure template of another API group. */
const ofInfrastructure: Case = async (twin) => {
  await createTopology(twin)
  await twin.create(oldStub.machineTemplate, named('other', { spec }))
  const infrastructureRef = { apiGroup: oldStub.group, kind: oldStub.machineTemplate.kind, name: 'other' }
  await twin.patch(MachineDeployment, ([first]) => first, { spec: { template: { spec: { infrastructureRef } } } })
  await twin.touch(Cluster, clusterName)
  await twin.settle('the MachineDeployment cannot be reconciled', reports('ReconcileFailed'))
}

export const bootstrapKindCases: Cases = {
  'machine-bootstrap-kind-changes': ofMachine,
  'machinedeployment-bootstrap-group-changes': ofDeployment,
  'topology-bootstrap-group-changes': ofClass(oldStub.configTemplate),
  'topology-bootstrap-kind-changes': ofClass(kubeadmStub.configTemplate),
  'topology-class-with-other-bootstrap-group': ofOtherClass,
  'topology-pools-bootstrap-group-changes': ofPoolClass(oldStub.configTemplate),
  'topology-pools-bootstrap-kind-changes': ofPoolClass(kubeadmStub.configTemplate),
  'topology-deployment-infrastructure-group-changes': ofInfrastructure,
}
