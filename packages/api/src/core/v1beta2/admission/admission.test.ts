import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { draft } from '@capstan/kube'
import { describe, expect, it, test } from 'vitest'
import { AutoscalerMaxSizeAnnotation, AutoscalerMinSizeAnnotation } from '../../well-known.ts'
import { Cluster } from '../cluster.ts'
import { ClusterClass } from '../cluster-class.ts'
import { Machine } from '../machine.ts'
import { MachineDeployment } from '../machine-deployment.ts'
import { MachinePool } from '../machine-pool.ts'
import { MachineSet } from '../machine-set.ts'

const contextOf = <T extends KubeObject>(oldObject?: T): AdmissionContext<T> => ({
  operation: oldObject ? 'UPDATE' : 'CREATE',
  oldObject,
  dryRun: false,
})
const texts = (errors: readonly FieldError[]): string[] => errors.map(({ field, text }) => `${field}: ${text}`)
const defaulted = <T extends KubeObject>(
  kind: { default?(object: T, context: AdmissionContext<T>): void },
  object: T,
  old?: T,
): T => {
  const copy = draft(object)
  kind.default!(copy, contextOf(old))
  return copy
}

const metadata = { name: 'demo', namespace: 'default', uid: '', resourceVersion: '', creationTimestamp: '' }
const infrastructureRef = { apiGroup: 'infra.example.com', kind: 'FooMachine', name: 'demo' }
const machineSpec = { clusterName: 'demo', bootstrap: { dataSecretName: 'data' }, infrastructureRef, version: '1.36.0' }
const machine: Machine = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', metadata, spec: machineSpec }
const set: MachineSet = {
  ...machine,
  kind: 'MachineSet',
  spec: { clusterName: 'demo', selector: {}, template: { spec: machineSpec } },
}
const deployment: MachineDeployment = { ...set, kind: 'MachineDeployment' }
const pool: MachinePool = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachinePool',
  metadata,
  spec: { clusterName: 'demo', template: { spec: machineSpec } },
}
const cluster: Cluster = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  metadata,
  kind: 'Cluster',
  spec: { topology: { classRef: { name: 'quick' }, version: 'v1.36.0' } },
}

