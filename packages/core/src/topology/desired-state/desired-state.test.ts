import type { Cluster, ClusterClass, ClusterClassPatch } from '@capstan/api'
import { pluralOf } from '@capstan/api'
import { type KubeObject, type UnknownObject, unknownKind, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import type { External } from '../../external/get.ts'
import type { Blueprint } from '../blueprint.ts'
import type { CurrentState } from '../current-state.ts'
import { type DesiredState, desiredState, removeEmptyEndpoints } from './desired-state.ts'
import { controlPlaneBuiltins } from '../patches/builtin-variables.ts'
import { PatchResponses } from '../patches/patch-responses.ts'
import { applyPatches } from '../patches/patches.ts'

function aTemplate(kind: string, spec: object, contract: External['contract'] = 'v1beta2', metadata: object = {}): External {
  const apiVersion = 'test.capstan.dev/v1'
  const object = {
    apiVersion,
    kind,
    metadata: { name: `class-${kind.toLowerCase()}`, namespace: 'default', uid: kind, ...metadata },
    spec: { template: { spec } },
  }
  return { contract, kind: unknownKind({ apiVersion, kind, plural: pluralOf(kind) }), object: object as unknown as UnknownObject }
}

const aCluster = (topology: object = {}, spec: object = {}): Cluster =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default', uid: 'demo-uid', labels: { team: 'a' } },
    spec: {
      clusterNetwork: { serviceDomain: 'cluster.local', pods: { cidrBlocks: ['10.0.0.0/16'] } },
      topology: {
        classRef: { name: 'quick' },
        version: 'v1.34.0',
        controlPlane: { replicas: 3, metadata: { labels: { from: 'topology' } } },
        workers: {
          machineDeployments: [
            {
              class: 'default',
              name: 'md-0',
              replicas: 2,
              metadata: { annotations: { 'topology.cluster.x-k8s.io/defer-upgrade': '' } },
            },
          ],
        },
        ...topology,
      },
      ...spec,
    },
  }) as unknown as Cluster

function aBlueprint(
  cluster: Cluster,
  {
    contract = 'v1beta2',
    patches = [],
    variables = [],
  }: { contract?: External['contract']; patches?: readonly object[]; variables?: readonly string[] } = {},
): Blueprint {
  const infrastructureCluster = aTemplate('TestClusterTemplate', { region: 'x', controlPlaneEndpoint: { host: '', port: 0 } })
  const controlPlane = aTemplate(
    'TestControlPlaneTemplate',
    { machineTemplate: { metadata: { labels: { from: 'template', own: 'yes' } } }, config: { files: [] } },
    contract,
  )
  const machines = aTemplate('TestMachineTemplate', { size: 'm' }, 'v1beta2', { labels: { shelf: '1' } })
  const bootstrap = aTemplate('TestConfigTemplate', { join: {} })
  const ref = ({ object }: External) => ({
    templateRef: { apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name },
  })
  const machineDeployment = {
    class: 'default',
    bootstrap: ref(bootstrap),
    infrastructure: ref(machines),
    deletion: { nodeDrainTimeoutSeconds: 60, order: 'Oldest' },
  }
  const clusterClass = {
    metadata: { name: 'quick', namespace: 'default' },
    spec: {
      infrastructure: ref(infrastructureCluster),
      controlPlane: {
        ...ref(controlPlane),
        machineInfrastructure: ref(machines),
        metadata: { labels: { from: 'class', tier: 'cp' } },
        deletion: { nodeDrainTimeoutSeconds: 90 },
      },
      workers: { machineDeployments: [machineDeployment] },
      patches,
    },
    status: { variables: variables.map((name) => ({ name, definitions: [{ from: 'inline', required: false, schema: {} }] })) },
  } as unknown as ClusterClass
  return {
    topology: cluster.spec.topology!,
    class: clusterClass,
    infrastructureCluster,
    controlPlane: {
      class: clusterClass.spec.controlPlane,
      topology: cluster.spec.topology!.controlPlane!,
      template: controlPlane,
      machineTemplate: machines,
    },
    machineDeployments: new Map([
      ['default', { class: clusterClass.spec.workers!.machineDeployments![0]!, bootstrap, infrastructure: machines }],
    ]),
    machinePools: new Map(),
  }
}

