/** Inputs for the admission of health checks, drain rules, resource sets, addresses and extensions. */
import {
  Cluster,
  ClusterResourceSet,
  ClusterResourceSetBinding,
  ExtensionConfig,
  IPAddress,
  IPAddressClaim,
  MachineDrainRule,
  MachineHealthCheck,
} from '@capstan/api'
import { clusterName } from '../../objects.ts'
import type { Cases } from '../../twin.ts'
import { admission, type Change, each, metadataChanges } from './table.ts'

/** Valid and invalid label selectors. */
const selectors: readonly unknown[] = [
  null,
  {},
  { matchLabels: {} },
  { matchLabels: { a: 'b' } },
  { matchLabels: { 'not a key': 'b' } },
  { matchLabels: { a: 'not a value!' } },
  { matchExpressions: [] },
  { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
  { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
  { matchExpressions: [{ key: 'a', operator: 'In', values: ['b', 'c'] }] },
  { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] },
  { matchExpressions: [{ key: 'a', operator: 'NotIn' }] },
  { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] },
  { matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }] },
  { matchExpressions: [{ key: 'not a key', operator: 'Exists' }] },
  { matchExpressions: [{ key: 'a', operator: 'In', values: ['not a value!'] }] },
]

const intOrPercent = [0, 1, -1, '0%', '10%', '110%', 'ten', '10', '-5%', '']
/** Returns a function that creates a merge patch with its argument as the value of the field at `path`. */
const patchAt = (path: string) => (value: unknown) =>
  path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as object
const condition = (fields: object = {}) => ({ type: 'Ready', status: 'False', timeoutSeconds: 30, ...fields })
const conditionLists = [
  [],
  [condition()],
  [condition(), condition()],
  [condition({ timeoutSeconds: -1 })],
  [condition({ timeoutSeconds: 0 })],
  [condition({ timeoutSeconds: null })],
  [condition({ status: 'Maybe' })],
  [condition({ type: '' })],
  [condition({ type: 'Available' })],
  [condition({ type: 'HealthCheckSucceeded' })],
  [condition({ type: 'OwnerRemediated' })],
]

const anySelector = { matchLabels: { a: 'b' } }
const remediationTemplate = { apiVersion: 'twin.capstan.dev/v1', kind: 'StubRemediationTemplate', name: 'r' }

const poolRef = { apiGroup: 'pools.example.com', kind: 'Pool', name: 'p' }
const addresses = [
  '10.0.0.1',
  '10.0.0',
  '10.0.0.256',
  '010.0.0.1',
  'fe80::1',
  'fe80::1%eth0',
  '::ffff:10.0.0.1',
  'nonsense',
  '',
  null,
  '10.0.0.1/24',
  '::',
  '1:2:3:4:5:6:7:8:9',
]
const poolRefs = [
  null,
  { name: '' },
  { name: 'other' },
  { kind: 'Other' },
  { apiGroup: 'other.example.com' },
  { apiGroup: '' },
  { kind: 'not a kind' },
  { namespace: 'other' },
]

const inlineUrl = (url: unknown): Change => [`url ${JSON.stringify(url)}`, { spec: { clientConfig: { url } } }]
const service = (fields: object): Change => [
  `service ${JSON.stringify(fields)}`,
  { spec: { clientConfig: { url: null, service: { name: 'svc', namespace: 'default', ...fields } } } },
]

