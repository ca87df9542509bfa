/** Tables of inputs for admission. Each change is used to create an object and to update an existing object, in dry runs. */
import { applyMergePatch, type Input, type Kind, type KubeObject } from '@capstan/kube'
import type { DryRunRequest, Case, Twin } from '../../twin.ts'

/** A description, and a merge patch of the object `valid` of an AdmissionTable. */
export type Change = readonly [what: string, patch: object]

/** The inputs of one kind: a valid object, and changes of this object, which may make it invalid. */
export interface AdmissionTable<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly valid: Input<T>
  readonly changes: readonly Change[]
  /** Creates the objects that must exist before the object of the table. Default: none. */
  readonly before?: (twin: Twin) => Promise<void>
}

const paused = { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }

/** Returns a case that compares the responses of upstream's core and of Capstan's to all changes, and to a deletion. */
export function admission<T extends KubeObject>({ kind, valid, changes, before }: AdmissionTable<T>): Case {
  return async (twin) => {
    await before?.(twin)
    // The object is paused, so that no controller changes it in the meantime.
    const existing = merged(valid, paused)
    await twin.create(kind, existing as Input<T>)
    await twin.settle('an object exists')
    const name = valid.metadata.name!
    const creations = changes.map(([what, patch]): DryRunRequest => {
      const body = merged(merged(valid, { metadata: { name: `${name}-new` } }), patch)
      return { what: `to create: ${what}`, method: 'POST', body }
    })
    const updates = changes.map(
      ([what, patch]): DryRunRequest => ({ what: `to update: ${what}`, method: 'PATCH', name, body: patch }),
    )
    await twin.compareDryRuns(kind, [...creations, ...updates, { what: 'to delete', method: 'DELETE', name }])
    await twin.settle('all responses are compared')
  }
}

const merged = (object: object, patch: object): object => applyMergePatch(object, patch)

/** Returns one change for each value. */
export const each = (what: string, values: readonly unknown[], patch: (value: unknown) => object): Change[] =>
  values.map((value) => [`${what} ${JSON.stringify(value)}`, patch(value)])

/**
 * Returns changes of a MachineSpec. `patchOf` puts a patch of the MachineSpec at its place in a patch of the object, such as
 * `spec.template.spec`.
 */
export const machineSpecChanges = (patchOf: (spec: object) => object): Change[] => {
  const specs = (what: string, values: readonly unknown[], spec: (value: unknown) => object) =>
    each(what, values, (value) => patchOf(spec(value)))
  const configRef = { apiGroup: 'twin.capstan.dev', kind: 'StubConfig', name: 'm' }
  const taint = (fields: object = {}) => ({ key: 'k', value: 'v', effect: 'NoSchedule', propagation: 'Always', ...fields })
  return [
    ...specs(
      'version',
      ['v1.35.0', '1.35.0', 'v1.35', 'v1.35.0+build.1', 'v1.35.0-rc.1', '1', 'nonsense', 'v1.35.0.0', 'V1.35.0', 'v01.35.0', ''],
      (version) => ({ version }),
    ),
    ...specs(
      'bootstrap',
      [
        { configRef: null },
        { configRef: null, dataSecretName: 'data' },
        { configRef: null, dataSecretName: '' },
        { configRef, dataSecretName: 'data' },
        { configRef: { ...configRef, name: '' } },
        { configRef: { ...configRef, kind: 'stub config' } },
        { configRef: { ...configRef, apiGroup: '' } },
        { configRef: { ...configRef, namespace: 'other' } },
        null,
      ],
      (bootstrap) => ({ bootstrap }),
    ),
    ...specs('clusterName', ['other', '', null, 'x'.repeat(64)], (clusterName) => ({ clusterName })),
    ...specs('infrastructureRef', [null, { name: null }, { kind: '1' }, { apiGroup: 'a b' }], (infrastructureRef) => ({
      infrastructureRef,
    })),
    ...specs('failureDomain', ['a', '', 'x'.repeat(257)], (failureDomain) => ({ failureDomain })),
    ...specs('minReadySeconds', [-1, 0, 5, '5'], (minReadySeconds) => ({ minReadySeconds })),
    ...specs(
      'deletion',
      [
        {},
        { nodeDrainTimeoutSeconds: -1 },
        { nodeDrainTimeoutSeconds: 0 },
        { nodeVolumeDetachTimeoutSeconds: 3 },
        { nodeDeletionTimeoutSeconds: 0 },
        { nodeDeletionTimeoutSeconds: 5 },
      ],
      (deletion) => ({ deletion }),
    ),
    ...specs(
      'readinessGates',
      [
        [],
        [{ conditionType: 'A' }],
        [{ conditionType: 'A' }, { conditionType: 'A' }],
        [{ conditionType: 'A', polarity: 'Negative' }],
        [{ conditionType: 'A', polarity: 'Odd' }],
        [{ conditionType: 'not a type' }],
        [{}],
      ],
      (readinessGates) => ({ readinessGates }),
    ),
    ...specs(
      'taints',
      [
        [],
        [taint()],
        [taint(), taint()],
        [taint(), taint({ effect: 'NoExecute' })],
        [taint({ propagation: 'OnInitialization' })],
        [taint({ propagation: 'Sometimes' })],
        [taint({ effect: 'Odd' })],
        [taint({ key: 'not a key' })],
        [taint({ key: 'node.kubernetes.io/not-ready' })],
        [taint({ key: 'node.kubernetes.io/out-of-service' })],
        [taint({ key: 'node.cloudprovider.kubernetes.io/uninitialized' })],
        [taint({ key: 'node.cluster.x-k8s.io/uninitialized' })],
        [taint({ key: 'node.cluster.x-k8s.io/outdated-revision' })],
        [taint({ key: 'node-role.kubernetes.io/master' })],
        [taint({ key: 'node-role.kubernetes.io/control-plane' })],
        [taint({ value: 'not a value!' })],
        [taint({ value: null })],
        [taint({ key: `${'a'.repeat(254)}/b` })],
      ],
      (taints) => ({ taints }),
    ),
    ...specs('providerID', ['twin://x', ''], (providerID) => ({ providerID })),
  ]
}

