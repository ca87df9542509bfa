/**
 * Mutants of the local provider and of an IPAM provider: each violates the rule in its field `rule`. The code of the providers is unchanged.
 * `read` changes the objects that a provider receives from the API server, `write` the objects that it writes, and `crd` the declarations
 * of its kinds.
 */
import {
  ClusterNameLabel,
  MachineControlPlaneLabel,
  MachinePoolNameLabel,
  ManagedByAnnotation,
  PausedAnnotation,
} from '@capstan/api'
import type { JSONSchema } from '@capstan/kube'

/** Any JSON object, as a draft that mutants change. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Draft = any

/** A create, update or patch by the provider. */
export interface Write {
  readonly verb: string
  readonly plural: string
  readonly name: string | undefined
  readonly subresource: string | undefined
  /** Merge patch or object. */
  readonly body: Draft
}

export interface Mutant {
  /** The rule that the mutant violates. */
  readonly rule: string
  /** The mistake of the mutant. */
  readonly what: string
  /** Changes an object that the provider receives. */
  read?(plural: string, object: Draft): void
  /** Changes a write. `starts`: number of starts of the provider so far. */
  write?(write: Write, starts: number): void
  /** Changes a CustomResourceDefinition. */
  crd?(plural: string, crd: Draft): void
  /** Whether only the infrastructure is under test, because other kinds of the provider would hide the mutation. */
  readonly infrastructureOnly?: true
  /** Reason why conform does not detect the mutant. */
  readonly survives?: string
}

const clusters = 'localclusters'
const machines = 'localmachines'
const pools = 'localmachinepools'
const configs = 'localbootstrapconfigs'
const controlPlanes = 'localcontrolplanes'

/** Removes a field from all writes to objects of a kind. */
const removeField =
  (plural: string, ...path: string[]) =>
  (write: Write): void => {
    if (write.plural === plural) remove(write.body, path)
  }

function remove(object: Draft, path: readonly string[]): void {
  const parent = path.slice(0, -1).reduce((value, name) => value?.[name], object)
  if (parent) delete parent[path.at(-1)!]
}

/** Replaces a value in all writes to objects of a kind that set the value. */
const replaceValue =
  (plural: string, path: readonly string[], value: (before: Draft, write: Write) => unknown) =>
  (write: Write): void => {
    if (write.plural !== plural) return
    const parent = path.slice(0, -1).reduce((current, name) => current?.[name], write.body)
    const last = path.at(-1)!
    if (parent && parent[last] !== undefined && parent[last] !== null) parent[last] = value(parent[last], write)
  }

const removeCondition =
  (plural: string, type: string) =>
  (write: Write): void => {
    const { status } = write.body ?? {}
    if (write.plural === plural && status?.conditions)
      status.conditions = status.conditions.filter((one: Draft) => one.type !== type)
  }

/** Keeps the finalizers of an object when the provider removes the last one. */
const keepFinalizer =
  (plural: string) =>
  ({ plural: writtenPlural, body }: Write): void => {
    const { finalizers } = body?.metadata ?? {}
    if (writtenPlural === plural && finalizers !== undefined && (finalizers === null || finalizers.length === 0))
      delete body.metadata.finalizers
  }

/** Hides `spec.paused` of Clusters from the provider. */
const hideClusterPause = (plural: string, object: Draft): void => {
  if (plural === 'clusters') delete object.spec.paused
}

const hideAnnotation =
  (plural: string, annotation: string) =>
  (pluralOfObject: string, object: Draft): void => {
    if (pluralOfObject === plural) delete object.metadata.annotations?.[annotation]
  }

/** Changes Secrets when they are created. `ending`: suffix of their names. */
const onSecretCreate =
  (ending: string, change: (body: Draft) => void) =>
  ({ plural, verb, body }: Write): void => {
    if (plural === 'secrets' && verb === 'create' && body.metadata.name.endsWith(ending)) change(body)
  }

const onDataSecretCreate = (change: (body: Draft) => void) =>
  function write({ plural, verb, body }: Write): void {
    const owner = body?.metadata?.ownerReferences?.[0]?.kind
    if (plural === 'secrets' && verb === 'create' && owner === 'LocalBootstrapConfig') change(body)
  }

const replaceInBootstrapData = (text: string, other: string) =>
  onDataSecretCreate(({ data }) => (data.value = btoa(atob(data.value).replaceAll(text, other))))

const schemaOf = (crd: Draft): Draft => crd.spec.versions[0].schema.openAPIV3Schema

