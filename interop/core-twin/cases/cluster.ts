/**
 * Cases of Clusters without a class.
 * Every case does the same with upstream's core and with Capstan's, and compares the objects of both sides after each step (`settle`).
 */
import { X509Certificate } from 'node:crypto'
import { Cluster, Machine, MachineDeployment, MachinePool, MachineSet } from '@capstan/api'
import { getCondition, hours, isTrue, type KubeObject, Secret, systemClock } from '@capstan/kube'
import { type Kubeconfig, makeAuthority } from '@capstan/kube/node'
import { parse } from 'yaml'
import { cluster, clusterName, machine, machineDeployment, machineSet, named } from '../objects.ts'
import { noReport } from '../providers.ts'
import type { Report } from '../side.ts'
import { oldStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'

/** Whether a provider object of the kind has an owner. Cases wait for this, because upstream looks for a missing object only every 30 s. */
const adopted = (kind: string) => (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === kind && (object.metadata.ownerReferences ?? []).length > 0)

/** A Cluster whose providers report late. */
const lateProviders: Case = async (twin) => {
  await twin.setReports({ cluster: noReport, controlPlane: noReport })
  await twin.create(Cluster, cluster())
  await twin.settle('neither provider object exists')
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.settle('the infrastructure reports nothing', adopted('StubCluster'))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.settle('the control plane reports nothing', adopted('StubControlPlane'))
  await twin.setReports({ cluster: () => ({ status: { initialization: { provisioned: true } } }) })
  await twin.settle('the infrastructure is provisioned')
  await twin.setReports({ controlPlane: () => ({ status: { initialization: { controlPlaneInitialized: true } } }) })
  await twin.settle('the control plane is initialized')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const empty: Case = async (twin) => {
  await twin.create(Cluster, { metadata: { name: clusterName }, spec: { clusterNetwork: { serviceDomain: 'x' } } })
  await twin.settle('the Cluster has no references')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const paused: Case = async (twin) => {
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster({ paused: true }))
  await twin.settle('the Cluster is created paused')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('the Cluster is resumed')
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the paused Cluster is deleted')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('the deleted Cluster is resumed')
}

/** A Cluster with infrastructure, but without a control plane provider and without Machines. */
const withoutControlPlane: Case = async (twin) => {
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  const { controlPlaneRef: _, ...spec } = cluster().spec
  await twin.create(Cluster, { metadata: { name: clusterName }, spec })
  await twin.settle('the Cluster waits for Machines')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

/** A Cluster without an `infrastructureRef`. */
const withoutInfrastructure: Case = async (twin) => {
  await twin.startWorkload(clusterName)
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  const { infrastructureRef: _, ...spec } = cluster().spec
  await twin.create(Cluster, { metadata: { name: clusterName }, spec })
  await twin.settle('the control plane is ready', adopted('StubControlPlane'))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

/** Creates provider objects and their Cluster. `metadata` is added to the infrastructure object. */
const createWithProviders = async (twin: Twin, kinds = stub, metadata: object = {}): Promise<void> => {
  await twin.create(kinds.cluster, named(clusterName, { metadata: { name: clusterName, ...metadata }, spec: {} }))
  await twin.create(kinds.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster({}, kinds))
}

/** Returns a provider object's status with one condition. */
const statusWithCondition = (type: string, status: string, fields: object = {}) => ({
  conditions: [{ type, status, lastTransitionTime: '2026-01-01T00:00:00Z', ...fields }],
})

const conditions: { readonly [name: string]: object } = {
  true: { status: 'True', reason: 'Fine', message: '' },
  false: { status: 'False', reason: 'Broken', message: 'no quota' },
  unknown: { status: 'Unknown', reason: 'Asking', message: 'who knows' },
  'true-without-reason': { status: 'True' },
  'false-without-reason': { status: 'False', message: 'no reason' },
  nonsense: { status: 'Maybe', reason: 'Odd' },
}

/**
 * The infrastructure or control plane provider reports a condition, which core mirrors. Both providers have reached their milestones: the
 * fields that report provisioned infrastructure and an initialized control plane are true.
 */
const mirroring =
  (role: 'cluster' | 'controlPlane', type: string, reported: object, kinds = stub): Case =>
  async (twin) => {
    await twin.startWorkload(clusterName)
    const milestones =
      kinds.contract === 'v1beta1'
        ? { ready: true, initialized: true }
        : { initialization: { provisioned: true, controlPlaneInitialized: true } }
    await twin.setReports({
      cluster: () => ({ status: milestones }),
      controlPlane: () => ({ status: milestones }),
      [role]: () => ({ status: { ...milestones, ...statusWithCondition(type, 'True', reported) } }),
    })
    await createWithProviders(twin, kinds)
    await twin.settle('the condition is reported')
    await twin.setReports({ [role]: () => ({ status: { ...milestones, conditions: [] } }) })
    await twin.settle('the condition is no longer reported')
  }

/** Providers set the milestones `provisioned` and `controlPlaneInitialized` back to false. */
const takenBack: Case = async (twin) => {
  await createWithProviders(twin)
  await twin.settle('the Cluster is ready')
  await twin.setReports({
    cluster: () => ({ status: { initialization: { provisioned: false } } }),
    controlPlane: () => ({ status: { initialization: { controlPlaneInitialized: false } } }),
  })
  await twin.settle('the milestones are false again')
}

/** Providers report milestones that are texts instead of booleans, from the beginning or after the milestones were true. */
const milestonesOfWrongType =
  (isReady: boolean): Case =>
  async (twin) => {
    const reportWrongTypes = () =>
      twin.setReports({
        cluster: () => ({ status: { initialization: { provisioned: 'yes' } } }),
        controlPlane: () => ({ status: { initialization: { controlPlaneInitialized: 'yes' } } }),
      })
    if (!isReady) await reportWrongTypes()
    await createWithProviders(twin)
    await twin.settle('the Cluster is created')
    await reportWrongTypes()
    await twin.touch(Cluster, clusterName)
    await twin.settle('the milestones are texts')
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is deleted')
  }

/** A user deletes a provider object of a Cluster that is not being deleted. */
const providerObjectDeleted =
  (role: 'cluster' | 'controlPlane'): Case =>
  async (twin) => {
    await createWithProviders(twin)
    await twin.settle('the Cluster is ready')
    await twin.delete(stub[role], clusterName)
    await twin.settle('the provider object is deleted')
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is deleted')
  }

/** A provider reports fields that core copies, one report per step. */
const reportsOf =
  (role: 'cluster' | 'controlPlane') =>
  (...steps: (readonly [name: string, report: Report])[]): Case =>
  async (twin) => {
    await createWithProviders(twin)
    for (const [name, report] of steps) {
      await twin.setReports({ [role]: () => report })
      await twin.settle(name)
    }
  }
const reports = reportsOf('cluster')
const controlPlaneReports = reportsOf('controlPlane')

const provisioned = { initialization: { provisioned: true } }
const initialized = { initialization: { controlPlaneInitialized: true } }

/** The control plane provider reports the endpoint, before and after the control plane is initialized. */
const endpointOfControlPlane: Case = async (twin) => {
  const spec = { controlPlaneEndpoint: { host: 'cp', port: 6443 } }
  await twin.setReports({ cluster: () => ({ status: provisioned }), controlPlane: () => ({ spec }) })
  await createWithProviders(twin)
  await twin.settle('the control plane has an endpoint')
  await twin.setReports({ controlPlane: () => ({ spec, status: initialized }) })
  await twin.settle('the control plane is initialized')
  await twin.setReports({
    controlPlane: () => ({ spec: { controlPlaneEndpoint: { host: 'other', port: 1 } }, status: initialized }),
  })
  await twin.settle('the endpoint changes')
}

/** A user manages the infrastructure object. */
const managedByUser: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/managed-by': 'me' }
  await createWithProviders(twin, stub, { annotations })
  await twin.settle('the Cluster is created')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}
const domain = (name: string, controlPlane?: boolean) => ({ name, ...(controlPlane === undefined ? {} : { controlPlane }) })

const otherOwner: Case = async (twin) => {
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x', controller: true }]
  await createWithProviders(twin, stub, { ownerReferences })
  await twin.settle('the infrastructure has another controller')
}

const pausedInfrastructure: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  await createWithProviders(twin, stub, { annotations })
  await twin.settle('the infrastructure is paused')
}

const pausedByAnnotation: Case = async (twin) => {
  await createWithProviders(twin)
  await twin.settle('the Cluster is ready')
  await twin.patch(Cluster, clusterName, { metadata: { annotations: { 'cluster.x-k8s.io/paused': 'true' } } })
  await twin.settle('the Cluster is paused')
  await twin.patch(Cluster, clusterName, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the Cluster is resumed')
}

const replicasReported: Case = async (twin) => {
  await twin.setReports({
    controlPlane: () => ({
      spec: { replicas: 3 },
      status: {
        initialization: { controlPlaneInitialized: true },
        replicas: 3,
        readyReplicas: 2,
        upToDateReplicas: 1,
        availableReplicas: 0,
        version: 'v1.35.0',
      },
    }),
  })
  await createWithProviders(twin)
  await twin.settle('replicas are reported')
}

const unknownKind: Case = async (twin) => {
  const infrastructureRef = { apiGroup: 'nowhere.capstan.dev', kind: 'Nothing', name: clusterName }
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster({ infrastructureRef }))
  await twin.settle('the kind does not exist')
}

const gates: Case = async (twin) => {
  await createWithProviders(twin)
  await twin.settle('the Cluster is ready')
  await twin.patch(Cluster, clusterName, { spec: { availabilityGates: [{ conditionType: 'Extra' }] } })
  await twin.settle('no condition is reported for an availability gate')
}

/** An availability gate names Available, the condition to which gates contribute. */
const gateOfItself: Case = async (twin) => {
  await createWithProviders(twin)
  await twin.settle('the Cluster is ready')
  await twin.patch(Cluster, clusterName, { spec: { availabilityGates: [{ conditionType: 'Available' }] } })
  await twin.settle('Available cannot be computed')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const mirroringCases: { [name: string]: Case } = {}
for (const [name, reported] of Object.entries(conditions)) {
  mirroringCases[`cluster-infrastructure-ready-${name}`] = mirroring('cluster', 'Ready', reported)
  mirroringCases[`cluster-control-plane-available-${name}`] = mirroring('controlPlane', 'Available', reported)
  mirroringCases[`cluster-old-infrastructure-ready-${name}`] = mirroring('cluster', 'Ready', reported, oldStub)
  mirroringCases[`cluster-old-control-plane-ready-${name}`] = mirroring('controlPlane', 'Ready', reported, oldStub)
}

/** Returns a Cluster whose control plane consists of Machines. */
function clusterOfMachines() {
  const { metadata, spec } = cluster()
  const { controlPlaneRef: _ref, ...otherFields } = spec
  return { metadata, spec: otherFields }
}

/** A Cluster without a control plane object, whose control plane consists of Machines. */
const machinesAsControlPlane: Case = async (twin) => {
  await twin.startWorkload(clusterName)
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(Cluster, clusterOfMachines())
  await twin.settle('there is no control plane Machine')
  for (const name of ['a', 'b']) {
    await twin.create(stub.config, named(name, { spec: {} }))
    await twin.create(stub.machine, named(name, { spec: {} }))
    const { metadata, ...body } = machine(name)
    await twin.create(Machine, { ...body, metadata: { ...metadata, labels: { 'cluster.x-k8s.io/control-plane': '' } } })
  }
  await twin.settle('control plane Machines run', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'RemoteConnectionProbe')),
  )
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const clusterHas =
  (type: string, reason: string, message = '') =>
  (objects: readonly KubeObject[]) =>
    objects.some((object) => {
      const condition = object.kind === 'Cluster' ? getCondition(object as Cluster, type) : undefined
      return condition?.reason === reason && condition.message?.includes(message)
    })

/**
 * Returns the contents of a kubeconfig that should be the same on both sides. Fields of each client certificate replace the certificate and its
 * key. Certificate authorities are omitted.
 */
function kubeconfigContents({ data }: Secret): object {
  const config = parse(Buffer.from(data!.value!, 'base64').toString()) as Kubeconfig
  const credentials = config.users.map(({ name, user }) => {
    const certificate = new X509Certificate(Buffer.from(user['client-certificate-data']!, 'base64'))
    const { subject, issuer, ca, validFrom, validTo, keyUsage } = certificate
    const days = Math.round((Date.parse(validTo) - Date.parse(validFrom)) / hours(24))
    return { name, subject, issuer, ca, days, keyUsage }
  })
  const clusters = config.clusters.map(({ name, cluster: { server } }) => ({ name, server }))
  const contexts = config.contexts.map(({ name, context: { cluster, user } }) => ({ name, cluster, user }))
  return { clusters, credentials, contexts, current: config['current-context'] }
}

/** The user supplies the certificate authority of a Cluster without a control plane provider, after the Cluster exists. */
const kubeconfigGenerated: Case = async (twin) => {
  const authority = await makeAuthority(systemClock, { commonName: 'kubernetes' })
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(Cluster, clusterOfMachines())
  await twin.settle('the certificate authority is missing', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && (object as Cluster).spec.controlPlaneEndpoint?.host !== undefined),
  )
  const encode = (text: string) => Buffer.from(text).toString('base64')
  await twin.create(Secret, {
    metadata: { name: `${clusterName}-ca`, labels: { 'cluster.x-k8s.io/cluster-name': clusterName } },
    type: 'cluster.x-k8s.io/secret',
    data: { 'tls.crt': encode(authority.certificate), 'tls.key': encode(authority.key) },
  })
  await twin.touch(Cluster, clusterName)
  const name = `${clusterName}-kubeconfig`
  await twin.settle('the kubeconfig is generated', (objects) => objects.some(({ metadata }) => metadata.name === name))
  await twin.runOnBoth('compare the kubeconfigs', async (client) =>
    kubeconfigContents(await client.get(Secret, { namespace: twin.namespace, name })),
  )
  await twin.settle('the kubeconfigs are compared')
}

/** A Cluster is deleted with control plane Machines and MachinePools; finalizers of their infrastructure block the deletion. */
const deletedWithMachinesAndPools: Case = async (twin) => {
  const names = ['1', '2', '3', '4', '5', '6', '7']
  const finalizers = ['twin.capstan.dev/hold']
  const provisioned = { ready: true, initialization: { provisioned: true } }
  await twin.setReports({ machine: () => ({ spec: { providerIDList: [] }, status: { ...provisioned, replicas: 0 } }) })
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(Cluster, clusterOfMachines())
  const references = (name: string) => ({
    bootstrap: { dataSecretName: 'mine' },
    infrastructureRef: { apiGroup: stub.group, kind: 'StubMachine', name },
  })
  for (const name of names) {
    for (const prefix of ['m', 'p'])
      await twin.create(stub.machine, { metadata: { name: `${prefix}${name}`, finalizers }, spec: {} } as never)
    const { metadata, spec } = machine(`m${name}`, references(`m${name}`))
    await twin.create(Machine, { metadata: { ...metadata, labels: { 'cluster.x-k8s.io/control-plane': '' } }, spec })
    const template = { spec: { clusterName, ...references(`p${name}`) } }
    await twin.create(MachinePool, { metadata: { name: `p${name}` }, spec: { clusterName, replicas: 0, template } } as never)
  }
  await twin.settle('the Machines and MachinePools exist')
  await twin.delete(Cluster, clusterName)
  await twin.settle('Machines and MachinePools block the deletion', (objects) =>
    ['* Control plane Machines: m1, m2, m3, m4, m5, ... (2 more)', '* MachinePools: p1, p2, p3, p4, p5, ... (2 more)'].every(
      (line) => clusterHas('Deleting', 'WaitingForWorkersDeletion', line)(objects),
    ),
  )
  for (const name of names)
    for (const prefix of ['m', 'p']) await twin.patch(stub.machine, `${prefix}${name}`, withFinalizers(null))
  await twin.settle('the Cluster is deleted', (objects) => !objects.some(({ kind }) => kind === 'Cluster'))
}

const unknownControlPlaneKind: Case = async (twin) => {
  const controlPlaneRef = { apiGroup: 'nowhere.capstan.dev', kind: 'Nothing', name: clusterName }
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster({ controlPlaneRef }))
  await twin.settle('the kind does not exist', clusterHas('ControlPlaneAvailable', 'InternalError'))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the missing kind prevents the deletion', clusterHas('Deleting', 'InternalError'))
}

