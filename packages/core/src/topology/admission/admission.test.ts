import type { Cluster, ClusterClass } from '@capstan/api'
import { type AdmissionRequest, type Kind, type KubeObject, notFound, type Reader, seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { clusterTopologyAdmission } from './admission.ts'

const infra = (kind: string) => ({ templateRef: { apiVersion: 'infra.example.com/v1beta1', kind, name: 'quick' } })

function aClass(
  name: string,
  { spec = {}, ready = true, worker = {} }: { spec?: object; ready?: boolean; worker?: object } = {},
): ClusterClass {
  const conditions = ready ? [{ type: 'VariablesReady', status: 'True' }] : []
  const machineDeployments = [
    { class: 'default', bootstrap: infra('BootTemplate'), infrastructure: infra('DevMachineTemplate'), ...worker },
  ]
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'ClusterClass',
    metadata: { name, namespace: 'default', generation: 1 },
    spec: {
      infrastructure: infra('DevClusterTemplate'),
      controlPlane: infra('DevControlPlaneTemplate'),
      workers: { machineDeployments },
      ...spec,
    },
    status: { observedGeneration: 1, conditions },
  } as unknown as ClusterClass
}

const aCluster = (topology: object | undefined = {}, metadata: object = {}): Cluster =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default', ...metadata },
    spec: {
      controlPlaneRef: { apiGroup: 'cp.example.com', kind: 'DevControlPlane', name: 'cp' },
      ...(topology && { topology: { classRef: { name: 'quick' }, version: 'v1.34.0', ...topology } }),
    },
  }) as unknown as Cluster
const withoutTopology = (): Cluster => {
  const { spec, ...cluster } = aCluster()
  const { topology: _, ...specFields } = spec
  return { ...cluster, spec: specFields }
}

const CRD = {
  kind: 'CustomResourceDefinition',
  metadata: { name: 'devcontrolplanes.cp.example.com', labels: { 'cluster.x-k8s.io/v1beta2': 'v1' } },
}
const aControlPlane = (version: string, status: object = { version }) => ({
  kind: 'DevControlPlane',
  metadata: { name: 'cp' },
  spec: { version },
  status,
})
const aMachineDeployment = (name: string, version: string) => ({
  kind: 'MachineDeployment',
  metadata: { name, labels: { 'topology.cluster.x-k8s.io/deployment-name': name } },
  spec: { selector: { matchLabels: { name } }, template: { spec: { version } } },
})
const aMachine = (version: string, kubeletVersion?: string) => ({
  kind: 'Machine',
  metadata: { name: 'm' },
  spec: version === '' ? {} : { version },
  status: kubeletVersion === undefined ? {} : { nodeInfo: { kubeletVersion } },
})

function aReader(objects: readonly object[]): Reader {
  const storedObjects = objects as KubeObject[]
  return {
    get: async (kind: Kind, { name }: { name: string }) => {
      const object = storedObjects.find((stored) => stored.kind === kind.kind && stored.metadata.name === name)
      if (!object) throw notFound(kind, name)
      return object as never
    },
    list: async (kind: Kind) => ({ items: storedObjects.filter((stored) => stored.kind === kind.kind) }) as never,
  } as Reader
}

async function admit(cluster: Cluster, objects: readonly object[], oldObject?: Cluster) {
  const warnings: string[] = []
  const operation = oldObject ? 'UPDATE' : 'CREATE'
  const request = { operation, oldObject, dryRun: false, reader: aReader(objects), warn: (text: string) => warnings.push(text) }
  const errors = await clusterTopologyAdmission().validate!(cluster, request as unknown as AdmissionRequest<KubeObject>)
  return [...warnings.map((text) => `warning: ${text}`), ...errors.map(({ field, text }) => `${field}: ${text}`)]
}

