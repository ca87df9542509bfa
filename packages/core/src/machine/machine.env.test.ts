import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import {
  controllerReference,
  Event,
  getCondition,
  hours,
  isReason,
  minutes,
  Node,
  orAbsent,
  Pod,
  Secret,
  seconds,
  StatusError,
  type Transport,
  withSend,
} from '@capstan/kube'
import {
  aCondition,
  aMachine,
  type CoreEnv,
  conditionText,
  coreEnv,
  DevConfig,
  DevControlPlane,
  DevMachine,
} from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

test('a Machine copies the provider ID and the name of its data Secret, finds and labels its Node, and is Available', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1', { labels: { 'node-role.kubernetes.io/worker': '', 'example.com/kept': 'here' } })
  const machine = await env.get(Machine, 'm1')
  expect(machine.spec).toMatchObject({ providerID: 'dev:///m1', bootstrap: { dataSecretName: 'm1-data' } })
  expect(machine.status).toMatchObject({
    phase: 'Running',
    nodeRef: { name: 'node-m1' },
    nodeInfo: { kubeletVersion: 'v1.34.0' },
    observedGeneration: machine.metadata.generation,
  })
  expect(machine.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
    'Available True Available',
    'Ready True Ready',
    'BootstrapConfigReady True Ready',
    'InfrastructureReady True Ready',
    'NodeHealthy True NodeHealthy',
    'NodeReady True NodeReady',
    'Updating False NotUpdating',
    'Paused False NotPaused',
    'Deleting False NotDeleting',
  ])
  const node = await env.workload.get(Node, { name: 'node-m1' })
  expect(node.metadata.labels).toMatchObject({ 'node-role.kubernetes.io/worker': '' })
  expect(node.metadata.labels).not.toHaveProperty('example.com/kept')
  expect(node.metadata.annotations).toMatchObject({
    'cluster.x-k8s.io/machine': 'm1',
    'cluster.x-k8s.io/cluster-name': 'demo',
    'cluster.x-k8s.io/cluster-namespace': 'default',
    'cluster.x-k8s.io/labels-from-machine': 'node-role.kubernetes.io/worker',
  })
  expect((await env.get(DevMachine, 'm1')).metadata.ownerReferences).toMatchObject([
    { kind: 'Machine', name: 'm1', controller: true },
  ])
})

test('a Machine reports UpToDate when its MachineSet names the MachineDeployment by label, without an owner reference', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  const { spec } = aMachine()
  const template = { metadata: { labels: { a: 'b' } }, spec: { ...spec, version: 'v1.34.0' } }
  const labels = { 'cluster.x-k8s.io/deployment-name': 'md' }
  const workersSpec = { clusterName: 'demo', selector: { matchLabels: { a: 'b' } }, template }
  const paused = { 'cluster.x-k8s.io/paused': '' }
  await env.client.create(MachineDeployment, {
    metadata: { namespace: 'default', name: 'md', annotations: paused },
    spec: workersSpec,
  } as never)
  const set = await env.client.create(MachineSet, {
    metadata: { namespace: 'default', name: 'set', labels, annotations: paused },
    spec: workersSpec,
  } as never)
  await env.client.create(Machine, {
    metadata: { namespace: 'default', name: 'm1', labels, ownerReferences: [controllerReference(set, MachineSet)] },
    spec: { ...spec, version: 'v1.33.0' },
  })
  await env.settle()
  // Without a Node, the condition compares only the templates of MachineSet and MachineDeployment.
  expect(conditionText(await env.get(Machine, 'm1'), 'UpToDate')).toBe('True UpToDate')
})

test('a stand-alone Machine gets its Cluster as owner, beside an owner of kind Cluster in another API group', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  const other = { apiVersion: 'provisioning.example.io/v1', kind: 'Cluster', name: 'x', uid: 'x' }
  await env.client.create(Machine, {
    metadata: { namespace: 'default', name: 'm1', ownerReferences: [other] },
    spec: aMachine().spec,
  })
  await env.settle()
  expect((await env.get(Machine, 'm1')).metadata.ownerReferences).toMatchObject([
    other,
    { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo' },
  ])
})