/** Workers and a control plane Machine that are paused from the beginning report no condition except Paused. */
const pausedWorkers: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  await createWithProviders(twin)
  await twin.settle('the Cluster exists')
  const { metadata, ...deployment } = machineDeployment('md', { replicas: 1 })
  await twin.create(MachineDeployment, { ...deployment, metadata: { ...metadata, annotations } })
  await twin.touch(Cluster, clusterName)
  await twin.settle('the MachineDeployment reports only Paused', (objects) =>
    [
      ['WorkersAvailable', 'AvailableUnknown'],
      ['RollingOut', 'RollingOutUnknown'],
      ['ScalingUp', 'ScalingUpUnknown'],
      ['ScalingDown', 'ScalingDownUnknown'],
    ].every(([type, reason]) => clusterHas(type!, reason!)(objects)),
  )
  for (const [name, labels] of [
    ['worker', {}],
    ['control-plane', { 'cluster.x-k8s.io/control-plane': '' }],
  ] as const) {
    const { metadata, ...body } = machine(name)
    await twin.create(Machine, { ...body, metadata: { ...metadata, annotations, labels } })
    await twin.patch(Machine, name, { metadata: { labels: { 'cluster.x-k8s.io/cluster-name': clusterName } } })
  }
  await twin.touch(Cluster, clusterName)
  await twin.settle('the Machines report only Paused', (objects) =>
    ['ControlPlaneMachines', 'WorkerMachines'].every(
      (type) => clusterHas(`${type}Ready`, 'ReadyUnknown')(objects) && clusterHas(`${type}UpToDate`, 'UpToDateUnknown')(objects),
    ),
  )
}