describe('defaults', () => {
  it('of a Machine: label, version prefix, Node deletion timeout of ten seconds', () => {
    const { metadata, spec } = defaulted(Machine, machine)
    expect(metadata.labels).toEqual({ 'cluster.x-k8s.io/cluster-name': 'demo' })
    expect([spec.version, spec.deletion]).toEqual(['v1.36.0', { nodeDeletionTimeoutSeconds: 10 }])
  })

  it.each([MachineSet, MachineDeployment])(
    'of a $kind: a missing selector gets the same default as an empty selector',
    (kind) => {
      const { selector: _, ...spec } = set.spec
      const bare = { ...set, spec } as MachineSet & MachineDeployment
      expect(defaulted(kind as typeof MachineSet, bare).spec.selector).toEqual(
        defaulted(kind as typeof MachineSet, set).spec.selector,
      )
    },
  )

  it('of a MachineSet: one replica; a selector and a template label with a hash of the name if it is no valid label value', () => {
    const name = 'machineSetName'.repeat(12)
    const { spec } = defaulted(MachineSet, { ...set, metadata: { ...metadata, name } })
    const own = { 'cluster.x-k8s.io/set-name': 'hash_FR_ghQ_z' }
    expect([spec.replicas, spec.selector, spec.template.metadata]).toEqual([1, { matchLabels: own }, { labels: own }])
  })

  it('of a MachineDeployment: replicas, strategy; a selector and template labels with its name and Cluster', () => {
    const { spec } = defaulted(MachineDeployment, deployment)
    const labels = { 'cluster.x-k8s.io/deployment-name': 'demo', 'cluster.x-k8s.io/cluster-name': 'demo' }
    expect(spec).toMatchObject({
      replicas: 1,
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
      selector: { matchLabels: labels },
      template: { metadata: { labels } },
    })
  })

  it('of a MachinePool: label, one replica or the minimum of the autoscaler, version prefix, Node deletion timeout', () => {
    const { metadata, spec } = defaulted(MachinePool, pool)
    expect(metadata.labels).toEqual({ 'cluster.x-k8s.io/cluster-name': 'demo' })
    const { version, deletion } = spec.template.spec
    expect([spec.replicas, version, deletion]).toEqual([1, 'v1.36.0', { nodeDeletionTimeoutSeconds: 10 }])
    const annotations = { [AutoscalerMinSizeAnnotation]: '3', [AutoscalerMaxSizeAnnotation]: '5' }
    expect(defaulted(MachinePool, { ...pool, metadata: { ...pool.metadata, annotations } }).spec.replicas).toBe(3)
  })

  it('of a MachineDeployment keep zero replicas and the strategy OnDelete of the user, and are idempotent', () => {
    const chosen: MachineDeployment = {
      ...deployment,
      spec: { ...deployment.spec, replicas: 0, rollout: { strategy: { type: 'OnDelete' } } },
    }
    const defaultedOnce = defaulted(MachineDeployment, chosen)
    expect([defaultedOnce.spec.replicas, defaultedOnce.spec.rollout]).toEqual([0, { strategy: { type: 'OnDelete' } }])
    expect(defaulted(MachineDeployment, defaultedOnce)).toEqual(defaultedOnce)
  })

  test.each([
    ['the minimum in a new object', undefined, 3],
    ['the minimum if the old object has fewer', 1, 3],
    ['the maximum if the old object has more', 9, 5],
    ['those of the old object if they are in the range', 4, 4],
  ])('with the annotations of the autoscaler, missing replicas become %s', (_, before, after) => {
    const annotations = { [AutoscalerMinSizeAnnotation]: '3', [AutoscalerMaxSizeAnnotation]: '5' }
    const object = { ...set, metadata: { ...metadata, annotations } }
    const old = before === undefined ? undefined : { ...set, spec: { ...set.spec, replicas: before } }
    expect(defaulted(MachineSet, object, old).spec.replicas).toBe(after)
  })

  it('reject an annotation of the autoscaler that is not a number', () => {
    const annotations = { [AutoscalerMinSizeAnnotation]: 'few', [AutoscalerMaxSizeAnnotation]: '5' }
    expect(() => defaulted(MachineSet, { ...set, metadata: { ...metadata, annotations } })).toThrow(
      'failed to caculate MachineSet replicas value: could not parse the value of the "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size" annotation: strconv.ParseInt: parsing "few": invalid syntax',
    )
  })
})

describe('validation of a Machine', () => {
  const valid = defaulted(Machine, machine)
  const taint = (key: string) => ({ taints: [{ key, effect: 'NoSchedule', propagation: 'Always' } as const] })
  test.each<[Partial<Machine['spec']>, string[]]>([
    [{}, []],
    [
      { bootstrap: {} },
      [
        'spec.bootstrap: Required value: expected either spec.bootstrap.dataSecretName or spec.bootstrap.configRef to be populated',
      ],
    ],
    [{ clusterName: 'other' }, ['spec.clusterName: Forbidden: field is immutable']],
    [{ version: 'vnext' }, ['spec.version: Invalid value: "vnext": must be a valid semantic version']],
    [
      taint('node.kubernetes.io/unreachable'),
      [
        'spec.taints[0].key: Invalid value: "node.kubernetes.io/unreachable": taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service',
      ],
    ],
    [
      taint('node.cluster.x-k8s.io/uninitialized'),
      ['spec.taints[0].key: Invalid value: "node.cluster.x-k8s.io/uninitialized": taint key is not allowed'],
    ],
    [
      taint('node-role.kubernetes.io/control-plane'),
      ['spec.taints[0].key: Invalid value: "node-role.kubernetes.io/control-plane": taint is not allowed for worker Machines'],
    ],
  ])('returns the errors of the change %j', (change, errors) => {
    expect(texts(Machine.validate!({ ...valid, spec: { ...valid.spec, ...change } }, contextOf(valid)))).toEqual(errors)
  })

  it('accepts missing bootstrap data of a Machine with the label of a MachinePool', () => {
    const labels = { 'cluster.x-k8s.io/pool-name': 'pool' }
    const pooled = { ...valid, metadata: { ...metadata, labels }, spec: { ...valid.spec, bootstrap: {} } }
    expect(Machine.validate!(pooled, contextOf())).toEqual([])
  })
})