test('a Machine reports what it waits for', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.create(Machine, 'm1', { spec: aMachine().spec })
  await env.settle()
  const texts = async () => {
    const machine = await env.get(Machine, 'm1')
    return ['BootstrapConfigReady', 'InfrastructureReady', 'NodeHealthy'].map((type) => conditionText(machine, type))
  }
  expect(await texts()).toEqual([
    'False ObjectDoesNotExist: DevConfig does not exist',
    'False ObjectDoesNotExist: DevMachine does not exist',
    'Unknown InspectionFailed: Waiting for DevMachine to report spec.providerID',
  ])
  await env.create(DevConfig, 'm1')
  await env.create(DevMachine, 'm1')
  await env.settle()
  expect(await texts()).toEqual([
    'False NotReady: DevConfig status.initialization.dataSecretCreated is false',
    'False NotReady: DevMachine status.initialization.provisioned is false',
    'Unknown InspectionFailed: Waiting for DevMachine to report spec.providerID',
  ])
  await env.patch(DevMachine, 'm1', {
    spec: { providerID: 'dev:///m1' },
    status: {
      initialization: { provisioned: true },
      conditions: [{ type: 'Ready', status: 'False', reason: 'Booting', message: 'soon' }],
    },
  })
  expect((await texts()).slice(1)).toEqual([
    'False Booting: soon',
    'Unknown InspectionFailed: Waiting for a Node with spec.providerID dev:///m1 to exist',
  ])
})

test('a Machine reports a terminal failure when its infrastructure machine was deleted', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.client.delete(DevMachine, { namespace: 'default', name: 'm1' })
  await env.settle()
  const machine = await env.get(Machine, 'm1')
  expect(conditionText(machine, 'InfrastructureReady')).toBe(
    'False ObjectDeleted: DevMachine has been deleted while the Machine still exists',
  )
  expect(machine.status?.deprecated?.v1beta1?.failureReason).toBe('InvalidConfiguration')
})

test('the status of a Machine is updated, and the Machine can be deleted, even if failureReason and failureMessage of its infrastructure machine are not strings', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  const conditions = [{ type: 'Ready', status: 'False', reason: 'Broken', message: 'no power' }]
  await env.patch(DevMachine, 'm1', { status: { failureReason: 5, failureMessage: {}, conditions } })
  const machine = await env.get(Machine, 'm1')
  expect(conditionText(machine, 'InfrastructureReady')).toBe('False Broken: no power')
  expect(machine.status?.deprecated?.v1beta1).not.toHaveProperty('failureMessage')
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.advance(minutes(1))
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
})

test('an invalid reason in a condition of the infrastructure machine is reported, and the rest of the status is written', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.patch(DevMachine, 'm1', {
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'no power' }], failureDomain: 'a' },
  })
  const machine = await env.get(Machine, 'm1')
  expect(conditionText(machine, 'InfrastructureReady')).toMatch(
    /^Unknown InvalidConditionReported: reason for the Ready condition/,
  )
  expect(machine.status?.failureDomain).toBe('a')
})

test('provider texts that are longer than the status allows are truncated, so that the status is written', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  const long = '😀'.repeat(40_000)
  await env.patch(DevMachine, 'm1', {
    status: {
      failureReason: 'Broken',
      failureMessage: long,
      conditions: [{ type: 'Ready', status: 'False', reason: 'Broken', message: long }],
    },
  })
  const machine = await env.get(Machine, 'm1')
  const texts = [machine.status?.deprecated?.v1beta1?.failureMessage, getCondition(machine, 'InfrastructureReady')?.message]
  expect(texts.map((text) => Array.from(text ?? '').length)).toEqual([10_240, 32_768])
  for (const text of texts) expect(text).toMatch(/😀\.\.\. \(truncated\)$/)
})