/** The provider of contract v1beta1 reports failure domains as a map. */
const oldFailureDomains: Case = async (twin) => {
  const report = (failureDomains: object | null) => ({ status: { ready: true, failureDomains } })
  const has = (names: readonly string[]) => (objects: readonly KubeObject[]) =>
    objects.some(
      (object) =>
        object.kind === 'Cluster' &&
        ((object as Cluster).status?.failureDomains ?? []).map(({ name }) => name).join() === names.join(),
    )
  const domains = { b: { controlPlane: true, attributes: { zone: '1' } }, a: { controlPlane: false }, c: {} }
  await twin.setReports({ cluster: () => report(domains), controlPlane: () => ({ status: { ready: true, initialized: true } }) })
  await createWithProviders(twin, oldStub)
  await twin.settle('three failure domains', has(['a', 'b', 'c']))
  await twin.setReports({ cluster: () => report({ ...domains, a: null, c: { controlPlane: true } }) })
  await twin.settle('two failure domains', has(['b', 'c']))
  await twin.setReports({ cluster: () => report(null) })
  await twin.settle('no failure domain', has([]))
}

const oldFailures: Case = async (twin) => {
  const failure = { failureReason: 'Bad', failureMessage: 'no quota' }
  const report = (fields: object) =>
    twin.setReports({
      cluster: () => ({ status: { ready: true, ...fields } }),
      controlPlane: () => ({ status: { ready: true, initialized: true, ...fields } }),
    })
  const isFailed = (objects: readonly KubeObject[]) =>
    objects.some(
      (object) => object.kind === 'Cluster' && (object as Cluster).status?.deprecated?.v1beta1?.failureReason !== undefined,
    )
  await report(failure)
  await createWithProviders(twin, oldStub)
  await twin.settle('failures are reported', isFailed)
  await report({ failureReason: null, failureMessage: null })
  await twin.settle('the failures are no longer reported')
}