describe('validation of a MachinePool', () => {
  const valid = defaulted(MachinePool, pool)
  const template = (spec: Partial<Machine['spec']>): Partial<MachinePool['spec']> => ({
    template: { spec: { ...valid.spec.template.spec, ...spec } },
  })
  test.each<[string, Partial<MachinePool['spec']>, string[]]>([
    ['accepts a valid MachinePool', {}, []],
    [
      'rejects missing bootstrap data',
      template({ bootstrap: {} }),
      [
        'spec.template.spec.bootstrap: Required value: expected either spec.template.spec.bootstrap.dataSecretName or spec.template.spec.bootstrap.configRef to be populated',
      ],
    ],
    [
      'rejects a change of the Cluster',
      { clusterName: 'other' },
      [
        'spec.clusterName: Forbidden: field is immutable',
        'spec.clusterName: Invalid value: "other": spec.clusterName and spec.template.spec.clusterName must be set to the same value',
      ],
    ],
    [
      'rejects an invalid version',
      template({ version: 'vnext' }),
      ['spec.template.spec.version: Invalid value: "vnext": must be a valid semantic version'],
    ],
    [
      'rejects taints',
      template({ taints: [{ key: 'a', effect: 'NoSchedule', propagation: 'Always' }] }),
      ['spec.taints: Forbidden: taints feature for MachinePools is not yet implemented'],
    ],
    [
      'rejects invalid labels',
      { template: { ...valid.spec.template, metadata: { labels: { 'a b': 'c' } } } },
      [expect.stringContaining('spec.template.metadata.labels: Invalid value: "a b"') as never],
    ],
  ])('%s', (_, spec, errors) => {
    expect(texts(MachinePool.validate!({ ...valid, spec: { ...valid.spec, ...spec } }, contextOf(valid)))).toEqual(errors)
  })
})

describe('validation of a MachineDeployment', () => {
  const valid = defaulted(MachineDeployment, deployment)
  const strategy = (maxSurge: number | string, maxUnavailable: number | string) => ({
    rollout: { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge, maxUnavailable } } },
  })
  test.each<[Partial<MachineDeployment['spec']>, string[]]>([
    [{}, []],
    [strategy('25%', 0), []],
    [strategy(0, 0), ['spec.rollout.strategy.rollingUpdate: Invalid value: "0": maxUnavailable and maxSurge cannot both be 0']],
    [
      strategy('many', 0),
      [
        'spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: "many": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage',
      ],
    ],
    [
      strategy(1, 'x%'),
      [
        'spec.rollout.strategy.rollingUpdate.maxUnavailable: Invalid value: "x%": must be either an int or a percentage: invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax',
      ],
    ],
    [{ selector: { matchLabels: { a: 'b' } } }, ['spec.template.metadata.labels: Forbidden: must match spec.selector "a=b"']],
    [
      { machineNaming: { template: 'static' } },
      ['spec.machineNaming.template: Invalid value: "static": invalid template, {{ .random }} is missing'],
    ],
  ])('returns the errors of the change %j', (change, errors) => {
    expect(texts(MachineDeployment.validate!({ ...valid, spec: { ...valid.spec, ...change } }, contextOf(valid)))).toEqual(errors)
  })

  it('rejects an unknown name of a skipped preflight check', () => {
    const annotations = { 'machineset.cluster.x-k8s.io/skip-preflight-checks': 'All, Nothing' }
    expect(texts(MachineDeployment.validate!({ ...valid, metadata: { ...metadata, annotations } }, contextOf()))).toEqual([
      'metadata.annotations.machineset.cluster.x-k8s.io/skip-preflight-checks: Invalid value: ["Nothing"]: skipped preflight check(s) must be among: [All ControlPlaneIsStable ControlPlaneVersionSkew KubeadmVersionSkew KubernetesVersionSkew]',
    ])
  })
})