/** Replaces or removes the schema of a field. */
const schemaField =
  (plural: string, path: string, schema?: JSONSchema) =>
  (pluralOfCrd: string, crd: Draft): void => {
    if (pluralOfCrd !== plural) return
    const names = path.split('.')
    const last = names.pop()!
    const parent = names.reduce((schemaNode, name) => schemaNode.properties[name], schemaOf(crd))
    if (schema) parent.properties[last] = schema
    else delete parent.properties[last]
  }

const onCrd =
  (plural: string, change: (crd: Draft) => void) =>
  (pluralOfCrd: string, crd: Draft): void => {
    if (pluralOfCrd === plural) change(crd)
  }

/** Mutants of the declarations, for which no provider has to run. */
const declared: readonly Mutant[] = [
  {
    rule: 'namespaced-scope',
    what: 'LocalMachine is cluster-scoped',
    crd: onCrd(machines, (crd) => (crd.spec.scope = 'Cluster')),
  },
  {
    rule: 'crd-name',
    what: 'LocalMachine is served as localmachinez',
    crd: onCrd(machines, (crd) => {
      crd.metadata.name = 'localmachinez.infrastructure.capstan.dev'
      crd.spec.names.plural = 'localmachinez'
    }),
  },
  { rule: 'list-kind', what: 'the list kind is Machines', crd: onCrd(machines, (crd) => (crd.spec.names.listKind = 'Machines')) },
  {
    rule: 'contract-label',
    what: 'LocalMachineTemplate has no contract label',
    crd: onCrd('localmachinetemplates', (crd) => delete crd.metadata.labels['cluster.x-k8s.io/v1beta2']),
  },
  {
    rule: 'label-versions',
    what: 'the label names a version that does not exist',
    crd: onCrd(machines, (crd) => (crd.metadata.labels['cluster.x-k8s.io/v1beta2'] = 'v9')),
  },
  {
    rule: 'other-label-versions',
    what: 'the label of the older contract names a version that does not exist',
    crd: onCrd(machines, (crd) => (crd.metadata.labels['cluster.x-k8s.io/v1beta1'] = 'v0')),
  },
  {
    rule: 'newest-contract',
    what: 'LocalMachine claims contract v1beta1 alone',
    crd: onCrd(machines, (crd) => {
      crd.metadata.labels['cluster.x-k8s.io/v1beta1'] = 'v1alpha1'
      delete crd.metadata.labels['cluster.x-k8s.io/v1beta2']
    }),
  },
  {
    rule: 'status-subresource',
    what: 'LocalCluster has no status subresource',
    crd: onCrd(clusters, (crd) => delete crd.spec.versions[0].subresources.status),
  },
  {
    rule: 'conversion',
    what: 'a second version has another schema and no webhook',
    crd: onCrd(machines, (crd) =>
      crd.spec.versions.push({
        ...crd.spec.versions[0],
        name: 'v1',
        storage: false,
        schema: { openAPIV3Schema: { type: 'object' } },
      }),
    ),
  },
  {
    rule: 'printer-columns',
    what: 'LocalMachine has no columns',
    crd: onCrd(machines, (crd) => delete crd.spec.versions[0].additionalPrinterColumns),
  },
  {
    rule: 'short-names',
    what: 'LocalMachine has neither short names nor categories',
    crd: onCrd(machines, (crd) => {
      delete crd.spec.names.shortNames
      delete crd.spec.names.categories
    }),
  },
  ...(
    [
      ['infra-cluster', clusters],
      ['infra-machine', machines],
      ['infra-machine-pool', pools],
      ['bootstrap-config', configs],
      ['control-plane', controlPlanes],
    ] as const
  ).flatMap(([id, plural]): Mutant[] => [
    { rule: `${id}.resource`, what: 'the status is a string', crd: schemaField(plural, 'status', { type: 'string' }) },
    {
      rule: `${id}.initialization`,
      what: 'the schema has no status.initialization',
      crd: (pluralOfCrd, crd) => {
        schemaField(plural, 'status.initialization')(pluralOfCrd, crd)
        // Either of the two fields fulfils the rule for pools.
        if (plural === pools) schemaField(plural, 'status.ready')(pluralOfCrd, crd)
      },
    },
    {
      rule: `${id}.conditions`,
      what: 'conditions have a severity',
      crd: onCrd(plural, (crd) => {
        schemaOf(crd).properties.status.properties.conditions.items.properties.severity = { type: 'string' }
      }),
    },
    {
      rule: `${id}.terminal-failures`,
      what: 'failureReason is an integer',
      crd: schemaField(plural, 'status.failureReason', { type: 'integer' }),
    },
    {
      rule: `${id}.template-fields`,
      what: 'the template has no spec.template.metadata',
      crd: schemaField(plural.replace(/s$/, 'templates'), 'spec.template.metadata'),
    },
  ]),
  {
    rule: 'infra-cluster.endpoint',
    what: 'the port is a string',
    crd: schemaField(clusters, 'spec.controlPlaneEndpoint.port', { type: 'string' }),
  },
  {
    rule: 'infra-cluster.failure-domains',
    what: 'failure domains are a map',
    crd: schemaField(clusters, 'status.failureDomains', { type: 'object', additionalProperties: { type: 'object' } }),
  },
  {
    rule: 'infra-machine.provider-id',
    what: 'providerID is an integer',
    crd: schemaField(machines, 'spec.providerID', { type: 'integer' }),
  },
  {
    rule: 'infra-machine.failure-domain',
    what: 'the failure domain is an object',
    crd: schemaField(machines, 'status.failureDomain', { type: 'object' }),
  },
  {
    rule: 'infra-machine.addresses',
    what: 'addresses are strings',
    crd: schemaField(machines, 'status.addresses', { type: 'array', items: { type: 'string' } }),
  },
  {
    rule: 'infra-machine-pool.provider-id-list',
    what: 'providerIDList is a string',
    crd: schemaField(pools, 'spec.providerIDList', { type: 'string' }),
  },
  { rule: 'infra-machine-pool.replicas', what: 'status.replicas is missing', crd: schemaField(pools, 'status.replicas') },
  {
    rule: 'infra-machine-pool.instances',
    what: 'instances are a string',
    crd: schemaField(pools, 'status.instances', { type: 'string' }),
  },
  {
    rule: 'infra-machine-pool.provider-id',
    what: 'spec.providerID of the pool is an object',
    crd: schemaField(pools, 'spec.providerID', { type: 'object' }),
  },
  {
    rule: 'bootstrap-config.data-secret',
    what: 'dataSecretName is missing',
    crd: schemaField(configs, 'status.dataSecretName'),
  },
  { rule: 'control-plane.replicas', what: 'status.selector is missing', crd: schemaField(controlPlanes, 'status.selector') },
  {
    rule: 'control-plane.scale',
    what: 'the scale subresource is missing',
    crd: onCrd(controlPlanes, (crd) => delete crd.spec.versions[0].subresources.scale),
  },
  {
    rule: 'control-plane.machines',
    what: 'the machine template has no timeouts',
    crd: schemaField(controlPlanes, 'spec.machineTemplate.spec.deletion'),
  },
  {
    rule: 'control-plane.template-machine-metadata',
    what: 'the template has no metadata of Machines',
    crd: schemaField('localcontrolplanetemplates', 'spec.template.spec.machineTemplate.metadata'),
  },
]