describe('with a clock, admission', () => {
  /** Starts the validation of a Cluster whose class is not stored yet. */
  function startValidation() {
    const clock = new VirtualClock()
    const objects: object[] = []
    const warnings: string[] = []
    let isDone = false
    const failures: Error[] = []
    const stored = aReader(objects)
    const reader = {
      ...stored,
      get: (async (...args: Parameters<typeof stored.get>) => {
        if (failures.length > 0) throw failures.pop()!
        return stored.get(...args)
      }) as typeof stored.get,
    }
    const request = { operation: 'CREATE', dryRun: false, reader, warn: (text: string) => warnings.push(text) }
    const validation = clusterTopologyAdmission(clock).validate!(aCluster(), request as unknown as AdmissionRequest<KubeObject>)
    void Promise.resolve(validation).then(() => (isDone = true))
    const advance = async (ms: number) => {
      const end = clock.now() + ms
      do await new Promise((resolve) => setImmediate(resolve))
      while (clock.step(end))
    }
    return { objects, failures, warnings, advance, isDone: () => isDone }
  }

  test('waits until a new class is reconciled', async () => {
    const { objects, warnings, advance, isDone } = startValidation()
    await advance(seconds(1))
    objects.push(aClass('quick', { ready: false }))
    await advance(500)
    expect(isDone()).toBe(false)
    objects.splice(0, 1, aClass('quick'))
    await advance(200)
    expect([isDone(), warnings]).toEqual([true, []])
  })

  test('reads the class again after a read failed', async () => {
    const { objects, failures, warnings, advance, isDone } = startValidation()
    objects.push(aClass('quick'))
    failures.push(new Error('the server is starting'))
    await advance(200)
    expect([isDone(), warnings]).toEqual([true, []])
  })

  test('does not wait longer than two seconds', async () => {
    const { warnings, advance, isDone } = startValidation()
    await advance(1900)
    expect(isDone()).toBe(false)
    await advance(200)
    expect(isDone()).toBe(true)
    expect(warnings).toEqual([expect.stringContaining('this ClusterClass does not exist')])
  })
})