const noObjects: CurrentState = {
  infrastructureCluster: undefined,
  controlPlane: undefined,
  machineDeployments: new Map(),
  machinePools: new Map(),
}
const versions = {
  controlPlane: 'v1.34.0',
  workers: [{ name: 'md-0', version: 'v1.34.0', state: 'settled', upgrading: false }],
  pools: [],
} as const

const noExtensions = {
  runtime: { call: () => Promise.reject(new Error('no extension is called')) },
  context: { signal: new AbortController().signal, withoutWorker: <T>(work: () => Promise<T>) => work() },
  responses: new PatchResponses(new VirtualClock()),
}

async function computeDesiredState(cluster: Cluster, options: Parameters<typeof aBlueprint>[1] = {}): Promise<DesiredState> {
  const blueprint = aBlueprint(cluster, options)
  const desired = desiredState(cluster, blueprint, noObjects, versions)
  await applyPatches(cluster, blueprint, desired, noExtensions)
  removeEmptyEndpoints(desired)
  return desired
}

describe('desired state', () => {
  test('names have the form of upstream, are stable, and differ for a recreated Cluster', async () => {
    const names = async (uid: string) => {
      const cluster = aCluster()
      cluster.metadata.uid = uid
      const { infrastructureCluster, controlPlane, controlPlaneMachineTemplate, machineDeployments } =
        await computeDesiredState(cluster)
      const [md] = machineDeployments
      return [infrastructureCluster, controlPlane, controlPlaneMachineTemplate!, md!, md!.bootstrap, md!.infrastructure].map(
        ({ object }) => object.metadata.name,
      )
    }
    const suffix = '[bcdfghjklmnpqrstvwxz2456789]{5}'
    for (const name of (await names('u1')).slice(0, 3)) expect(name).toMatch(new RegExp(`^demo-${suffix}$`))
    for (const name of (await names('u1')).slice(3)) expect(name).toMatch(new RegExp(`^demo-md-0-${suffix}$`))
    expect(await names('u1')).toEqual(await names('u1'))
    expect(new Set([...(await names('u1')), ...(await names('u2'))]).size).toBe(12)
  })

  test('labels of the topology override those of class and template, and labels of core override all', async () => {
    const { object } = (
      await computeDesiredState(
        aCluster({ controlPlane: { metadata: { labels: { from: 'topology', 'cluster.x-k8s.io/cluster-name': 'other' } } } }),
      )
    ).controlPlane
    expect(object.metadata.labels).toEqual({
      from: 'topology',
      tier: 'cp',
      'cluster.x-k8s.io/cluster-name': 'demo',
      'topology.cluster.x-k8s.io/owned': '',
    })
    expect(object['spec']).toMatchObject({
      machineTemplate: { metadata: { labels: { own: 'yes', from: 'topology', tier: 'cp' } } },
    })
  })

  test.each([
    [
      'v1beta2',
      {
        spec: {
          infrastructureRef: { apiGroup: 'test.capstan.dev', kind: 'TestMachineTemplate' },
          deletion: { nodeDrainTimeoutSeconds: 90 },
        },
      },
    ],
    [
      'v1beta1',
      {
        infrastructureRef: { apiVersion: 'test.capstan.dev/v1', kind: 'TestMachineTemplate', namespace: 'default' },
        nodeDrainTimeout: '1m30s',
      },
    ],
  ] as const)('fields of a control plane are written to the paths of contract %s', async (contract, machineTemplate) => {
    const { object } = (await computeDesiredState(aCluster(), { contract })).controlPlane
    expect(object['spec']).toMatchObject({ replicas: 3, version: 'v1.34.0', machineTemplate })
  })

  test('an empty endpoint in the template is not applied', async () => {
    expect((await computeDesiredState(aCluster())).infrastructureCluster.object['spec']).toEqual({ region: 'x' })
  })

  test('a MachineDeployment selects Machines by labels of core, and gets no upgrade annotations and no owner reference', async () => {
    const { object } = (await computeDesiredState(aCluster())).machineDeployments[0]!
    const labels = {
      'cluster.x-k8s.io/cluster-name': 'demo',
      'topology.cluster.x-k8s.io/owned': '',
      'topology.cluster.x-k8s.io/deployment-name': 'md-0',
    }
    expect(object.metadata).toMatchObject({ labels })
    // The controller of MachineDeployments adds the owner reference.
    expect(object.metadata.ownerReferences).toBeUndefined()
    expect(object.metadata.annotations).toBeUndefined()
    expect(object.spec).toMatchObject({
      replicas: 2,
      deletion: { order: 'Oldest' },
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { version: 'v1.34.0', deletion: { nodeDrainTimeoutSeconds: 60 } } },
    })
  })

  test('copied templates have annotations with their source', async () => {
    const { object } = (await computeDesiredState(aCluster())).controlPlaneMachineTemplate!
    expect(object.metadata).toMatchObject({
      labels: { shelf: '1', 'topology.cluster.x-k8s.io/owned': '' },
      annotations: {
        'cluster.x-k8s.io/cloned-from-name': 'class-testmachinetemplate',
        'cluster.x-k8s.io/cloned-from-groupkind': 'TestMachineTemplate.test.capstan.dev',
      },
    })
  })
})