describe('validation of a Cluster', () => {
  const ref = { apiGroup: 'infra.example.com', kind: 'FooCluster', name: 'demo' }
  const topology = cluster.spec.topology!
  test.each<[string, Cluster['spec'], Cluster['spec'] | undefined, string[]]>([
    ['accepts a topology', cluster.spec, undefined, []],
    [
      'rejects a spec without references or a topology',
      {},
      undefined,
      ['spec: Forbidden: one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set'],
    ],
    [
      'rejects the removal of a reference',
      { controlPlaneRef: ref },
      { controlPlaneRef: ref, infrastructureRef: ref },
      ['spec.infrastructureRef: Forbidden: cannot be removed'],
    ],
    [
      'rejects the removal of the topology',
      { controlPlaneRef: ref },
      cluster.spec,
      ['spec.topology: Forbidden: cannot be removed from an existing Cluster'],
    ],
    [
      'rejects invalid address ranges',
      { ...cluster.spec, clusterNetwork: { pods: { cidrBlocks: ['10.0.0.0/8', 'fd00::/64', '10.0.0.0', '10.0.0.0/33'] } } },
      undefined,
      [
        'spec.clusterNetwork.pods.cidrBlocks[2]: Invalid value: "10.0.0.0": invalid CIDR address: 10.0.0.0',
        'spec.clusterNetwork.pods.cidrBlocks[3]: Invalid value: "10.0.0.0/33": invalid CIDR address: 10.0.0.0/33',
      ],
    ],
    [
      'rejects an invalid version',
      { topology: { ...topology, version: 'v1.36' } },
      undefined,
      ['spec.topology.version: Invalid value: "v1.36": version must be a valid semantic version'],
    ],
    [
      'rejects replicas that the autoscaler manages',
      {
        topology: {
          ...topology,
          workers: {
            machineDeployments: [
              { name: 'md', class: 'c', replicas: 2, metadata: { annotations: { [AutoscalerMinSizeAnnotation]: '1' } } },
            ],
          },
        },
      },
      undefined,
      [
        'spec.topology.workers.machineDeployments[md].replicas: Invalid value: 2: cannot be set for cluster "demo" in namespace "default" if the same MachineDeploymentTopology has autoscaler annotations',
      ],
    ],
  ])('%s', (_, spec, old, errors) => {
    const before = old && { ...cluster, spec: old }
    expect(texts(Cluster.validate!({ ...cluster, spec }, contextOf(before)))).toEqual(errors)
  })

  it.each([
    ['two', 'could not parse the value of the annotation: strconv.Atoi: parsing "two": invalid syntax'],
    [
      '99999999999999999999',
      'could not parse the value of the annotation: strconv.Atoi: parsing "99999999999999999999": value out of range',
    ],
    ['0', 'value cannot be less than 1'],
  ])('rejects the upgrade concurrency %j', (text, problem) => {
    const name = 'topology.cluster.x-k8s.io/upgrade-concurrency'
    const changed = { ...cluster, metadata: { ...metadata, annotations: { [name]: text } } }
    expect(texts(Cluster.validate!(changed, contextOf(cluster)))).toEqual([
      `metadata.annotations.${name}: Invalid value: "${text}": ${problem}`,
    ])
  })
})