describe('a Cluster with a class', () => {
  test.each([
    [
      'that does not exist yet leads to a warning',
      [],
      'warning: Cluster refers to ClusterClass default/quick, but this ClusterClass does not exist. Cluster topology has not been fully validated. The ClusterClass must be created to reconcile the Cluster',
    ],
    [
      'that is not ready yet leads to a warning',
      [aClass('quick', { ready: false })],
      "warning: Cluster refers to ClusterClass default/quick, but this ClusterClass hasn't been successfully reconciled. Cluster topology has not been fully validated. Please take a look at the ClusterClass status",
    ],
    [
      'that allows only other versions is rejected',
      [aClass('quick', { spec: { kubernetesVersions: ['v1.33.0'] } })],
      'spec.topology.version: Invalid value: "v1.34.0": version must match one of the versions defined in the ClusterClass',
    ],
  ])('%s', async (_, objects, expected) => {
    expect(await admit(aCluster(), objects)).toEqual([expected])
  })

  test('cannot set replicas of workers that the autoscaler scales', async () => {
    const annotations = { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': '1' }
    const workers = { machineDeployments: [{ class: 'default', name: 'md-0', replicas: 2 }] }
    expect(await admit(aCluster({ workers }), [aClass('quick', { worker: { metadata: { annotations } } })])).toEqual([
      'spec.topology.workers.machineDeployments[md-0].replicas: Invalid value: 2: cannot be set for cluster "demo" in namespace "default" if the source class "default" of this MachineDeploymentTopology has autoscaler annotations',
    ])
  })

  // The error texts are upstream's: core/webhooks/admission, v1.14.
  describe('health checks', () => {
    const workers = (healthCheck: object) => ({
      workers: { machineDeployments: [{ class: 'default', name: 'md-0', healthCheck }] },
    })
    const checks = { nodeStartupTimeoutSeconds: 60 }
    const inTopology = 'spec.topology.workers.machineDeployments[md-0].healthCheck'
    const noDefinition =
      'Forbidden: cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass'
    test.each<[string, object, object, string[]]>([
      ['defined by the class are accepted', {}, { worker: { healthCheck: { checks } } }, []],
      ['defined by the Cluster are accepted', workers({ checks }), {}, []],
      ['that are disabled are accepted', workers({ enabled: false }), {}, []],
      [
        'enabled, and defined by the class, are accepted',
        workers({ enabled: true }),
        { worker: { healthCheck: { checks } } },
        [],
      ],
      ['enabled, but not defined, are rejected', workers({ enabled: true }), {}, [`${inTopology}.enable: ${noDefinition}`]],
      [
        'of a control plane, enabled, but not defined, are rejected',
        { controlPlane: { healthCheck: { enabled: true } } },
        {},
        [`spec.topology.controlPlane.healthCheck.enable: ${noDefinition}`],
      ],
      [
        'of a control plane are rejected if the class has no machineInfrastructure',
        { controlPlane: { healthCheck: { checks } } },
        {},
        [
          'spec.topology.controlPlane.healthCheck: Forbidden: can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass',
        ],
      ],
      [
        'with a startup timeout that is too short are rejected',
        workers({ checks: { nodeStartupTimeoutSeconds: 5 } }),
        {},
        [`${inTopology}.checks.nodeStartupTimeoutSeconds: Invalid value: 5: must be at least 30s`],
      ],
      [
        'with a limit that is neither number nor percentage are rejected',
        workers({ remediation: { maxInFlight: 'some' } }),
        {},
        [
          `${inTopology}.remediation.maxInFlight: Invalid value: "some": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage`,
        ],
      ],
    ])('%s', async (_, topology, classOptions, expected) => {
      expect(await admit(aCluster(topology), [aClass('quick', classOptions)])).toEqual(expected)
    })
  })
})

describe('a change of class', () => {
  test.each([
    [
      'is rejected when it adds a class to a Cluster without one',
      withoutTopology(),
      {},
      ['spec.topology.class: Forbidden: classRef cannot be set on an existing Cluster'],
    ],
    [
      'is accepted when it adds a class to a Cluster without one, with the check disabled',
      withoutTopology(),
      { annotations: { 'unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check': '' } },
      [],
    ],
    ['is accepted from a class with the same kinds', aCluster({ classRef: { name: 'same' } }), {}, []],
    [
      'is rejected from a class with other kinds',
      aCluster({ classRef: { name: 'other' } }),
      {},
      [
        'spec.infrastructure.templateRef.kind: Forbidden: kind cannot be changed from "OtherClusterTemplate" to "DevClusterTemplate" to prevent incompatible changes in the Clusters',
      ],
    ],
    [
      'is rejected from a class that does not exist',
      aCluster({ classRef: { name: 'gone' } }),
      {},
      [
        'spec.topology.class: Forbidden: valid ClusterClass with name "default/gone" could not be retrieved, change from class "default/gone" to class "default/quick" cannot be validated. Error: ClusterClass.cluster.x-k8s.io "gone" not found',
      ],
    ],
  ])('%s', async (_, old, metadata, expected) => {
    const other = aClass('other', { spec: { infrastructure: infra('OtherClusterTemplate') } })
    expect(await admit(aCluster({}, metadata), [aClass('quick'), aClass('same'), other], old)).toEqual(expected)
  })
})

describe('a change of version', () => {
  const settled = [CRD, aControlPlane('v1.34.0'), aMachineDeployment('md-a', 'v1.34.0')]
  const rejected = (problem: string) => [`spec.topology.version: Invalid value: "v1.35.0": ${problem}`]

  test.each([
    ['is accepted when control plane and workers have the previous version', settled, {}, []],
    [
      'is rejected while the control plane does not have the previous version',
      [CRD, aControlPlane('v1.33.0')],
      {},
      rejected(
        'version cannot be changed: Cluster.spec.topology.version 1.34.0 was not propagated to control plane yet (control plane version 1.33.0)',
      ),
    ],
    [
      'is rejected while the control plane is provisioning',
      [CRD, aControlPlane('v1.34.0', {})],
      {},
      rejected('version cannot be changed: control plane is currently provisioning'),
    ],
    [
      'is rejected while the control plane upgrades',
      [CRD, aControlPlane('v1.34.0', { version: 'v1.33.0' })],
      {},
      rejected('version cannot be changed: control plane is still completing a previous upgrade'),
    ],
    [
      'is rejected while workers upgrade',
      [...settled, aMachineDeployment('md-b', 'v1.33.0')],
      {},
      rejected('version cannot be changed: there are still MachineDeployments completing a previous upgrade: [md-b]'),
    ],
    ['is accepted when a Node does not report a version yet', [...settled, aMachine('v1.34.0', '')], {}, []],
    [
      'is rejected while a Machine of the workers has an older version',
      [...settled, aMachine('v1.33.0', 'v1.34.0')],
      {},
      rejected('version cannot be changed: there are still MachineDeployments completing a previous upgrade: [md-a]'),
    ],
    [
      'is rejected while a Node of the workers has an older version',
      [...settled, aMachine('v1.34.0', 'v1.33.0')],
      {},
      rejected('version cannot be changed: there are still MachineDeployments completing a previous upgrade: [md-a]'),
    ],
    [
      'is rejected while a Machine of the workers has no version',
      [...settled, aMachine('', 'v1.34.0')],
      {},
      rejected('version cannot be changed: failed to check if MachineDeployment md-a is upgrading: Machine m has no version'),
    ],
    [
      'is rejected while a MachineDeployment without the label deployment-name upgrades',
      [CRD, aControlPlane('v1.34.0'), { ...aMachineDeployment('md-b', 'v1.33.0'), metadata: { name: 'md-b' } }],
      {},
      rejected('version cannot be changed: there are still MachineDeployments completing a previous upgrade: [md-b]'),
    ],
    [
      'is rejected while the control plane does not exist and workers upgrade',
      [CRD, aMachineDeployment('md-a', 'v1.33.0')],
      {},
      rejected(
        'version cannot be changed: [failed to check if control plane is upgrading: failed to get control plane object: failed to retrieve DevControlPlane default/cp: DevControlPlane.cp.example.com "cp" not found, there are still MachineDeployments completing a previous upgrade: [md-a]]',
      ),
    ],
    [
      'is rejected while the CustomResourceDefinition of the control plane does not exist',
      [],
      {},
      rejected(
        'version cannot be changed: failed to check if control plane is upgrading: failed to get control plane object: failed to get object from ref: failed to get CustomResourceDefinition metadata: customresourcedefinitions.apiextensions.k8s.io "devcontrolplanes.cp.example.com" not found',
      ),
    ],
    [
      'is rejected while the version of the control plane cannot be parsed',
      [CRD, aControlPlane('latest')],
      {},
      rejected(
        'version cannot be changed: failed to check if control plane is upgrading: failed to parse control plane version latest: Invalid character(s) found in major number "0latest"',
      ),
    ],
    [
      'is rejected while the control plane is provisioning and workers upgrade',
      [CRD, aControlPlane('v1.34.0', {}), aMachineDeployment('md-a', 'v1.33.0')],
      {},
      rejected(
        'version cannot be changed: [control plane is currently provisioning, there are still MachineDeployments completing a previous upgrade: [md-a]]',
      ),
    ],
    [
      'is rejected while AfterClusterUpgrade is pending',
      settled,
      { 'runtime.cluster.x-k8s.io/pending-hooks': 'AfterClusterUpgrade' },
      rejected('version cannot be changed when the "AfterClusterUpgrade" hook is still blocking'),
    ],
    [
      'is accepted with a warning when an annotation disables the check',
      [CRD, aControlPlane('v1.34.0', {})],
      { 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check': '' },
      [
        'warning: Skipping version validation for Cluster because annotation "unsafe.topology.cluster.x-k8s.io/disable-update-version-check" is set.',
      ],
    ],
  ])('%s', async (_, objects, annotations, expected) => {
    const [old, next] = [aCluster({}, { annotations }), aCluster({ version: 'v1.35.0' }, { annotations })]
    expect(await admit(next, [aClass('quick'), ...objects], old)).toEqual(expected)
  })

  test('is accepted when the update also removes the pending hook that blocks it', async () => {
    const old = aCluster({}, { annotations: { 'runtime.cluster.x-k8s.io/pending-hooks': 'AfterClusterUpgrade' } })
    expect(await admit(aCluster({ version: 'v1.35.0' }), [aClass('quick'), ...settled], old)).toEqual([])
  })

  test.each([
    ['an invalid version', 'vnonsense', 'version cannot be changed: control plane is currently provisioning'],
    ['a version without patch number, two minors up', 'v1.36', 'version cannot be increased from "1.34.0" to "1.36.0"'],
    ['a pre-release two minors up', 'v1.36.0-rc.1', 'version cannot be increased from "1.34.0" to "1.36.0-rc.1"'],
    ['a lower version without patch number', 'v1.33', 'version cannot be decreased from "1.34.0" to "1.33.0"'],
  ])('to %s is rejected while the control plane is provisioning', async (_, version, problem) => {
    const objects = [aClass('quick'), CRD, aControlPlane('v1.34.0', {})]
    expect(await admit(aCluster({ version }), objects, aCluster())).toEqual([
      `spec.topology.version: Invalid value: "${version}": ${problem}`,
    ])
  })
})

test('warns even at an update without a change while an annotation disables the checks of versions', async () => {
  const annotation = 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check'
  const cluster = aCluster({}, { annotations: { [annotation]: '' } })
  const warning = `warning: Skipping version validation for Cluster because annotation "${annotation}" is set.`
  expect(await admit(cluster, [aClass('quick')], cluster)).toEqual([warning])
})

test('accepts updates of a Cluster that is being deleted, even if its class does not exist', async () => {
  const cluster = aCluster(
    { workers: { machineDeployments: [{ class: 'none', name: 'md-0' }] } },
    { deletionTimestamp: '2026-01-01T00:00:00Z' },
  )
  expect(await admit(cluster, [], cluster)).toEqual([])
})