const withFinalizers = (finalizers: readonly string[] | null) => ({ metadata: { finalizers } })

/**
 * A Cluster is deleted with worker Machines, a MachineSet and a MachineDeployment. Finalizers block the deletion: first those of the
 * workers, then that of the control plane, then that of the infrastructure.
 */
const deletedWithWorkers: Case = async (twin) => {
  await twin.startWorkload(clusterName)
  await createWithProviders(twin)
  await twin.settle('both cores are connected to the workload cluster', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'RemoteConnectionProbe')),
  )
  const spec = { template: { spec: {} } }
  await twin.create(stub.configTemplate, named('worker', { spec }))
  await twin.create(stub.machineTemplate, named('worker', { spec }))
  const finalizers = ['twin.capstan.dev/hold']
  for (const name of ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7']) {
    await twin.create(stub.config, named(name, { spec: {} }))
    await twin.create(stub.machine, { metadata: { name, finalizers }, spec: {} } as never)
    await twin.create(Machine, machine(name))
  }
  await twin.create(MachineSet, machineSet('ms', { replicas: 0 }))
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 0 }))
  await twin.settle('the workers exist')
  await twin.patch(MachineSet, 'ms', { metadata: { finalizers: ['cluster.x-k8s.io/machineset', ...finalizers] } })
  await twin.patch(MachineDeployment, 'md', { metadata: { finalizers: ['cluster.x-k8s.io/machinedeployment', ...finalizers] } })
  await twin.patch(stub.controlPlane, clusterName, withFinalizers(finalizers))
  await twin.patch(stub.cluster, clusterName, withFinalizers(finalizers))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the workers block the deletion')
  for (const name of ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7']) await twin.patch(stub.machine, name, withFinalizers(null))
  await twin.patch(MachineSet, 'ms', withFinalizers(null))
  await twin.patch(MachineDeployment, 'md', withFinalizers(null))
  await twin.settle('the control plane blocks the deletion', (objects) => !objects.some(({ kind }) => kind === 'Machine'))
  await twin.patch(stub.controlPlane, clusterName, withFinalizers(null))
  await twin.settle('the infrastructure blocks the deletion')
  await twin.patch(stub.cluster, clusterName, withFinalizers(null))
  await twin.settle('the Cluster is deleted')
}