describe('validation of a ClusterClass', () => {
  const ref = (kind: string) => ({ apiVersion: 'infra.example.com/v1', kind, name: 'quick' })
  const workers = { class: 'w', bootstrap: { templateRef: ref('BTemplate') }, infrastructure: { templateRef: ref('MTemplate') } }
  const spec: ClusterClass['spec'] = {
    infrastructure: { templateRef: ref('CTemplate') },
    controlPlane: { templateRef: ref('PTemplate') },
    workers: { machineDeployments: [workers] },
  }
  test.each<[string, Partial<ClusterClass['spec']>, string[]]>([
    ['accepts a valid ClusterClass', {}, []],
    [
      'rejects a changed kind in a reference, and a kind that is not of the form <name>Template',
      { infrastructure: { templateRef: ref('Template') } },
      [
        'spec.infrastructure.ref.kind: Invalid value: "Template": template kind must be of form "<name>Template"',
        'spec.infrastructure.templateRef.kind: Forbidden: kind cannot be changed from "CTemplate" to "Template" to prevent incompatible changes in the Clusters',
      ],
    ],
    [
      'rejects two classes with the same name',
      { workers: { machineDeployments: [workers, workers] } },
      [
        'spec.workers.machineDeployments[1].class: Invalid value: "w": MachineDeployment class must be unique. MachineDeployment with class "w" is defined more than once',
      ],
    ],
    [
      'rejects a health check with a short timeout, and a health check of a control plane without machine infrastructure',
      { controlPlane: { templateRef: ref('PTemplate'), healthCheck: { checks: { nodeStartupTimeoutSeconds: 5 } } } },
      [
        'spec.controlPlane.healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 5: must be at least 30s',
        'spec.controlPlane.healthCheck: Forbidden: can be only set if spec.controlPlane.machineInfrastructure is set',
      ],
    ],
    [
      'rejects versions that are not in ascending order, or omit a minor version',
      { kubernetesVersions: ['v1.34.0', 'v1.33.0', 'v1.35.0'] },
      [
        'spec.kubernetesVersion[1]: Invalid value: "v1.33.0": version must be greater than v1.34.0',
        'spec.kubernetesVersion[1]: Invalid value: "v1.33.0": expecting a version with minor 34 or 35, found version 1.33.0',
        'spec.kubernetesVersion[2]: Invalid value: "v1.35.0": expecting a version with minor 33 or 34, found version 1.35.0',
      ],
    ],
    [
      'does not reject a missing patch number, and prints it as 0 in the error for an omitted minor version',
      { kubernetesVersions: ['v1.34', 'v1.36'] },
      ['spec.kubernetesVersion[1]: Invalid value: "v1.36": expecting a version with minor 34 or 35, found version 1.36.0'],
    ],
  ])('%s', (_, change, errors) => {
    const before: ClusterClass = { ...machine, kind: 'ClusterClass', spec }
    expect(texts(ClusterClass.validate!({ ...before, spec: { ...spec, ...change } }, contextOf(before)))).toEqual(errors)
  })
})

test.each([
  [MachineSet, set],
  [MachineDeployment, deployment],
] as const)('lists several errors of a $kind in the order of upstream', (kind, valid) => {
  const object = draft(valid) as MachineDeployment
  const taint = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule', propagation: 'Always' } as const
  object.metadata.annotations = { 'machineset.cluster.x-k8s.io/skip-preflight-checks': 'Nothing' }
  object.spec.selector = { matchLabels: { role: 'worker' } }
  object.spec.machineNaming = { template: 'fixed' }
  object.spec.template.metadata = { labels: { z: '', 'not valid': '' } }
  object.spec.template.spec = { ...machineSpec, clusterName: 'other', bootstrap: {}, version: 'v1', taints: [taint] }
  if (kind === MachineDeployment) object.spec.rollout = { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'x' } } }
  const errors = (kind.validate as (object: unknown, context: unknown) => FieldError[])(object, contextOf())
  const ofDeployment = (field: string) => (kind === MachineDeployment ? [field] : [])
  expect(errors.map(({ field }) => field)).toEqual([
    'spec.template.spec.bootstrap',
    'spec.template.metadata.labels',
    'metadata.annotations.machineset.cluster.x-k8s.io/skip-preflight-checks',
    'spec.clusterName',
    ...ofDeployment('spec.rollout.strategy.rollingUpdate.maxSurge'),
    'spec.template.spec.version',
    ...ofDeployment('spec.machineNaming.template'),
    'spec.template.spec.taints[0].key',
    ...(kind === MachineSet ? ['spec.machineNaming.template'] : []),
    'spec.template.metadata.labels',
  ])
  if (kind === MachineSet) {
    expect(errors[1]?.text).toBe('Invalid value: {"not valid":"","z":""}: must match spec.selector "role=worker"')
  }
})

test('prints a selector in errors as upstream does: labels sorted, an empty `values` omitted', () => {
  const selector = { matchLabels: { 'not a key': 'x', a: 'b' }, matchExpressions: [] }
  const wrong = { ...set, spec: { ...set.spec, selector } }
  const [error] = texts(MachineSet.validate!(wrong, contextOf()) as FieldError[])
  expect(error).toMatch('spec.selector: Invalid value: {"matchLabels":{"a":"b","not a key":"x"}}: key: ')
  const none = { ...set, spec: { ...set.spec, selector: { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] } } }
  expect(texts(MachineSet.validate!(none, contextOf()) as FieldError[])[0]).toBe(
    `spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"In"}]}: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty`,
  )
})