const ofMetadata = (fields: object) => ({ metadata: fields })

/** Changes of the object's `metadata`, an empty change, and an unknown field. */
export const metadataChanges: readonly Change[] = [
  ['nothing', {}],
  ...each('label cluster-name', ['other', '', null], (value) =>
    ofMetadata({ labels: { 'cluster.x-k8s.io/cluster-name': value } }),
  ),
  ...each('label', ['a', 'not valid!', 'x'.repeat(64)], (value) => ofMetadata({ labels: { extra: value } })),
  ...each('annotation', ['a', 'anything goes!'], (value) => ofMetadata({ annotations: { extra: value } })),
  ['an unknown field', { spec: { unknown: 1 } }],
]

/** Changes of `spec.template.metadata`. */
export const templateMetadataChanges: readonly Change[] = [
  ...each('template label', ['a', 'not valid!', 'x'.repeat(64), null], (value) => ({
    spec: { template: { metadata: { labels: { extra: value } } } },
  })),
  ...each('template label key', ['not a key', 'a/b/c'], (key) => ({
    spec: { template: { metadata: { labels: { [String(key)]: 'x' } } } },
  })),
  ...each('template annotation key', ['not a key', 'a/b/c'], (key) => ({
    spec: { template: { metadata: { annotations: { [String(key)]: 'x' } } } },
  })),
  ['template annotation', { spec: { template: { metadata: { annotations: { extra: 'anything goes!' } } } } }],
]

const autoscaler = (minimum: string | null, maximum: string | null) => ({
  'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size': minimum,
  'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': maximum,
})

/** Changes of replicas, with and without limits of an autoscaler. */
export const replicasChanges: readonly Change[] = [
  ...each('replicas', [null, 0, 3, -1, '3'], (replicas) => ({ spec: { replicas } })),
  ...(
    [
      ['3', '7'],
      ['0', '0'],
      ['3', null],
      [null, '7'],
      ['three', '7'],
      ['3', 'seven'],
      ['7', '3'],
      ['-1', '3'],
    ] as const
  ).flatMap(([minimum, maximum]) =>
    [null, 2].map(
      (replicas): Change => [
        `autoscaler ${minimum} to ${maximum} and replicas ${replicas}`,
        { metadata: { annotations: autoscaler(minimum, maximum) }, spec: { replicas } },
      ],
    ),
  ),
]

/** Changes of the selectors of MachineSets and MachineDeployments. */
export const selectorChanges: readonly Change[] = [
  ['no selector', { spec: { selector: null } }],
  ['an empty selector', { spec: { selector: { matchLabels: null } } }],
  ['a selector that does not match', { spec: { selector: { matchLabels: { other: 'x' } } } }],
  ['a selector with a bad key', { spec: { selector: { matchLabels: { 'not a key': 'x' } } } }],
  ['a selector with a bad value', { spec: { selector: { matchLabels: { key: 'not a value!' } } } }],
  ...each(
    'a selector with',
    [
      [{ key: 'a', operator: 'Exists' }],
      [{ key: 'a', operator: 'Exists', values: ['x'] }],
      [{ key: 'a', operator: 'In' }],
      [{ key: 'a', operator: 'Like', values: ['x'] }],
      [{ key: 'not a key', operator: 'DoesNotExist' }],
    ],
    (matchExpressions) => ({ spec: { selector: { matchExpressions } } }),
  ),
]

/** Changes of the naming templates of Machines. */
export const namingChanges: readonly Change[] = each(
  'machineNaming',
  [
    '{{ .cluster.name }}-{{ .random }}',
    '{{ .machineSet.name }}-{{ .random }}',
    '{{ .cluster.name }}',
    '{{ .random }}',
    '{{ .random }}-{{ .nothing }}',
    '{{ .random',
    'Upper-{{ .random }}',
    '-{{ .random }}',
    '{{ .cluster.name | upper }}-{{ .random }}',
    '{{ .random }}_x',
    '',
  ],
  (template) => ({ spec: { machineNaming: { template } } }),
)