test('a Machine is Available only after it was Ready for minReadySeconds', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  // `provisionMachine` returns 30 seconds after the Machine has become Ready.
  await env.provisionMachine('m1', { spec: { minReadySeconds: 60 } })
  expect(conditionText(await env.get(Machine, 'm1'), 'Available')).toBe('False WaitingForMinReadySeconds')
  await env.advance(seconds(25))
  expect(conditionText(await env.get(Machine, 'm1'), 'Available')).toBe('False WaitingForMinReadySeconds')
  await env.advance(seconds(6))
  expect(conditionText(await env.get(Machine, 'm1'), 'Available')).toBe('True Available')
})

test('changes of the Node are reported at once', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  const conditions = [{ type: 'Ready', status: 'False', message: 'container runtime is down' }]
  await env.workload.patch(
    Node,
    { name: 'node-m1' },
    { type: 'merge', body: { status: { conditions } } },
    { subresource: 'status' },
  )
  await env.settle()
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeReady')).toBe(
    'False NodeNotReady: * Node.Ready: container runtime is down',
  )
  await env.workload.delete(Node, { name: 'node-m1' })
  await env.settle()
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeHealthy')).toBe(
    'False NodeDeleted: Node node-m1 has been deleted while the Machine still exists',
  )
})

test('a Machine keeps conditions that a control plane writes during a reconcile', async () => {
  let concurrentWrite: (() => Promise<unknown>) | undefined
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      const act = request.plural === 'machines' && request.subresource === 'status' ? concurrentWrite : undefined
      if (act) concurrentWrite = undefined
      await act?.()
      return transport.send(request, signal)
    })
  env = await coreEnv({ between })
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  concurrentWrite = async () => {
    const { status } = await env.get(Machine, 'cp')
    const conditions = [...status!.conditions!, aCondition('UpToDate', 'True', { reason: 'UpToDate' })]
    const key = { namespace: 'default', name: 'cp' }
    await env.client.patch(Machine, key, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' })
  }
  await env.patch(DevMachine, 'cp', { status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Rebooting' }] } })
  const machine = await env.get(Machine, 'cp')
  expect(conditionText(machine, 'InfrastructureReady')).toBe('False Rebooting')
  expect(conditionText(machine, 'UpToDate')).toBe('True UpToDate')
})

test('the condition NodeHealthy of a Machine becomes Unknown after its workload cluster was unreachable for five minutes, until the cluster is reachable again', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  env.reachable = false
  await env.advance(minutes(4))
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeHealthy')).toBe('True NodeHealthy')
  await env.advance(minutes(2))
  const machine = await env.get(Machine, 'm1')
  expect(conditionText(machine, 'NodeHealthy')).toMatch(/^Unknown ConnectionDown: Last successful probe at 2026-01-01T00:0/)
  expect(conditionText(machine, 'Available')).toBe('False NotReady')
  env.reachable = true
  await env.advance(seconds(15))
  expect(conditionText(await env.get(Machine, 'm1'), 'Available')).toBe('True Available')
})

test('the condition NodeHealthy of a Machine becomes Unknown five minutes after the kubeconfig was deleted, until the kubeconfig is created again', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  const { data } = await env.get(Secret, 'demo-kubeconfig')
  await env.client.delete(Secret, { namespace: 'default', name: 'demo-kubeconfig' })
  await env.advance(minutes(4))
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeHealthy')).toBe('True NodeHealthy')
  await env.advance(minutes(2))
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeHealthy')).toMatch(/^Unknown ConnectionDown: Last successful probe at/)
  expect(conditionText(await env.get(Cluster, 'demo'), 'RemoteConnectionProbe')).toMatch(
    /^False ProbeFailed: Remote connection probe failed/,
  )
  await env.create(Secret, 'demo-kubeconfig', { data: data! })
  await env.advance(seconds(15))
  expect(conditionText(await env.get(Machine, 'm1'), 'NodeHealthy')).toBe('True NodeHealthy')
})

