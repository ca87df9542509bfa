/**
 * Random cases of a MachinePool without a topology. These rules avoid results that depend on timing in upstream:
 *
 * - The condition Ready of Nodes and `minReadySeconds` change only while the provider reports one more replica than machines, because
 *   upstream no longer counts ready Nodes once all replicas are ready.
 * - No change affects both the machines and the readiness that the provider reports, because the result would depend on which of the two
 *   writes of the provider upstream reads first.
 * - A change creates and deletes Nodes one at a time, because upstream records an event for each list of Nodes that it finds.
 */
import { Cluster, Machine, MachinePool } from '@capstan/api'
import { Node } from '@capstan/kube'
import { reportNodesReady } from '../cases/health-check.ts'
import { createInfraMachine, idOf, pool, registerNodes } from '../cases/machine-pool.ts'
import { createReadyCluster } from '../cases/machine.ts'
import { clusterName, named } from '../objects.ts'
import { everythingReady, hostedControlPlane } from '../providers.ts'
import { nodeInfoOf, reportNodeStatus } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { clusterPause } from './common-changes.ts'
import { annotation, type Choose, perform, type RandomChange, text } from './story.ts'

const name = 'p'
/**
 * Names of the infrastructure machine pools, which have the kind StubMachine as the infrastructure machines do, and of the bootstrap
 * configs. A new MachinePool refers to the objects with the first name.
 */
const providerObjectNames = [name, 'q']
const machineNames = ['a', 'b', 'c']

const spec = (fields: object) => (twin: Twin) => twin.patch(MachinePool, name, { spec: fields })
const template = (fields: object) => spec({ template: { spec: fields } })
const condition = (status: string, fields: object = {}) => ({
  conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z', ...fields }],
})

/** The infrastructure provider of the MachinePool, with the machines and the status that it reports. */
class Provider {
  #machines: readonly string[] = []
  #status: object = { ready: true, initialization: { provisioned: true } }

  get machines(): readonly string[] {
    return this.#machines
  }

  /** Reports these machines and their number. */
  reportMachines(twin: Twin, machines: readonly string[]): Promise<void> {
    this.#machines = machines
    return this.report(twin, { replicas: machines.length })
  }