/**
 * Mutants that never report `status.initialization`. For machine pools see the rule `infra-machine-pool.both-ready` below.
 */
const initializationMutants = (
  [
    ['infra-cluster', clusters],
    ['infra-machine', machines],
    ['bootstrap-config', configs],
    ['control-plane', controlPlanes],
  ] as const
).map(
  ([id, plural]): Mutant => ({
    rule: `${id}.initialization`,
    what: 'never reports the initialization',
    write: removeField(plural, 'status', 'initialization'),
  }),
)

const pausingMutants = (
  [
    ['infra-cluster', clusters],
    ['infra-machine', machines],
    ['infra-machine-pool', pools],
    ['bootstrap-config', configs],
    ['control-plane', controlPlanes],
  ] as const
).flatMap(([id, plural]): Mutant[] => [
  { rule: `${id}.pausing`, what: 'ignores Cluster.spec.paused', read: hideClusterPause },
  { rule: `${id}.pausing`, what: 'does not report the condition Paused', write: removeCondition(plural, 'Paused') },
  ...(plural === controlPlanes
    ? []
    : [{ rule: `${id}.pausing`, what: 'ignores the annotation paused', read: hideAnnotation(plural, PausedAnnotation) }]),
])

/** Mutants of the controllers. */
const controllerMutants: readonly Mutant[] = [
  ...initializationMutants,
  ...pausingMutants,
  ...(
    [
      ['infra-cluster', clusters],
      ['infra-machine', machines],
      ['infra-machine-pool', pools],
      ['control-plane', controlPlanes],
    ] as const
  ).map(([id, plural]): Mutant => ({ rule: `${id}.deletion`, what: 'keeps its finalizer', write: keepFinalizer(plural) })),
  {
    rule: 'infra-cluster.endpoint',
    what: 'reports no endpoint',
    write: removeField(clusters, 'spec', 'controlPlaneEndpoint'),
  },
  {
    rule: 'infra-cluster.externally-managed',
    what: 'ignores the annotation managed-by',
    read: hideAnnotation(clusters, ManagedByAnnotation),
  },
  {
    rule: 'infra-machine.initialization',
    what: 'resets provisioned in every second one of its first 20 status writes',
    write: (write) => {
      if (write.plural === machines && write.body?.status?.conditions)
        write.body.status.initialization = { provisioned: alternates() }
    },
  },
  { rule: 'infra-machine.provider-id', what: 'reports no providerID', write: removeField(machines, 'spec', 'providerID') },
  {
    rule: 'infra-machine.provider-id',
    what: 'gives all machines the same providerID',
    write: replaceValue(machines, ['spec', 'providerID'], () => 'local:///same'),
  },
  {
    rule: 'infra-machine.waits-for-infrastructure',
    what: 'does not wait for the infrastructure',
    infrastructureOnly: true,
    read(plural, object) {
      if (plural === 'clusters') object.status = { ...object.status, initialization: { infrastructureProvisioned: true } }
    },
  },
  {
    rule: 'infra-machine.waits-for-bootstrap-data',
    what: 'does not wait for the bootstrap data',
    read(plural, object) {
      if (plural === 'machines') object.spec.bootstrap.dataSecretName ??= 'anything'
    },
  },
  {
    rule: 'infra-machine-pool.provider-id-list',
    what: 'repeats an ID',
    write: replaceValue(pools, ['spec', 'providerIDList'], (ids) => [...ids, ...ids.slice(0, 1)]),
  },
  {
    rule: 'infra-machine-pool.provider-id-list',
    what: 'keeps IDs of deleted machines',
    write: replaceValue(pools, ['spec', 'providerIDList'], (ids) => [...new Set([...ids, 'local:///gone-1', 'local:///gone-2'])]),
  },
  { rule: 'infra-machine-pool.provider-id-list', what: 'reports no ID', write: removeField(pools, 'spec', 'providerIDList') },
  {
    rule: 'infra-machine-pool.replicas',
    what: 'reports one replica too many',
    write: replaceValue(pools, ['status', 'replicas'], (count) => count + 1),
  },
  { rule: 'infra-machine-pool.replicas', what: 'reports no replicas', write: removeField(pools, 'status', 'replicas') },
  { rule: 'infra-machine-pool.both-ready', what: 'does not report status.ready', write: removeField(pools, 'status', 'ready') },
  {
    rule: 'infra-machine-pool.both-ready',
    what: 'does not report status.initialization.provisioned',
    write: removeField(pools, 'status', 'initialization'),
  },
  {
    rule: 'infra-machine-pool.machine-kind',
    what: 'makes machines without the label of the pool',
    write: removeField(machines, 'metadata', 'labels', MachinePoolNameLabel),
  },
  {
    rule: 'bootstrap-config.data-secret',
    what: 'the Secret has no label',
    write: onDataSecretCreate((body) => delete body.metadata.labels[ClusterNameLabel]),
  },
  {
    rule: 'bootstrap-config.data-secret',
    what: 'the owner is not the controller',
    write: onDataSecretCreate((body) => delete body.metadata.ownerReferences[0].controller),
  },
  {
    rule: 'bootstrap-config.data-secret',
    what: 'the data are under the key data',
    write: onDataSecretCreate((body) => {
      body.data.data = body.data.value
      delete body.data.value
    }),
  },
  {
    rule: 'bootstrap-config.sentinel-file',
    what: 'the data create no sentinel file',
    write: replaceInBootstrapData('/run/cluster-api/bootstrap-success.complete', '/run/done'),
  },
  {
    rule: 'bootstrap-config.taint',
    what: 'the data do not taint the Node',
    write: replaceInBootstrapData('node.cluster.x-k8s.io/uninitialized', 'example.com/new'),
  },
  {
    rule: 'bootstrap-config.deletion',
    what: 'adds a finalizer that it never removes',
    write({ plural, subresource, body }) {
      if (plural === configs && subresource === undefined && body.metadata) body.metadata.finalizers = ['example.com/forgotten']
    },
  },
  {
    rule: 'control-plane.replicas',
    what: 'reports one replica too few',
    write: replaceValue(controlPlanes, ['status', 'replicas'], (n) => n - 1),
  },
  { rule: 'control-plane.replicas', what: 'reports no selector', write: removeField(controlPlanes, 'status', 'selector') },
  {
    rule: 'control-plane.replicas',
    what: 'reports no upToDateReplicas',
    write: removeField(controlPlanes, 'status', 'upToDateReplicas'),
  },
  {
    rule: 'control-plane.scale',
    what: 'the selector of the scale subresource is empty',
    write: removeField(controlPlanes, 'status', 'selector'),
  },
  {
    rule: 'control-plane.version',
    what: 'reports no version',
    write(write) {
      removeField(controlPlanes, 'status', 'versions')(write)
      removeField(controlPlanes, 'status', 'version')(write)
    },
  },
  {
    rule: 'control-plane.version',
    what: 'reports versions from new to old',
    write: replaceValue(controlPlanes, ['status', 'versions'], (versions) => versions.toReversed()),
  },
  {
    rule: 'control-plane.version',
    what: 'reports the version of the spec during an upgrade',
    write: replaceValue(controlPlanes, ['status', 'versions'], (versions) => versions.slice(-1)),
    survives: 'Changes of a control plane and of its Machines come from two watches, which have no common order.',
  },
  {
    rule: 'control-plane.machine-label',
    what: 'the label has a value',
    write: replaceValue('machines', ['metadata', 'labels', MachineControlPlaneLabel], () => 'yes'),
  },
  {
    rule: 'control-plane.kubeconfig',
    what: 'the Secret has no label',
    write: onSecretCreate('-kubeconfig', (body) => delete body.metadata.labels),
  },
  {
    rule: 'control-plane.kubeconfig',
    what: 'the Secret is Opaque',
    write: onSecretCreate('-kubeconfig', (body) => delete body.type),
  },
  {
    rule: 'control-plane.kubeconfig',
    what: 'the Secret has another name',
    write: onSecretCreate('-kubeconfig', (body) => (body.metadata.name += '-admin')),
  },
  { rule: 'control-plane.certificates', what: 'the Secret is Opaque', write: onSecretCreate('-ca', (body) => delete body.type) },
  {
    rule: 'control-plane.certificates',
    what: 'the Secret has no label',
    write: onSecretCreate('-ca', (body) => delete body.metadata.labels),
  },
  {
    rule: 'control-plane.metadata',
    what: 'labels are not copied to existing Machines',
    write: ({ plural, verb, body }) => {
      if (plural === 'machines' && verb === 'patch') delete body.metadata?.labels
    },
  },
  {
    rule: 'control-plane.min-ready-seconds',
    what: 'Machines have no condition UpToDate',
    write: removeCondition('machines', 'UpToDate'),
  },
  {
    rule: 'control-plane.placement',
    what: 'all Machines are in one failure domain',
    write: replaceValue('machines', ['spec', 'failureDomain'], () => 'a'),
  },
  {
    rule: 'control-plane.placement',
    what: 'Machines have no failure domain',
    write: removeField('machines', 'spec', 'failureDomain'),
  },
  {
    rule: 'infra-cluster.restart',
    what: 'writes another spec after each start',
    // The finalizer is hidden from the provider, which therefore writes the object again.
    read(plural, object) {
      if (plural === clusters && !object.metadata.deletionTimestamp) delete object.metadata.finalizers
    },
    write({ plural, verb, subresource, body }, starts) {
      if (plural !== clusters || verb !== 'patch' || subresource !== undefined) return
      body.spec = { ...body.spec, failureDomains: [{ name: `start-${starts}`, controlPlane: true }] }
    },
  },
]