test('a Machine whose readiness gate names Ready reports an internal error, becomes Running and can be deleted', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1', { spec: { readinessGates: [{ conditionType: 'Ready' }] } })
  const machine = await env.get(Machine, 'm1')
  expect([machine.status?.phase, conditionText(machine, 'Ready'), conditionText(machine, 'Available')]).toEqual([
    'Running',
    'Unknown InternalError: Please check controller logs for errors',
    'False NotReady',
  ])
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.advance(seconds(30))
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
})

test('a Machine with its own data Secret does not wait for its bootstrap config, which is being deleted', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  const name = 'm1'
  await env.create(DevConfig, name, { metadata: { name, finalizers: ['example.com/kept'] } })
  await env.client.delete(DevConfig, { namespace: 'default', name })
  const { spec } = aMachine({ metadata: { name } })
  await env.create(Machine, name, { spec: { ...spec, bootstrap: { ...spec.bootstrap, dataSecretName: 'mine' } } })
  await env.settle()
  const { status } = await env.get(Machine, name)
  expect([status?.initialization?.bootstrapDataSecretCreated, status?.phase]).toEqual([true, 'Provisioning'])
})

test('the observedGeneration of a Machine is not updated while its workload cluster is unreachable', async () => {
  env = await coreEnv()
  env.reachable = false
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.advance(minutes(2))
  expect((await env.get(Machine, 'm1')).status?.observedGeneration).toBeUndefined()
  env.reachable = true
  await env.advance(minutes(1))
  const { status, metadata } = await env.get(Machine, 'm1')
  expect(status?.observedGeneration).toBe(metadata.generation)
})

test('a Machine keeps its observedGeneration while its Node cannot be found', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  const { generation } = (await env.get(Machine, 'm1')).metadata
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///other' } })
  await env.settle()
  const { metadata, spec, status } = await env.get(Machine, 'm1')
  expect(spec.providerID).toBe('dev:///other')
  expect(metadata.generation).toBeGreaterThan(generation!)
  expect(status?.observedGeneration).toBe(generation)
})

test('a Machine reports that two Nodes have its providerID', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.workload.create(Node, { metadata: { name: 'other' }, spec: { providerID: 'dev:///m1' } })
  await env.settle()
  const { items } = await env.client.list(Event, { namespace: 'default' })
  const failed = items.filter(({ reason }) => reason === 'Failed to retrieve Node by ProviderID')
  expect(failed.map(({ message }) => message)).toEqual([
    'unexpectedly found more than one Node matching the providerID dev:///m1',
  ])
})

test('idle controllers write nothing', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.advance(seconds(30))
  const { revision } = env.store
  await env.advance(seconds(3600))
  expect(env.store.revision).toBe(revision)
})

test('a Machine being deleted waits for its hooks, then for its infrastructure, before its bootstrap config and Node are deleted', async () => {
  env = await coreEnv()
  const hook = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/x'
  const last = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/y'
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.patch(Machine, 'm1', { metadata: { annotations: { [hook]: 'me', [last]: 'me' } } })
  await env.patch(DevMachine, 'm1', { metadata: { finalizers: ['example.com/host'] } })
  const deleting = async () => conditionText(await env.get(Machine, 'm1'), 'Deleting')
  const node = () => env.workload.get(Node, { name: 'node-m1' })

  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  expect(await deleting()).toBe(`True WaitingForPreDrainHook: Waiting for pre-drain hooks to succeed (hooks: ${hook})`)
  expect((await node()).spec?.unschedulable).toBeUndefined()

  await env.patch(Machine, 'm1', { metadata: { annotations: { [hook]: null } } })
  expect(await deleting()).toBe(`True WaitingForPreTerminateHook: Waiting for pre-terminate hooks to succeed (hooks: ${last})`)
  expect((await node()).spec?.unschedulable).toBe(true)
  expect((await env.get(DevMachine, 'm1')).metadata.deletionTimestamp).toBeUndefined()

  await env.patch(Machine, 'm1', { metadata: { annotations: { [last]: null } } })
  expect(await deleting()).toBe('True WaitingForInfrastructureDeletion: Waiting for DevMachine to be deleted')
  expect(conditionText(await env.get(Machine, 'm1'), 'Ready')).toBe(
    'False NotReady: * Deleting: Machine deletion in progress, stage: WaitingForInfrastructureDeletion',
  )
  expect(await orAbsent(env.get(DevConfig, 'm1'))).toBeDefined()
  expect(await orAbsent(node())).toBeDefined()

  await env.patch(DevMachine, 'm1', { metadata: { finalizers: null } })
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
  expect(await orAbsent(env.get(DevConfig, 'm1'))).toBeUndefined()
  expect(await orAbsent(node())).toBeUndefined()
})