  /** Reports fields of the status, in addition to those that were reported earlier. */
  async report(twin: Twin, status: object): Promise<void> {
    const report = {
      spec: { providerIDList: this.#machines.map(idOf) },
      status: (this.#status = { ...this.#status, ...status }),
    }
    await twin.setReports({
      machine: (object, objects) =>
        providerObjectNames.includes(object.metadata.name) ? report : everythingReady.machine(object, objects),
    })
  }
}

const poolChanges: readonly RandomChange[] = [
  (choose) => {
    const replicas = choose(0, 1, 2, 3, null)
    return [`replicas ${replicas}`, spec({ replicas })]
  },
  (choose) => {
    const version = choose('v1.35.1', 'v1.36.0', '1.36.1', 'newest', null)
    return [`version ${version}`, template({ version })]
  },
  (choose) => {
    const metadata = {
      labels: {
        zone: choose('a', 'b', null),
        'node.cluster.x-k8s.io/zone': choose('a', null),
        'not/a/label': choose('a', null, null),
      },
      annotations: { zone: choose('a', 'b', null) },
    }
    return [`metadata of the template ${text(metadata)}`, spec({ template: { metadata } })]
  },
  (choose) => {
    const fields = {
      failureDomains: choose(null, ['a'], ['b', 'a']),
      template: {
        spec: {
          deletion: choose(null, { nodeDrainTimeoutSeconds: choose(1, null), nodeDeletionTimeoutSeconds: choose(0, 5, null) }),
          readinessGates: choose(null, [{ conditionType: 'Extra' }]),
          taints: choose(null, null, [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }]),
        },
      },
    }
    return [`fields ${text(fields)}`, spec(fields)]
  },
  (choose) => {
    const fields = choose(
      { infrastructureRef: { name: choose(...providerObjectNames) } },
      { bootstrap: { configRef: { name: choose(...providerObjectNames) } } },
      { bootstrap: { configRef: null, dataSecretName: choose('mine', null) } },
    )
    const references = 'bootstrap' in fields && fields.bootstrap.configRef ? withConfig(fields.bootstrap.configRef.name) : fields
    return [`references ${text(references)}`, template(references)]
  },
  (choose) => {
    const annotations = {
      'cluster.x-k8s.io/replicas-managed-by': choose('provider', 'false', '', null),
      'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': choose('1', null),
      'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': choose('2', 'two', null),
    }
    return [`annotations ${text(annotations)}`, (twin) => twin.patch(MachinePool, name, { metadata: { annotations } })]
  },
  (choose) => {
    const labels = { 'cluster.x-k8s.io/cluster-name': choose('other', null), mine: choose('a', null) }
    return [`labels ${text(labels)}`, (twin) => twin.patch(MachinePool, name, { metadata: { labels, ownerReferences: null } })]
  },
  (choose) => {
    const value = choose('', null)
    return [
      `the pause annotation ${text(value)}`,
      (twin) => twin.patch(MachinePool, name, annotation('cluster.x-k8s.io/paused', value)),
    ]
  },
  clusterPause,
  (choose) => {
    const status = choose<{ readonly [field: string]: unknown }>(
      { initialization: { dataSecretCreated: true }, dataSecretName: choose('data', 'another') },
      { initialization: { dataSecretCreated: false } },
      condition('True'),
      condition('False', { severity: choose('Info', 'Error'), reason: 'Broken', message: 'm' }),
    )
    return [`bootstrap reports ${text(status)}`, (twin) => twin.setReports({ config: () => ({ status }) })]
  },
  (choose) => {
    const kind = choose(stub.config, stub.machine)
    const objectName = choose(...providerObjectNames)
    const action = choose('is created', 'is created', 'is deleted', 'is being deleted')
    return [
      `${kind.kind} ${objectName} ${action}`,
      async (twin) => {
        if (action === 'is being deleted')
          await twin.patch(kind, objectName, { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
        if (action !== 'is created') return twin.delete(kind, objectName)
        await twin.create(kind, named(objectName, { spec: {} }))
        // Upstream does not watch objects that it has not adopted.
        await twin.touch(MachinePool, name)
      },
    ]
  },
  (choose) => {
    const kind = choose(stub.config, stub.machine)
    const objectName = choose(...providerObjectNames, ...(kind === stub.machine ? machineNames : []))
    const finalizers = choose(['twin.capstan.dev/hold'], null)
    return [
      `${kind.kind} ${objectName} has finalizers ${text(finalizers)}`,
      (twin) => twin.patch(kind, objectName, { metadata: { finalizers } }),
    ]
  },
  (choose) => {
    const node = choose(...machineNames)
    return [`the Node ${node} is deleted`, (twin) => deleteNode(twin, node)]
  },
  (choose) => {
    const node = choose(...machineNames)
    return [
      `the Node ${node} registers again`,
      async (twin) => {
        await deleteNode(twin, node)
        await twin.settle(`the Node ${node} is deleted`)
        await registerNodes(twin, node)
      },
    ]
  },
  (choose) => {
    const node = choose(...machineNames)
    const version = choose('v1.35.0', 'v1.36.0')
    return [
      `the kubelet of ${node} has version ${version}`,
      (twin) =>
        twin.inWorkload(clusterName, (client) =>
          reportNodeStatus(client, node, { nodeInfo: nodeInfoOf(version) }).catch(() => undefined),
        ),
    ]
  },
]

const withConfig = (configName: string) => ({
  bootstrap: { configRef: { apiGroup: stub.group, kind: stub.config.kind, name: configName } },
})

const deleteNode = (twin: Twin, node: string) =>
  twin.inWorkload(clusterName, (client) => client.delete(Node, { name: node }).catch(() => undefined))

/** Returns changes of the infrastructure provider's reports. */
const providerChanges = (provider: Provider): readonly RandomChange[] => [
  (choose) => {
    const machines = choose<readonly string[]>([], ['a'], ['b'], ['a', 'b'], ['b', 'a'], ['a', 'b', 'c'], ['a', 'ghost'])
    return [`infrastructure reports the machines ${text(machines)}`, (twin) => provider.reportMachines(twin, machines)]
  },
  (choose) => {
    const surplus = choose(-1, 0, 1)
    return [
      `infrastructure reports the number of machines plus ${surplus} as its replicas`,
      (twin) => provider.report(twin, { replicas: Math.max(0, provider.machines.length + surplus) }),
    ]
  },
  (choose) => {
    const ready = choose(true, true, false, null)
    const status = { ready, initialization: { provisioned: ready } }
    return [`infrastructure reports ready ${ready}`, (twin) => provider.report(twin, status)]
  },
  (choose) => {
    const status = choose<object>(
      { conditions: null },
      condition('True'),
      condition('False', { severity: choose('Info', 'Warning', 'Error'), reason: 'Broken', message: 'no quota' }),
      condition('Unknown', { reason: 'Asking' }),
    )
    return [`infrastructure reports ${text(status)}`, (twin) => provider.report(twin, status)]
  },
  (choose) => {
    const infrastructureMachineKind = choose('StubMachine', null)
    return [
      `infrastructure reports the machine kind ${infrastructureMachineKind}`,
      (twin) => provider.report(twin, { infrastructureMachineKind }),
    ]
  },
  (choose) => {
    const ready = choose('True', 'False', 'Unknown')
    const minReadySeconds = choose(0, 3600, null)
    return [
      `every Node reports Ready ${ready}, minReadySeconds ${minReadySeconds}`,
      async (twin) => {
        await provider.report(twin, {
          ready: true,
          initialization: { provisioned: true },
          replicas: provider.machines.length + 1,
        })
        await twin.patch(Cluster, clusterName, { spec: { paused: null } })
        await twin.patch(MachinePool, name, annotation('cluster.x-k8s.io/paused', null))
        await twin.settle('a replica is missing')
        await twin.patch(MachinePool, name, { spec: { template: { spec: { minReadySeconds } } } })
        await reportNodesReady(twin, ready, Infinity)
      },
    ]
  },
]

const machineChanges: readonly RandomChange[] = [
  (choose) => {
    const machine = choose(...machineNames)
    return [`the Machine ${machine} is deleted`, (twin) => twin.delete(Machine, machine)]
  },
  (choose) => {
    const machine = choose(...machineNames)
    return [`the infrastructure machine ${machine} is created`, (twin) => createInfraMachine(twin, machine)]
  },
  (choose) => {
    const machine = choose(...machineNames)
    const metadata = {
      labels: { zone: choose('mine', null), mine: choose('mine', null), 'cluster.x-k8s.io/pool-name': choose(name, name, null) },
      annotations: { zone: choose('mine', null) },
    }
    return [
      `metadata of the Machine ${machine} ${text(metadata)}`,
      async (twin) => {
        await twin.patch(Machine, machine, { metadata })
        await twin.touch(MachinePool, name)
      },
    ]
  },
]

/**
 * Returns a function that makes random cases. Each case calls `prepare`, creates a MachinePool whose provider reports two machines, performs
 * random changes, and deletes the MachinePool.
 */
const randomPool =
  (changes: readonly RandomChange[], prepare: (twin: Twin, provider: Provider) => Promise<void>) =>
  (choose: Choose): Case =>
  async (twin) => {
    const provider = new Provider()
    await twin.setReports({ controlPlane: hostedControlPlane })
    await provider.report(twin, { replicas: 0 })
    await createReadyCluster(twin)
    for (const objectName of providerObjectNames)
      for (const kind of [stub.config, stub.machine]) await twin.create(kind, named(objectName, { spec: {} }))
    await prepare(twin, provider)
    await twin.create(MachinePool, pool({ replicas: choose(1, 2, 3) }))
    await twin.settle('the MachinePool is created')
    await provider.reportMachines(twin, ['a', 'b'])
    await twin.settle('infrastructure reports two machines')
    // A change that is listed twice is chosen more often.
    await perform(twin, choose, [...changes, ...providerChanges(provider), ...providerChanges(provider)])
    await twin.delete(MachinePool, name)
    await twin.settle('the MachinePool is being deleted')
    for (const kind of [stub.config, stub.machine])
      for (const objectName of providerObjectNames) await twin.patch(kind, objectName, { metadata: { finalizers: null } })
    await twin.settle('the MachinePool is deleted')
  }

/** Makes random cases of a MachinePool without MachinePool Machines. */
export const randomMachinePool = randomPool(poolChanges, (twin) => registerNodes(twin, 'a', 'b'))

/**
 * Makes random cases of a MachinePool with MachinePool Machines: both machines that the provider reports at first have an infrastructure
 * machine, for which core creates a Machine.
 */
export const randomPoolMachines = randomPool([...poolChanges, ...machineChanges, ...machineChanges], async (twin, provider) => {
  await provider.report(twin, { infrastructureMachineKind: 'StubMachine' })
  for (const machine of ['a', 'b']) await createInfraMachine(twin, machine)
})