describe('fields that the template of a control plane sets itself', () => {
  const machineTemplate = {
    spec: { infrastructureRef: { apiGroup: 'test.capstan.dev', kind: 'TestMachineTemplate', name: 'own' } },
  }
  const template = { replicas: 5, machineTemplate }

  test('without machine infrastructure in the class, the infrastructureRef of the template is kept', async () => {
    const cluster = aCluster()
    const blueprint = aBlueprint(cluster)
    const controlPlane = {
      ...blueprint.controlPlane,
      template: aTemplate('TestControlPlaneTemplate', template),
      machineTemplate: undefined,
    }
    const { object } = desiredState(cluster, { ...blueprint, controlPlane }, noObjects, versions).controlPlane
    expect(object['spec']).toMatchObject({ machineTemplate })
  })

  test.each([3, undefined])('builtin.controlPlane has the replicas of the topology: %s', (replicas) => {
    const cluster = aCluster({ controlPlane: { replicas } })
    const blueprint = aBlueprint(cluster)
    const controlPlane = { ...blueprint.controlPlane, template: aTemplate('TestControlPlaneTemplate', template) }
    const desired = desiredState(cluster, { ...blueprint, controlPlane }, noObjects, versions)
    const { controlPlane: builtins } = controlPlaneBuiltins(desired, cluster.spec.topology!)
    expect(builtins).toHaveProperty('version')
    expect((builtins as { replicas?: number }).replicas).toBe(replicas)
  })
})

const aPatch = (
  kind: string,
  matchResources: object,
  jsonPatches: readonly object[],
  overrides: Partial<ClusterClassPatch> = {},
): ClusterClassPatch => ({
  name: 'p',
  definitions: [{ selector: { apiVersion: 'test.capstan.dev/v1', kind, matchResources }, jsonPatches: jsonPatches as never }],
  ...overrides,
})
const specOf = ({ object }: { object: object }) => (object as { spec: Record<string, unknown> }).spec
const templateSpecOf = (desired: { object: object }) => (specOf(desired)['template'] as { spec: unknown }).spec