test('Pods are evicted before the infrastructure is deleted; static Pods stay', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.provisionMachine('m1')
  const aPod = (name: string, metadata: object = {}) =>
    env.workload.create(Pod, {
      metadata: { name, namespace: 'default', ...metadata },
      spec: { nodeName: 'node-m1', containers: [{ name: 'main', image: 'x' }] },
    })
  await aPod('web')
  await aPod('slow', { finalizers: ['example.com/slow'] })
  await aPod('static', { annotations: { 'kubernetes.io/config.mirror': 'x' } })

  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  const startedAt = (await env.get(Machine, 'm1')).status?.deletion?.nodeDrainStartTime
  expect(conditionText(await env.get(Machine, 'm1'), 'Deleting')).toBe(
    `True DrainingNode: Drain not completed yet (started at ${startedAt}):\n* Pods default/slow, default/web: deletionTimestamp set, but still not removed from the Node`,
  )
  expect(await orAbsent(env.workload.get(Pod, { namespace: 'default', name: 'web' }))).toBeUndefined()
  expect((await env.get(DevMachine, 'm1')).metadata.deletionTimestamp).toBeUndefined()

  await env.workload.patch(
    Pod,
    { namespace: 'default', name: 'slow' },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  )
  await env.advance(seconds(6))
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
  expect(await env.workload.get(Pod, { namespace: 'default', name: 'static' })).toBeDefined()
})

test('the Node of the last control plane Machine is not deleted', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.client.delete(Machine, { namespace: 'default', name: 'cp' })
  await env.settle()
  expect(await orAbsent(env.get(Machine, 'cp'))).toBeUndefined()
  expect(await env.workload.get(Node, { name: 'node-cp' })).toBeDefined()
})

// As upstream, only the boolean true means that the control plane is managed externally.
test.each([
  [true, 'is deleted'],
  ['false', 'is kept'],
])(
  'without control plane Machines, and with externalManagedControlPlane %j, the Node of a deleted Machine %s',
  async (value, result) => {
    env = await coreEnv()
    await env.provisionCluster()
    await env.patch(DevControlPlane, 'demo', { status: { externalManagedControlPlane: value } })
    await env.provisionMachine('m1')
    await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
    await env.settle()
    expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
    const node = await orAbsent(env.workload.get(Node, { name: 'node-m1' }))
    expect(node === undefined ? 'is deleted' : 'is kept').toBe(result)
  },
)

test('no Node is deleted when two Nodes have the providerID of a Machine without nodeRef', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  const providerID = 'dev:///both'
  for (const name of ['one', 'two']) await env.workload.create(Node, { metadata: { name }, spec: { providerID } })
  await env.create(Machine, 'm1', { spec: { ...aMachine({ metadata: { name: 'm1' } }).spec, providerID } })
  await env.settle()
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
  expect((await env.workload.list(Node)).items.map(({ metadata }) => metadata.name)).toEqual(['node-cp', 'one', 'two'])
})

