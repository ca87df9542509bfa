import { Cluster, Machine, MachineSet } from '@capstan/api'
import { keyOf, type Kind, Node } from '@capstan/kube'
import { createOrphan, createWorkerTemplates } from '../cases/machine-set.ts'
import { createMachine, createReadyCluster } from '../cases/machine.ts'
import { clusterName, longAgo, machine, machineSet } from '../objects.ts'
import { everythingReady, hostedControlPlane } from '../providers.ts'
import { oldStub, stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { clusterPause, notReady, reportOf, withSpec, withStatus } from './common-changes.ts'
import { type Choose, patchAll, perform, type RandomChange, text } from './story.ts'

/** Names of the Machines that the case creates before the random changes, without a MachineSet. */
const standAlone = ['a', 'b'] as const

/** Returns a function that patches, chosen at random, one of the stand-alone Machines, all Machines, or the template of the MachineSet. */
const patchSome = (choose: Choose, body: object): ((twin: Twin) => Promise<void>) =>
  choose(
    (twin: Twin) => twin.patch(Machine, 'a', body),
    (twin: Twin) => twin.patch(Machine, 'b', body),
    (twin: Twin) => patchAll(twin, Machine, body),
    (twin: Twin) => twin.patch(MachineSet, 'ms', { spec: { template: body } }),
  )

const randomTaint = (choose: Choose, key: string) => ({
  key,
  effect: choose('NoSchedule', 'NoExecute', 'PreferNoSchedule'),
  propagation: choose('Always', 'OnInitialization'),
  ...choose({}, { value: 'v' }),
})

/** Behaviours of ready providers that report the status fields of both contract versions. */
const ofBothContracts = {
  machine: withStatus(everythingReady.machine, { ready: true }),
  config: withStatus(everythingReady.config, { ready: true }),
}

/** Returns a name and a random behaviour of infrastructure machines: ready, ready with some fields added, changed or removed, or no report. */
const infrastructureReport = (choose: Choose) => {
  const ready = ofBothContracts.machine
  return choose(
    reportOf('ready', ready),
    reportOf('nothing', undefined),
    reportOf('not provisioned', withStatus(ready, { ready: false, initialization: { provisioned: false } })),
    reportOf('no initialization', withStatus(ready, { ready: null, initialization: null })),
    reportOf('no providerID', withSpec(ready, { providerID: null })),
    reportOf('a condition', withStatus(ready, oddCondition(choose))),
    reportOf('no conditions', withStatus(ready, { conditions: null })),
    reportOf('addresses', withStatus(ready, { addresses: [{ type: 'InternalIP', address: choose('10.0.0.1', '10.0.0.2') }] })),
    reportOf('no addresses', withStatus(ready, { addresses: choose([], null) })),
    reportOf('failureDomain', withStatus(ready, { failureDomain: choose('a', 'b', '', null) })),
    reportOf('failureDomain in spec', withSpec(ready, { failureDomain: choose('a', 'b', '', null) })),
    reportOf('interruptible', withStatus(ready, { interruptible: choose(true, false) })),
    reportOf('a failure', withStatus(ready, { failureReason: choose('Bad', null), failureMessage: 'no quota' })),
  )
}

const infrastructureChange: RandomChange = (choose) => {
  const [name, report] = infrastructureReport(choose)
  return [`infrastructure reports ${name}`, (twin) => twin.setReports({ machine: report })]
}

/** Returns a name and a random behaviour of bootstrap configs, like `infrastructureReport`. */
const bootstrapReport = (choose: Choose) => {
  const ready = ofBothContracts.config
  return choose(
    reportOf('ready', ready),
    reportOf('nothing', undefined),
    reportOf('no Secret', withStatus(ready, { dataSecretName: null })),
    reportOf('another Secret', withStatus(ready, { dataSecretName: 'other' })),
    reportOf('not created', withStatus(ready, { ready: false, initialization: { dataSecretCreated: false } })),
    reportOf('a condition', withStatus(ready, oddCondition(choose))),
    reportOf('a failure', withStatus(ready, { failureReason: choose('Bad', null), failureMessage: 'no quota' })),
  )
}

const oddCondition = (choose: Choose) => ({
  conditions: [
    {
      type: 'Ready',
      status: choose('True', 'False', 'Unknown', 'Odd'),
      lastTransitionTime: longAgo,
      ...choose({}, { reason: 'Twin' }),
      ...choose({}, { message: 'm' }, { message: '* one\n* two' }),
      ...choose({}, { severity: 'Error' }),
    },
  ],
})

/**
 * Random changes for the cases of `randomMachines`. Changes of the kubeconfig Secret are left out: Capstan replaces or closes the connection
 * to the workload cluster at once, and upstream only when the connection fails. Changes of the status by a user are left out, because they
 * do not cause a reconcile in Capstan.
 */
const machineChanges: readonly RandomChange[] = [
  (choose) => {
    const labels = {
      'node-role.kubernetes.io/worker': choose('', null),
      'node.cluster.x-k8s.io/zone': choose('a', 'b', null),
      'sub.node-restriction.kubernetes.io/zone': choose('a', null),
      mine: choose('a', null),
    }
    const annotations = { 'node.cluster.x-k8s.io/note': choose('a', 'b', null), mine: choose('a', null) }
    const metadata = choose<object>({ labels }, { annotations }, { labels, annotations })
    return [`metadata ${text(metadata)}`, patchSome(choose, { metadata })]
  },
  (choose) => {
    const taints = choose(null, [randomTaint(choose, 'k')], [randomTaint(choose, 'k'), randomTaint(choose, 'l')])
    return [`taints ${text(taints)}`, patchSome(choose, { spec: { taints } })]
  },
  // Listed twice, so that it is chosen more often.
  infrastructureChange,
  infrastructureChange,
  (choose) => {
    const [name, report] = bootstrapReport(choose)
    return [`bootstrap reports ${name}`, (twin) => twin.setReports({ config: report })]
  },
  (choose) => {
    const [name, report] = choose(
      reportOf('ready', everythingReady.cluster),
      reportOf('nothing', undefined),
      reportOf('not provisioned', withStatus(everythingReady.cluster, { initialization: { provisioned: false } })),
      reportOf('failure domains', withStatus(everythingReady.cluster, { failureDomains: [{ name: 'a', controlPlane: true }] })),
      reportOf('a condition', withStatus(everythingReady.cluster, notReady)),
      reportOf(
        'another endpoint',
        withSpec(everythingReady.cluster, { controlPlaneEndpoint: { host: choose('127.0.0.2', ''), port: 6443 } }),
      ),
    )
    return [`infrastructure of the Cluster reports ${name}`, (twin) => twin.setReports({ cluster: report })]
  },
  (choose) => {
    const spec = choose<object>(
      { deletion: { nodeDrainTimeoutSeconds: choose(0, 1, null), nodeDeletionTimeoutSeconds: choose(0, 1, null) } },
      { readinessGates: choose(null, [{ conditionType: 'Extra' }], [{ conditionType: 'Extra', polarity: 'Negative' }]) },
      { minReadySeconds: choose(0, 3600, null) },
      { version: choose('v1.35.1', 'v1.36.0', null) },
      { failureDomain: choose('a', 'b', null) },
      { bootstrap: { dataSecretName: choose('mine', null) } },
    )
    return [`spec ${text(spec)}`, patchSome(choose, { spec })]
  },
  (choose) => {
    const kind = choose<Kind>(Machine, MachineSet, stub.machine, stub.config, stub.machineTemplate, stub.cluster)
    const metadata = choose<object>({ ownerReferences: null }, { ownerReferences: null, labels: null })
    // Machines keep their labels: without them, a Machine would no longer match the selector of its MachineSet.
    const removed = kind === Machine ? { ownerReferences: null } : metadata
    return [`every ${kind.kind} loses ${text(removed)}`, (twin) => patchAll(twin, kind, { metadata: removed })]
  },
  (choose) => {
    const annotations = {
      'pre-drain.delete.hook.machine.cluster.x-k8s.io/x': choose('', null),
      'pre-terminate.delete.hook.machine.cluster.x-k8s.io/x': choose('', null),
      'machine.cluster.x-k8s.io/exclude-node-draining': choose('', null, null),
    }
    return [`deletion annotations ${text(annotations)}`, patchSome(choose, { metadata: { annotations } })]
  },
  (choose) => {
    const name = choose(...standAlone)
    return [`the Machine ${name} is deleted`, (twin) => twin.delete(Machine, name)]
  },
  (choose) => {
    const name = choose(...standAlone)
    return [`the Machine ${name} is created with provider objects`, (twin) => createOrphan(twin, name, { lone: name })]
  },
  (choose) => {
    const name = choose('c', 'd')
    const spec = choose<Parameters<typeof machine>[1]>(
      {},
      { bootstrap: { dataSecretName: 'mine' } },
      { infrastructureRef: { apiGroup: 'nowhere.capstan.dev', kind: 'Nothing', name: 'x' } },
      { infrastructureRef: { apiGroup: stub.group, kind: 'StubMachine', name: 'a' } },
      { bootstrap: { configRef: { apiGroup: stub.group, kind: 'StubConfig', name: 'a' } } },
    )
    return [
      `the Machine ${name} is created without provider objects and with ${text(spec)}`,
      (twin) => twin.create(Machine, machine(name, spec)),
    ]
  },
  () => ['a Machine with providers of contract v1beta1 is created', (twin) => createMachine(twin, 'old', {}, {}, oldStub)],
  (choose) => {
    const spec = choose<object>(
      { infrastructureRef: { name: choose('a', 'b', 'missing') } },
      { bootstrap: { configRef: { name: choose('a', 'b', 'missing') } } },
    )
    return [`the Machine a refers to ${text(spec)}`, (twin) => twin.patch(Machine, 'a', { spec })]
  },
  (choose) => {
    const body = {
      metadata: { labels: { 'node.cluster.x-k8s.io/zone': 'user', own: 'x' }, annotations: { own: 'x' } },
      spec: { taints: choose(null, [{ key: 'k', effect: 'NoSchedule', value: 'user' }], [{ key: 'mine', effect: 'NoExecute' }]) },
    }
    return [
      `another client changes every Node ${text(body.spec)}`,
      (twin) =>
        twin.inWorkload(clusterName, async (client) => {
          for (const node of (await client.list(Node)).items)
            await client.patch(Node, keyOf(node), { type: 'merge', body }, { fieldManager: 'kubelet' })
        }),
    ]
  },
  (choose) => {
    const name = choose(...standAlone)
    return [
      `the Node ${name} is deleted`,
      (twin) => twin.inWorkload(clusterName, (client) => client.delete(Node, { name }).catch(() => {})),
    ]
  },
  (choose) => {
    const name = choose(...standAlone)
    return [
      `another Node has the providerID of ${name}`,
      (twin) =>
        twin.inWorkload(clusterName, (client) =>
          client
            .create(Node, { metadata: { name: `other-${name}` }, spec: { providerID: `twin://${name}` } } as never)
            .catch(() => {}),
        ),
    ]
  },
  () => [
    'a user removes the finalizers of the Machine b',
    (twin) => twin.patch(Machine, 'b', { metadata: { finalizers: null } }),
  ],
  (choose) => {
    const value = choose('2030-01-01T00:00:00Z', 'soon', null)
    const kind = choose<Kind>(Machine, stub.config)
    return [
      `${kind.kind} b has the certificate expiry ${value}`,
      (twin) => twin.patch(kind, 'b', { metadata: { annotations: { 'machine.cluster.x-k8s.io/certificates-expiry': value } } }),
    ]
  },
  (choose) => {
    const [status, spec] = [choose('v1.34.0', 'v1.35.0', 'v1.36.0'), choose('v1.35.0', 'v1.36.0')]
    const report = withStatus(withSpec(hostedControlPlane, { version: spec }), { version: status })
    return [
      `the control plane reports version ${status}, and its spec has ${spec}`,
      (twin) => twin.setReports({ controlPlane: report }),
    ]
  },
  (choose) => {
    const kind = choose<Kind>(stub.machineTemplate, stub.configTemplate)
    return [`the ${kind.kind} is deleted`, (twin) => twin.delete(kind, 'worker')]
  },
  (choose) => {
    const name = choose(...standAlone)
    const setName = `adopts-${name}`
    return [
      `a MachineSet adopts ${name}`,
      (twin) =>
        twin.create(MachineSet, machineSet(setName, { selector: { matchLabels: { lone: name } }, template: templateOf(name) })),
    ]
  },
  (choose) => {
    const name = choose('ms', 'adopts-a', 'adopts-b')
    return [`the MachineSet ${name} is deleted`, (twin) => twin.delete(MachineSet, name)]
  },
  (choose) => {
    const kind = choose<Kind>(stub.machine, stub.config)
    const name = choose(...standAlone)
    return [`${kind.kind} ${name} is deleted`, (twin) => twin.delete(kind, name)]
  },
  (choose) => {
    const finalizers = choose(['twin.capstan.dev/hold'], null)
    const kind = choose<Kind>(stub.machine, stub.config)
    return [`every ${kind.kind} has finalizers ${text(finalizers)}`, (twin) => patchAll(twin, kind, { metadata: { finalizers } })]
  },
  clusterPause,
  (choose) => {
    const value = choose('', null)
    return [
      `every Machine has the pause annotation ${text(value)}`,
      // MachineSets are not paused, because the result would depend on timing.
      (twin) => patchAll(twin, Machine, { metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } }),
    ]
  },
]