const claims = 'ipaddressclaims'
const addresses = 'ipaddresses'

/** Changes an owner reference of new IPAddresses: the first refers to the claim, the second to the pool. */
const onAddressOwner =
  (index: number, change: (reference: Draft) => void) =>
  ({ plural, verb, body }: Write): void => {
    if (plural === addresses && verb === 'create') change(body.metadata.ownerReferences[index])
  }

const withoutOwner = (index: number) =>
  function write({ plural, verb, body }: Write): void {
    if (plural === addresses && verb === 'create') body.metadata.ownerReferences.splice(index, 1)
  }

/** Mutants of an IPAM provider: `poolProvider` of `@capstan/testing`. */
const poolMutants: readonly Mutant[] = [
  {
    rule: 'ipam.claims',
    what: 'allocates the same address for all claims',
    write: replaceValue(addresses, ['spec', 'address'], () => '10.0.0.99'),
  },
  {
    rule: 'ipam.claims',
    what: 'ignores claims with any annotation, even after the pause',
    read(plural, object) {
      if (plural === claims && object.metadata.annotations) object.spec.poolRef.kind = 'OtherPool'
    },
  },
  {
    rule: 'ipam.foreign-claims',
    what: 'does not compare the group of the pool',
    read(plural, object) {
      if (plural === claims) object.spec.poolRef.apiGroup = 'ipam.example.com'
    },
  },
  {
    rule: 'ipam.foreign-claims',
    what: 'does not compare the kind of the pool',
    read(plural, object) {
      if (plural === claims) object.spec.poolRef.kind = 'DevPool'
    },
  },
  { rule: 'ipam.pausing', what: 'ignores Cluster.spec.paused', read: hideClusterPause },
  { rule: 'ipam.pausing', what: 'ignores the annotation of the Cluster', read: hideAnnotation('clusters', PausedAnnotation) },
  { rule: 'ipam.pausing', what: 'ignores the annotation of the claim', read: hideAnnotation(claims, PausedAnnotation) },
  {
    rule: 'ipam.pausing',
    what: 'ignores the label cluster-name of the claim',
    read(plural, object) {
      if (plural === claims) delete object.metadata.labels
    },
  },
  {
    rule: 'ipam.pausing',
    what: 'does not wait for a Cluster that does not exist',
    read(plural, object) {
      if (plural === claims && object.spec.clusterName === 'missing') delete object.spec.clusterName
    },
  },
  {
    rule: 'ipam.pausing',
    what: 'releases addresses of a paused Cluster',
    read(plural, object) {
      if (plural === claims && object.metadata.deletionTimestamp) delete object.spec.clusterName
    },
  },
  { rule: 'ipam.claim-finalizer', what: 'adds no finalizer to claims', write: removeField(claims, 'metadata', 'finalizers') },
  {
    rule: 'ipam.address-name',
    what: 'adds a suffix to the name',
    write({ plural, verb, body }) {
      if (plural === addresses && verb === 'create') body.metadata.name += '-address'
    },
  },
  { rule: 'ipam.address-claim-owner', what: 'the claim is not an owner', write: withoutOwner(0) },
  {
    rule: 'ipam.address-claim-owner',
    what: 'the claim is not the controller',
    write: onAddressOwner(0, (reference) => delete reference.controller),
  },
  {
    rule: 'ipam.address-claim-owner',
    what: 'the claim can be deleted first',
    write: onAddressOwner(0, (reference) => delete reference.blockOwnerDeletion),
  },
  { rule: 'ipam.address-pool-owner', what: 'the pool is not an owner', write: withoutOwner(1) },
  {
    rule: 'ipam.address-pool-owner',
    what: 'the pool can be deleted first',
    write: onAddressOwner(1, (reference) => delete reference.blockOwnerDeletion),
  },
  {
    rule: 'ipam.address-finalizer',
    what: 'adds no finalizer to addresses',
    write: removeField(addresses, 'metadata', 'finalizers'),
  },
  { rule: 'ipam.address-ref', what: 'does not report the address', write: removeField(claims, 'status', 'addressRef') },
  {
    rule: 'ipam.address-ref',
    what: 'reports an address that does not exist',
    write: replaceValue(claims, ['status', 'addressRef', 'name'], (name) => `${name}-address`),
  },
  { rule: 'ipam.release', what: 'keeps its finalizer on claims', write: keepFinalizer(claims) },
  { rule: 'ipam.release', what: 'keeps its finalizer on addresses', write: keepFinalizer(addresses) },
  { rule: 'ipam.pool-conditions', what: 'pools have no condition Ready', write: removeCondition('devpools', 'Ready') },
]

let calls = 0
/**
 * Returns true and false alternately. After 20 calls, returns only true: while a provider writes without end, the virtual clock cannot
 * advance.
 */
function alternates(): boolean {
  calls++
  return calls % 2 === 1 || calls > 20
}

/** All mutants: those of declarations, which lint must detect, and those of controllers, which conform must detect (except `survives`). */
export const mutants: { readonly declared: readonly Mutant[]; readonly controllerMutants: readonly Mutant[] } = {
  declared,
  controllerMutants: [...controllerMutants, ...poolMutants],
}