test('a Machine being deleted reports an internal error when its control plane object cannot be read', async () => {
  let fails = false
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (fails && request.verb === 'get' && request.plural === 'devcontrolplanes') throw new StatusError('InternalError', 'no')
      return transport.send(request, signal)
    })
  env = await coreEnv({ between })
  await env.provisionCluster()
  await env.provisionMachine('m1')
  fails = true
  // The control plane is deleted, because only an object that is not in the cache is read from the API server.
  await env.client.delete(DevControlPlane, { namespace: 'default', name: 'demo' })
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  expect(conditionText(await env.get(Machine, 'm1'), 'Deleting')).toBe(
    'True InternalError: Please check controller logs for errors',
  )
})

test('the Node of a control plane Machine is deleted while another control plane Machine stays', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp-1', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.provisionMachine('cp-2', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.client.delete(Machine, { namespace: 'default', name: 'cp-1' })
  await env.settle()
  expect(await orAbsent(env.get(Machine, 'cp-1'))).toBeUndefined()
  expect(await orAbsent(env.workload.get(Node, { name: 'node-cp-1' }))).toBeUndefined()
  expect(await env.workload.get(Node, { name: 'node-cp-2' })).toBeDefined()
})

test('the deletion of a Node is retried even if nodeDeletionTimeoutSeconds has passed before the first attempt fails', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.provisionMachine('m1', { spec: { deletion: { nodeDeletionTimeoutSeconds: 1 } } })
  const hook = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/wait'
  await env.patch(Machine, 'm1', { metadata: { annotations: { [hook]: '' } } })
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.advance(seconds(2))
  env.reachable = false
  await env.patch(Machine, 'm1', { metadata: { annotations: { [hook]: null } } })
  env.reachable = true
  await env.advance(seconds(5))
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
  expect(await orAbsent(env.workload.get(Node, { name: 'node-m1' }))).toBeUndefined()
})

test.each([
  ['', 0],
  [', and the clock is set back', -hours(1)],
])('a Machine is deleted after the timeouts of its deletion when its workload cluster is unreachable%s', async (_, step) => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('cp', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await env.provisionMachine('m1', {
    spec: { deletion: { nodeDrainTimeoutSeconds: 30, nodeVolumeDetachTimeoutSeconds: 5, nodeDeletionTimeoutSeconds: 40 } },
  })
  env.reachable = false
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  expect(conditionText(await env.get(Machine, 'm1'), 'Deleting')).toBe(
    'True DrainingNode: Error draining Node, please check controller logs for errors',
  )
  env.clock.shift(step)
  await env.advance(seconds(120))
  expect(await orAbsent(env.get(Machine, 'm1'))).toBeUndefined()
})

test('Machines of a paused Cluster get only their finalizer and the Paused condition, until the Cluster is unpaused', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.patch(Cluster, 'demo', { spec: { paused: true } })
  await env.provisionMachine('m1')
  const machine = await env.get(Machine, 'm1')
  expect(machine.metadata.finalizers).toEqual(['machine.cluster.x-k8s.io'])
  expect(machine.status?.conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual(['Paused True'])

  await env.patch(Cluster, 'demo', { spec: { paused: false } })
  expect((await env.get(Machine, 'm1')).status?.phase).toBe('Running')
})

test('each of the first twelve writes of the controllers is retried if it fails', async () => {
  for (let failingWrite = 1; failingWrite <= 12; failingWrite++) {
    let writes = 0
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const isWrite = ['create', 'patch', 'delete'].includes(request.verb) && request.plural !== 'events'
        if (isWrite && ++writes === failingWrite) throw new StatusError('ServiceUnavailable', 'lost on the way')
        return transport.send(request, signal)
      })
    env = await coreEnv({ between })
    await env.provisionCluster()
    await env.provisionMachine('m1')
    await env.advance(seconds(60))
    const { status } = await env.get(Machine, 'm1').catch((err: unknown) => {
      throw new Error(`write ${failingWrite}`, { cause: isReason(err, 'NotFound') ? undefined : err })
    })
    expect(`${failingWrite}: ${status?.phase} ${conditionText({ status }, 'Available')}`).toBe(
      `${failingWrite}: Running True Available`,
    )
    await env.close()
  }
  // `afterEach` closes this environment.
  env = await coreEnv()
})