describe('patches', () => {
  const cp = { controlPlane: true }
  const workers = (...names: string[]) => ({ machineDeploymentClass: { names } })
  const set = (value: object) => [{ op: 'add', path: '/spec/template/spec/set', ...value }]

  test.each([
    ['a constant', { value: { a: [1] } }, { a: [1] }],
    ['a variable', { valueFrom: { variable: 'zone' } }, 'b'],
    ['part of a variable', { valueFrom: { variable: 'net.cidrs[1]' } }, '10.1.0.0/16'],
    ['a built-in variable', { valueFrom: { variable: 'builtin.controlPlane.version' } }, 'v1.34.0'],
    [
      'a template that renders a string',
      { valueFrom: { template: '{{ .builtin.cluster.name }}-{{ .zone | upper }}' } },
      'demo-B',
    ],
    [
      'a template that renders a list',
      { valueFrom: { template: '{{ range .net.cidrs }}\n- {{ . }}{{ end }}' } },
      ['10.0.0.0/16', '10.1.0.0/16'],
    ],
    ['a template that renders a number', { valueFrom: { template: '{{ .builtin.controlPlane.replicas }}' } }, 3],
  ])('the value of a patch can be %s', async (_, value, expected) => {
    const variables = [
      { name: 'zone', value: 'b' },
      { name: 'net', value: { cidrs: ['10.0.0.0/16', '10.1.0.0/16'] } },
    ]
    const patches = [aPatch('TestControlPlaneTemplate', cp, set(value))]
    expect(
      specOf((await computeDesiredState(aCluster({ variables }), { patches, variables: ['zone', 'net'] })).controlPlane)['set'],
    ).toEqual(expected)
  })

  test.each([
    ['*', true],
    ['def*', true],
    ['*ault', true],
    ['default', true],
    ['other', false],
    ['ault*', false],
  ])('a patch for MachineDeployment classes %s applies to the class named "default": %s', async (pattern, matches) => {
    const patches = [aPatch('TestMachineTemplate', workers(pattern), set({ value: 1 }))]
    const { machineDeployments, controlPlaneMachineTemplate } = await computeDesiredState(aCluster(), { patches })
    expect(templateSpecOf(machineDeployments[0]!.infrastructure)).toEqual(matches ? { size: 'm', set: 1 } : { size: 'm' })
    expect(templateSpecOf(controlPlaneMachineTemplate!)).toEqual({ size: 'm' })
  })

  test.each([
    ['true', true],
    ['{{ if eq .zone "b" }}true{{ end }}', true],
    ['{{ if eq .zone "c" }}true{{ end }}', false],
    ['{{ .zone }}', false],
  ])('a patch with enabledIf %s is applied: %s', async (enabledIf, isApplied) => {
    const patches = [aPatch('TestControlPlaneTemplate', cp, set({ value: 1 }), { enabledIf })]
    const variables = [{ name: 'zone', value: 'b' }]
    expect(
      specOf((await computeDesiredState(aCluster({ variables }), { patches, variables: ['zone'] })).controlPlane)['set'],
    ).toBe(isApplied ? 1 : undefined)
  })

  test('a later patch sees the result of an earlier one', async () => {
    const path = '/spec/template/spec/config/files'
    const patches = [
      aPatch('TestControlPlaneTemplate', cp, [{ op: 'add', path: `${path}/-`, value: 'a' }]),
      aPatch('TestControlPlaneTemplate', cp, [{ op: 'add', path: `${path}/0`, value: 'b' }], { name: 'q' }),
    ]
    expect(specOf((await computeDesiredState(aCluster(), { patches })).controlPlane)['config']).toEqual({ files: ['b', 'a'] })
  })

  test('a variable override of a MachineDeployment applies to that MachineDeployment, and not to the control plane', async () => {
    const machineDeployments = [{ class: 'default', name: 'md-0', variables: { overrides: [{ name: 'zone', value: 'c' }] } }]
    const patches = [aPatch('TestMachineTemplate', { ...cp, ...workers('*') }, set({ valueFrom: { variable: 'zone' } }))]
    const desired = await computeDesiredState(
      aCluster({ variables: [{ name: 'zone', value: 'b' }], workers: { machineDeployments } }),
      {
        patches,
        variables: ['zone'],
      },
    )
    expect(templateSpecOf(desired.machineDeployments[0]!.infrastructure)).toMatchObject({ set: 'c' })
    expect(templateSpecOf(desired.controlPlaneMachineTemplate!)).toMatchObject({ set: 'b' })
  })

  test('patches cannot change fields that core writes', async () => {
    const patches = [
      aPatch('TestControlPlaneTemplate', cp, [
        { op: 'add', path: '/spec/template/spec/version', value: 'v1.0.0' },
        { op: 'add', path: '/spec/template/spec/replicas', value: 9 },
        { op: 'add', path: '/spec/template/metadata/labels/topology.cluster.x-k8s.io~1owned', value: 'no' },
        { op: 'add', path: '/spec/template/metadata/labels/patched', value: 'yes' },
      ]),
    ]
    const { object } = (await computeDesiredState(aCluster(), { patches })).controlPlane
    expect(object['spec']).toMatchObject({ version: 'v1.34.0', replicas: 3 })
    expect(object.metadata.labels).toMatchObject({ 'topology.cluster.x-k8s.io/owned': '', patched: 'yes' })
  })

  test.each([
    [
      'replaces a missing value',
      { op: 'replace', path: '/spec/template/spec/missing', value: 1 },
      'replace operation does not apply: doc is missing key: /spec/template/spec/missing: missing value',
    ],
    [
      'adds below a missing value',
      { op: 'add', path: '/spec/template/spec/a/b', value: 1 },
      'add operation does not apply: doc is missing path: "/spec/template/spec/a/b": missing value',
    ],
    [
      'removes a missing value',
      { op: 'remove', path: '/spec/template/spec/missing' },
      "error in remove for path: '/spec/template/spec/missing': unable to remove nonexistent key: missing: missing value",
    ],
  ])('a patch that %s is reported', async (_, operation, problem) => {
    const patches = [aPatch('TestControlPlaneTemplate', cp, [operation])]
    await expect(computeDesiredState(aCluster(), { patches })).rejects.toThrow(
      `failed to apply patches: failed to apply patches for patch "p": failed to apply patch: error applying json patch (RFC6902): ${problem}`,
    )
  })

  test('a patch can replace labels of a template, but cannot remove its labels or its metadata, as upstream', async () => {
    const cluster = aCluster()
    const metadata = { labels: { tier: 'a' }, annotations: { note: 'b' } }
    const templateOf = async (...operations: object[]) => {
      const patches = [aPatch('TestMachineTemplate', workers('*'), operations)]
      const blueprint = aBlueprint(cluster, { patches })
      const { infrastructure } = blueprint.machineDeployments.get('default')!
      specOf(infrastructure)['template'] = { metadata, spec: { size: 'm' } }
      const desired = desiredState(cluster, blueprint, noObjects, versions)
      await applyPatches(cluster, blueprint, desired, noExtensions)
      return specOf(desired.machineDeployments[0]!.infrastructure)['template']
    }
    const kept = { metadata, spec: { size: 'm' } }
    expect(await templateOf({ op: 'remove', path: '/spec/template/metadata/labels' })).toEqual(kept)
    expect(await templateOf({ op: 'remove', path: '/spec/template/metadata' })).toEqual(kept)
    expect(await templateOf({ op: 'replace', path: '/spec/template/metadata/labels', value: { tier: 'c' } })).toEqual({
      ...kept,
      metadata: { ...metadata, labels: { tier: 'c' } },
    })
  })

  test('errors of all definitions of a patch are reported', async () => {
    const { definitions } = aPatch('TestControlPlaneTemplate', cp, set({ valueFrom: { variable: 'zone' } }))
    const other = aPatch('TestControlPlaneTemplate', cp, set({ valueFrom: { variable: 'net' } }))
    const patches = [{ name: 'p', definitions: [...definitions!, ...other.definitions!] }]
    const problem = (variable: string) =>
      `failed to generate JSON patches for "TestControlPlaneTemplate": failed to calculate value: variable "${variable}" does not exist`
    await expect(computeDesiredState(aCluster(), { patches, variables: ['zone', 'net'] })).rejects.toThrow(
      `failed to generate patches for patch "p": [${problem('zone')}, ${problem('net')}]`,
    )
  })

  test('a patch that reads an unset variable fails with the name of the variable', async () => {
    const patches = [aPatch('TestControlPlaneTemplate', cp, set({ valueFrom: { variable: 'zone' } }))]
    await expect(computeDesiredState(aCluster(), { patches, variables: ['zone'] })).rejects.toThrow(
      'failed to generate patches for patch "p": failed to generate JSON patches for "TestControlPlaneTemplate": failed to calculate value: variable "zone" does not exist',
    )
  })
})