export const otherAdmissionCases: Cases = {
  'admission-machinehealthcheck': admission({
    kind: MachineHealthCheck,
    valid: { metadata: { name: 'mhc' }, spec: { clusterName, selector: anySelector, checks: { nodeStartupTimeoutSeconds: 60 } } },
    changes: [
      ...metadataChanges,
      ...each('selector', selectors, (selector) => ({ spec: { selector } })),
      ...each('cluster in the selector', [clusterName, 'other'], (name) => ({
        spec: { selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': name } } },
      })),
      ...each('clusterName', ['other', '', null], patchAt('spec.clusterName')),
      ...each('checks', [null, {}], patchAt('spec.checks')),
      ...each('nodeStartupTimeoutSeconds', [null, 0, 1, 29, 30, 600, -1, '60'], patchAt('spec.checks.nodeStartupTimeoutSeconds')),
      ...each('node conditions', conditionLists, patchAt('spec.checks.unhealthyNodeConditions')),
      ...each('machine conditions', conditionLists, patchAt('spec.checks.unhealthyMachineConditions')),
      ...each('unhealthyLessThanOrEqualTo', intOrPercent, patchAt('spec.remediation.triggerIf.unhealthyLessThanOrEqualTo')),
      ...each(
        'unhealthyInRange',
        ['[1-3]', '[3-1]', '(1-3)', '[1-]', '1-3', ''],
        patchAt('spec.remediation.triggerIf.unhealthyInRange'),
      ),
      ...each(
        'remediation template',
        [remediationTemplate, { ...remediationTemplate, apiVersion: 'v1/v1/v1' }, { ...remediationTemplate, name: '' }, {}],
        patchAt('spec.remediation.templateRef'),
      ),
      [
        'several errors',
        {
          spec: {
            clusterName: 'other',
            selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': clusterName } },
            checks: { nodeStartupTimeoutSeconds: 1 },
            remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 'x' } },
          },
        },
      ],
    ],
  }),
  'admission-machinedrainrule': admission({
    kind: MachineDrainRule,
    valid: { metadata: { name: 'rule' }, spec: { drain: { behavior: 'Drain', order: 5 } } },
    changes: [
      ...metadataChanges,
      ...['Drain', 'Skip', 'WaitCompleted', 'Odd', null].flatMap((behavior) =>
        each(`behavior ${behavior} and order`, [null, 0, 5, -5], (order) => ({ spec: { drain: { behavior, order } } })),
      ),
      ...each('pods', selectors, (selector) => ({ spec: { pods: [{ selector }] } })),
      ...each('namespaces', selectors, (namespaceSelector) => ({ spec: { pods: [{ namespaceSelector }] } })),
      ...each('machines', selectors, (selector) => ({ spec: { machines: [{ selector }] } })),
      ...each('clusters', selectors, (clusterSelector) => ({ spec: { machines: [{ clusterSelector }] } })),
      ...each('two equal entries of', ['pods', 'machines'], (list) => ({
        spec: { [String(list)]: [{ selector: anySelector }, { selector: anySelector }] },
      })),
      ...each('an empty list of', ['pods', 'machines'], (list) => ({ spec: { [String(list)]: [] } })),
    ],
  }),
  'admission-clusterresourceset': admission({
    kind: ClusterResourceSet,
    valid: {
      metadata: { name: 'crs' },
      spec: { clusterSelector: anySelector, resources: [{ kind: 'ConfigMap', name: 'a' }], strategy: 'ApplyOnce' },
    },
    changes: [
      ...metadataChanges,
      ...each('clusterSelector', selectors, patchAt('spec.clusterSelector')),
      ...each('clusterSelector with label', ['a', 'b', 'c'], (name) => ({
        spec: { clusterSelector: { matchLabels: { [String(name)]: 'x' } } },
      })),
      ...each('strategy', ['ApplyOnce', 'Reconcile', 'Odd', '', null], patchAt('spec.strategy')),
      ['several errors', { spec: { clusterSelector: { matchLabels: { 'not valid': 'x' } }, strategy: 'Reconcile' } }],
      ...each(
        'resources',
        [
          null,
          [],
          [{ kind: 'Secret', name: 's' }],
          [{ kind: 'Pod', name: 'p' }],
          [{ kind: 'ConfigMap', name: '' }],
          [{ kind: 'ConfigMap' }],
          [{ name: 'a' }],
          [
            { kind: 'ConfigMap', name: 'a' },
            { kind: 'ConfigMap', name: 'a' },
          ],
          [{ kind: 'ConfigMap', name: 'x'.repeat(254) }],
        ],
        patchAt('spec.resources'),
      ),
    ],
  }),
  'admission-clusterresourcesetbinding': admission({
    kind: ClusterResourceSetBinding,
    valid: {
      metadata: { name: 'b', labels: { 'cluster.x-k8s.io/cluster-name': clusterName } },
      spec: { clusterName, bindings: [{ clusterResourceSetName: 'crs', resources: [] }] },
    },
    // The controllers delete a binding whose Cluster (`spec.clusterName`) does not exist. A ClusterResourceSet names a binding
    // after its Cluster, so the case also creates a Cluster with the name of the binding.
    before: async (twin) => {
      await twin.create(Cluster, {
        metadata: { name: clusterName },
        spec: { paused: true, clusterNetwork: { serviceDomain: 'x' } },
      })
      await twin.create(Cluster, { metadata: { name: 'b' }, spec: { paused: true, clusterNetwork: { serviceDomain: 'x' } } })
    },
    changes: [
      ...metadataChanges,
      ...each('clusterName', ['other', '', null, clusterName, 'x'.repeat(64)], patchAt('spec.clusterName')),
      ...each(
        'bindings',
        [
          null,
          [],
          [{ clusterResourceSetName: '' }],
          [{}],
          [{ clusterResourceSetName: 'x'.repeat(254) }],
          [{ clusterResourceSetName: 'crs' }, { clusterResourceSetName: 'crs' }],
        ],
        patchAt('spec.bindings'),
      ),
      ...each(
        'a resource',
        [
          { kind: 'ConfigMap', name: 'a', applied: true },
          { kind: 'Secret', name: 'a', applied: false, hash: 'sha256:1' },
          { kind: 'Pod', name: 'a', applied: true },
          { kind: 'ConfigMap', name: '', applied: true },
          { kind: 'ConfigMap', name: 'a' },
          { name: 'a', applied: true },
          { kind: 'ConfigMap', name: 'a', applied: true, lastAppliedTime: '2026-01-01T00:00:00Z' },
          { kind: 'ConfigMap', name: 'a', applied: true, lastAppliedTime: 'yesterday' },
          { kind: 'ConfigMap', name: 'a', applied: 'yes' },
          { kind: 'ConfigMap', name: 'a', applied: true, hash: '' },
        ],
        (resource) => ({ spec: { bindings: [{ clusterResourceSetName: 'crs', resources: [resource] }] } }),
      ),
    ],
  }),
  'admission-ipaddress': admission({
    kind: IPAddress,
    valid: {
      metadata: { name: 'ip' },
      spec: { address: '10.0.0.2', prefix: 24, gateway: '10.0.0.1', claimRef: { name: 'claim' }, poolRef },
    },
    before: (twin) => twin.create(IPAddressClaim, { metadata: { name: 'claim' }, spec: { poolRef } }),
    changes: [
      ...metadataChanges,
      ...each('address', addresses, patchAt('spec.address')),
      ...each('gateway', addresses, patchAt('spec.gateway')),
      ...each('prefix', [null, -1, 0, 1, 32, 33, 128, 129, '24'], patchAt('spec.prefix')),
      ...each('prefix of IPv6', [0, 64, 128, 129], (prefix) => ({ spec: { address: 'fd00::1', gateway: 'fd00::2', prefix } })),
      ...each('claim', [null, { name: '' }, { name: 'nobody' }], patchAt('spec.claimRef')),
      ...each('pool', poolRefs, patchAt('spec.poolRef')),
      ['another pool, and a claim that does not exist', { spec: { claimRef: { name: 'nobody' }, poolRef: { name: 'other' } } }],
    ],
  }),
  'admission-ipaddressclaim': admission({
    kind: IPAddressClaim,
    valid: { metadata: { name: 'claim' }, spec: { clusterName, poolRef } },
    changes: [
      ...metadataChanges,
      ...each('pool', poolRefs, patchAt('spec.poolRef')),
      ...each('clusterName', ['other', '', null, 'x'.repeat(64), 'not valid!'], patchAt('spec.clusterName')),
      ...each('pool name', ['a', 'a.b', 'A', 'x'.repeat(254), 'a b'], patchAt('spec.poolRef.name')),
      ...each('pool group', ['a', 'a.b', 'A.b', 'x'.repeat(254), 'a b'], patchAt('spec.poolRef.apiGroup')),
      ...each('pool kind', ['A', 'a', 'A-b', 'x'.repeat(64), 'A b'], patchAt('spec.poolRef.kind')),
    ],
  }),
  'admission-extensionconfig': admission({
    kind: ExtensionConfig,
    valid: { metadata: { name: 'twin-admission' }, spec: { clientConfig: { url: 'https://127.0.0.1:1/x' } } },
    changes: [
      ...metadataChanges,
      ...[
        'https://example.com',
        'https://example.com/path',
        'http://example.com',
        'example.com',
        '',
        null,
        'https://',
        'https://example.com:port',
        'https://user@example.com',
        'https://example.com/?a=b',
        'https://example.com/#f',
        '://x',
        'ftp://example.com',
        `https://example.com/${'x'.repeat(512)}`,
      ].map(inlineUrl),
      ...[
        {},
        { port: 1 },
        { port: 0 },
        { port: 65_536 },
        { port: 'http' },
        { path: '/x' },
        { path: 'x' },
        { path: '/' },
        { path: '/%zz' },
        { name: '' },
        { name: 'Upper' },
        { name: '1svc' },
        { name: 'a.b' },
        { name: 'x'.repeat(64) },
        { namespace: '' },
        { namespace: 'Upper' },
        { namespace: '1ns' },
        { namespace: null },
      ].map(service),
      ['url and service', { spec: { clientConfig: { service: { name: 'svc', namespace: 'default' } } } }],
      ['neither url nor service', { spec: { clientConfig: { url: null, caBundle: 'Q0E=' } } }],
      ['an empty clientConfig', { spec: { clientConfig: null } }],
      ...each('caBundle', ['Q0E=', 'not base64!', ''], patchAt('spec.clientConfig.caBundle')),
      ...each('namespaceSelector', selectors, patchAt('spec.namespaceSelector')),
      ...each('settings', [{ a: 'b' }, {}, { a: 1 }], patchAt('spec.settings')),
      ...each('name', ['a.b', `a${'b'.repeat(63)}`], (name) => ({ metadata: { name } })),
    ],
  }),
}