/** Core counts a standalone Machine and the Machines of a MachineSet and of a MachineDeployment, and aggregates the conditions of all. */
const counted: Case = async (twin) => {
  await twin.startWorkload(clusterName)
  await createWithProviders(twin)
  await twin.settle('both cores are connected to the workload cluster', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'RemoteConnectionProbe')),
  )
  const spec = { template: { spec: {} } }
  await twin.create(stub.configTemplate, named('worker', { spec }))
  await twin.create(stub.machineTemplate, named('worker', { spec }))
  await twin.create(stub.config, named('lone', { spec: {} }))
  await twin.create(stub.machine, named('lone', { spec: {} }))
  await twin.create(Machine, machine('lone'))
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2 }))
  await twin.settle('all workers run')
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 3 } })
  await twin.patch(MachineDeployment, 'md', { spec: { replicas: 3 } })
  await twin.settle('some workers do not start')
}

export const clusterCases: Cases = {
  ...mirroringCases,
  'cluster-kubeconfig-generated': kubeconfigGenerated,
  'cluster-without-infrastructure': withoutInfrastructure,
  'cluster-deleted-with-machines-and-pools': deletedWithMachinesAndPools,
  'cluster-unknown-control-plane-kind': unknownControlPlaneKind,
  'cluster-paused-workers': pausedWorkers,
  'cluster-old-failure-domains': oldFailureDomains,
  'cluster-old-failures': oldFailures,
  'cluster-milestones-taken-back': takenBack,
  'cluster-infrastructure-deleted': providerObjectDeleted('cluster'),
  'cluster-control-plane-deleted': providerObjectDeleted('controlPlane'),
  'cluster-endpoint-changes': reports(
    ['no endpoint', { status: provisioned }],
    ['a host without port', { spec: { controlPlaneEndpoint: { host: 'a', port: 0 } }, status: provisioned }],
    ['an endpoint', { spec: { controlPlaneEndpoint: { host: 'a', port: 1 } }, status: provisioned }],
    ['another endpoint', { spec: { controlPlaneEndpoint: { host: 'b', port: 2 } }, status: provisioned }],
  ),
  'cluster-failure-domains': reports(
    ['two failure domains', { status: { ...provisioned, failureDomains: [domain('b', true), domain('a')] } }],
    ['one failure domain', { status: { ...provisioned, failureDomains: [domain('b', false)] } }],
    ['no failure domain', { status: { ...provisioned, failureDomains: null } }],
  ),
  'cluster-failure': reports(
    ['a failure is reported', { status: { ...provisioned, failureReason: 'Bad', failureMessage: 'no quota' } }],
    ['the failure is no longer reported', { status: { ...provisioned, failureReason: null, failureMessage: null } }],
  ),
  'cluster-other-owner': otherOwner,
  'cluster-managed-by-user': managedByUser,
  'cluster-control-plane-endpoint': endpointOfControlPlane,
  'cluster-control-plane-versions': controlPlaneReports(
    ['one version', { status: { ...initialized, versions: [{ version: 'v1.34.0', replicas: 3 }] } }],
    [
      'two versions',
      {
        status: {
          ...initialized,
          versions: [
            { version: 'v1.34.0', replicas: 2 },
            { version: 'v1.35.0', replicas: 1 },
          ],
        },
      },
    ],
    ['no version', { status: { ...initialized, versions: null } }],
  ),
  'cluster-control-plane-failure': controlPlaneReports(
    ['a failure is reported', { status: { ...initialized, failureReason: 'Bad', failureMessage: 'no quota' } }],
    ['the failure is no longer reported', { status: { ...initialized, failureReason: null, failureMessage: null } }],
  ),
  'cluster-paused-infrastructure': pausedInfrastructure,
  'cluster-paused-by-annotation': pausedByAnnotation,
  'cluster-control-plane-replicas': replicasReported,
  'cluster-unknown-kind': unknownKind,
  'cluster-availability-gate': gates,
  'cluster-availability-gate-of-itself': gateOfItself,
  'cluster-milestones-of-wrong-type': milestonesOfWrongType(false),
  'cluster-milestones-of-wrong-type-later': milestonesOfWrongType(true),
  'cluster-without-control-plane': withoutControlPlane,
  'cluster-late-providers': lateProviders,
  'cluster-empty': empty,
  'cluster-paused': paused,
  'cluster-machines-as-control-plane': machinesAsControlPlane,
  'cluster-deleted-with-workers': deletedWithWorkers,
  'cluster-counts-workers': counted,
  'cluster-control-plane-conditions': controlPlaneReports(
    [
      'rolling out and scaling',
      {
        status: {
          ...initialized,
          conditions: [
            ['RollingOut', 'True', 'two replicas'],
            ['ScalingUp', 'True', 'from 1 to 3'],
            ['ScalingDown', 'Unknown', 'who knows'],
            ['Available', 'False', '* EtcdClusterHealthy:\n  * no quorum'],
          ].map(([type, status, message]) => ({
            type,
            status,
            message,
            reason: 'Twin',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          })),
        },
      },
    ],
    ['no condition', { status: { ...initialized, conditions: null } }],
  ),
}