const clusterDeletion: RandomChange = () => ['the Cluster is deleted', (twin) => twin.delete(Cluster, clusterName)]

const templateOf = (name: string) => {
  const { template } = machineSet('ms').spec
  return { ...template, metadata: { labels: { lone: name } } }
}

/**
 * Returns a case that creates two stand-alone Machines, and a MachineSet without a MachineDeployment, and performs random changes. If one of
 * the Machines is a control plane Machine, the case does not delete the Cluster: the garbage collector deletes this Machine only after the
 * Cluster, and it depends on timing whether the controller of Machines, upstream's or Capstan's, then still finds the Cluster.
 */
export const randomMachines =
  (choose: Choose): Case =>
  async (twin) => {
    const hasControlPlaneMachine = choose(true, false, false)
    if (choose(true, false)) await twin.setReports({ controlPlane: hostedControlPlane })
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    const [machineName, machineReport] = choose(reportOf('ready', ofBothContracts.machine), infrastructureReport(choose))
    const [configName, configReport] = choose(reportOf('ready', ofBothContracts.config), reportOf('nothing', undefined))
    await twin.setReports({ machine: machineReport, config: configReport })
    await twin.create(MachineSet, machineSet('ms', { replicas: choose(1, 2) }))
    await createOrphan(twin, 'a', { lone: 'a' })
    await createOrphan(twin, 'b', { lone: 'b', ...(hasControlPlaneMachine ? { 'cluster.x-k8s.io/control-plane': '' } : {}) })
    await twin.settle(`Machines exist; infrastructure reports ${machineName}, bootstrap ${configName}`)
    await perform(twin, choose, hasControlPlaneMachine ? machineChanges : [...machineChanges, clusterDeletion])
    if (hasControlPlaneMachine) return
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is being deleted')
  }