test('a MachineDeployment class that does not exist leads to an error that names the MachineDeployment topology', () => {
  const cluster = aCluster({ workers: { machineDeployments: [{ class: 'gone', name: 'md-0' }] } })
  // The spelling "MachineDepoyment" is upstream's.
  expect(() => desiredState(cluster, aBlueprint(cluster), noObjects, versions)).toThrow(
    'failed to compute MachineDeployments: failed to compute MachineDepoyment for topology "md-0": MachineDeployment class gone not found in ClusterClass default/quick',
  )
})

describe('the owner reference of the infrastructure cluster', () => {
  const owners = (reference: object) => {
    const cluster = aCluster()
    const existing = {
      ...aTemplate('TestCluster', {}),
      object: { metadata: { name: 'x', ownerReferences: [reference] } } as unknown as UnknownObject & KubeObject,
    }
    const desired = desiredState(cluster, aBlueprint(cluster), { ...noObjects, infrastructureCluster: existing }, versions)
    return desired.infrastructureCluster.object.metadata.ownerReferences
  }
  const reference = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid: 'demo-uid' }

  test('is applied while the infrastructure cluster has no controller reference to the Cluster', () => {
    expect(owners(reference)).toEqual([reference])
    expect(owners({ ...reference, uid: 'another-uid' })).toEqual([reference])
  })

  test('is not applied when the infrastructure cluster has a controller reference to the Cluster', () => {
    expect(owners({ ...reference, controller: true })).toBeUndefined()
  })
})
