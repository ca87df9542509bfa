/**
 * Rules of the provider contracts that apply to core: behavior on which providers can rely. Most pages state these rules as what a controller
 * of core does, such as "the Cluster controller will surface this info", which counts as MUST. A SHOULD for every provider also applies to
 * core, which is a provider. No MAY applies to core. The page of IPAM states none of its rules: they describe the defaulting, validation and
 * conversion of upstream's core. IPAM's kinds are core's own; therefore a contract version of IPAM is an API version of these kinds.
 * `testRule` tests each rule, by its id, for each of its contract versions; `proofs.test.ts` reports rules without a test.
 */
import { type ContractVersion, ContractVersions } from '@capstan/api/contract'
import type { ContractName } from '../manifests.ts'
import type { Level, PageName } from '../rule.ts'

export interface CoreRule {
  readonly id: string
  readonly level: Level
  /** Pages that state the rule; for IPAM, the page about its kinds. */
  readonly pages: readonly PageName[]
  /** Heading in upstream's book; it is the same on all `pages`. */
  readonly section: string
  readonly versions: readonly ContractVersion[]
  /** Describes the behavior of core, in one or two sentences. */
  readonly sentence: string
}

const contractNames: readonly ContractName[] = [
  'InfraCluster',
  'InfraMachine',
  'InfraMachinePool',
  'BootstrapConfig',
  'ControlPlane',
]
const bothVersions = ContractVersions
const v1beta1Only: readonly ContractVersion[] = ['v1beta1']

const ruleOf =
  (level: Level) =>
  <const Id extends string>(
    id: Id,
    pages: PageName | readonly PageName[],
    section: string,
    sentence: string,
    versions = bothVersions,
  ) => ({
    id,
    level,
    pages: typeof pages === 'string' ? [pages] : pages,
    section,
    versions,
    sentence,
  })
const must = ruleOf('MUST')
const should = ruleOf('SHOULD')

const workflow = {
  InfraCluster: 'Normal resource',
  InfraMachine: 'Normal resource',
  InfraMachinePool: 'InfraMachinePool, InfraMachinePoolList resource definition',
  BootstrapConfig: 'Behavior',
  ControlPlane: 'Typical ControlPlane reconciliation workflow',
}

const failures = (kind: string) =>
  `Core reports failureReason and failureMessage of the ${kind} in status.deprecated.v1beta1 of its owner, and does not use them otherwise.`

const pausing = (kind: string, owner: string, controller: string) =>
  `While ${owner} is paused, core reports Paused, and the ${controller} controller neither writes to the ${kind} nor copies from it.`

const legacyConditions = (kind: string, owner: string, type: string) =>
  `Core copies the condition Ready, with its severity if it has one, from the ${kind} to ${type} in status.deprecated.v1beta1 of the ${owner}.`

const dryRun = (kind: string) =>
  `Before core replaces ${kind}s of a topology, it applies the change in a dry run with the annotation topology.cluster.x-k8s.io/dry-run, which no stored object has.`

export const coreRules = [
  must(
    'core.contract-version',
    contractNames,
    'All resources: version',
    'Of the contract labels of the CustomResourceDefinition, core uses the label of the newest contract version that core supports, and reads objects in the greatest API version of this label; references need no version.',
  ),
  must(
    'core.crd-name',
    contractNames,
    'All resources: version',
    'Core finds the CustomResourceDefinition by the name that it computes from kind and group.',
  ),
  must(
    'core.no-mutations',
    ['InfraCluster', 'ControlPlane'],
    'All resources: API group',
    'Without a topology, core writes only owner references and the label of the Cluster to InfraClusters and control planes.',
  ),
  must(
    'core.rbac-aggregation',
    contractNames,
    'All resources: API group',
    'Core has the permissions of all ClusterRoles with the label cluster.x-k8s.io/aggregate-to-manager: "true".',
  ),
  should(
    'core.watch-filter',
    ['BootstrapConfig', 'ControlPlane'],
    'Support for running multiple instances',
    'With the flag --namespace, core reconciles only cluster-scoped objects and the objects of the namespace; with --watch-filter, only objects with this value in the label cluster.x-k8s.io/watch-filter.',
  ),

  must(
    'core.infra-cluster.owner',
    'InfraCluster',
    workflow.InfraCluster,
    'Core sets the Cluster as owner of the InfraCluster that spec.infrastructureRef names, and sets the label of the Cluster on it.',
  ),
  must(
    'core.infra-cluster.endpoint',
    'InfraCluster',
    'InfraCluster: control plane endpoint',
    'Once the InfraCluster is initialized, core copies its spec.controlPlaneEndpoint to the Cluster, if the Cluster has no endpoint.',
  ),
  must(
    'core.infra-cluster.failure-domains',
    'InfraCluster',
    'InfraCluster: failure domains',
    'Core copies failure domains to the Cluster, once the InfraCluster is initialized, and follows their changes.',
  ),
  must(
    'core.infra-cluster.initialization',
    'InfraCluster',
    'InfraCluster: initialization completed',
    'Core reports an initialized InfraCluster in status.initialization.infrastructureProvisioned of the Cluster.',
  ),
  must(
    'core.infra-cluster.conditions',
    'InfraCluster',
    'InfraCluster: conditions',
    'Core copies the condition Ready of the InfraCluster to InfrastructureReady of the Cluster, and uses defaults for absent fields.',
  ),
  must(
    'core.infra-cluster.legacy-conditions',
    'InfraCluster',
    'InfraCluster: conditions',
    legacyConditions('InfraCluster', 'Cluster', 'InfrastructureReady'),
  ),
  must('core.infra-cluster.terminal-failures', 'InfraCluster', 'InfraCluster: terminal failures', failures('InfraCluster')),
  must(
    'core.infra-cluster.externally-managed',
    'InfraCluster',
    'Externally managed infrastructure',
    'Core treats an InfraCluster with the annotation cluster.x-k8s.io/managed-by like any other.',
  ),
  should(
    'core.infra-cluster.pausing',
    'InfraCluster',
    'InfraCluster: pausing',
    pausing('InfraCluster', 'the Cluster', 'Cluster'),
  ),

  must(
    'core.infra-machine.owner',
    'InfraMachine',
    workflow.InfraMachine,
    'Core sets the Machine as owner of the InfraMachine that spec.infrastructureRef names, and sets the label of the Cluster on it.',
  ),
  must(
    'core.infra-machine.provider-id',
    'InfraMachine',
    'InfraMachine: provider ID',
    'Core copies spec.providerID to the Machine, once the InfraMachine is initialized.',
  ),
  must(
    'core.infra-machine.failure-domain',
    'InfraMachine',
    'InfraMachine: failure domain',
    'Core copies status.failureDomain of the InfraMachine to status.failureDomain of the Machine, once the InfraMachine is initialized.',
  ),
  must(
    'core.infra-machine.spec-failure-domain',
    'InfraMachine',
    'InfraMachine: failure domain',
    'Core copies spec.failureDomain of the InfraMachine to spec.failureDomain of the Machine.',
    v1beta1Only,
  ),
  must(
    'core.infra-machine.addresses',
    'InfraMachine',
    'InfraMachine: addresses',
    'Core copies status.addresses to the Machine, once the InfraMachine is initialized.',
  ),
  must(
    'core.infra-machine.initialization',
    'InfraMachine',
    'InfraMachine: initialization completed',
    'Core reports an initialized InfraMachine in status.initialization.infrastructureProvisioned of the Machine.',
  ),
  must(
    'core.infra-machine.conditions',
    'InfraMachine',
    'InfraMachine: conditions',
    'Core copies the condition Ready of the InfraMachine to InfrastructureReady of the Machine, and uses defaults for absent fields.',
  ),
  must(
    'core.infra-machine.legacy-conditions',
    'InfraMachine',
    'InfraMachine: conditions',
    legacyConditions('InfraMachine', 'Machine', 'InfrastructureReady'),
  ),
  must(
    'core.infra-machine.terminal-failures',
    'InfraMachine',
    'InfraMachine: terminal failures',
    `${failures('InfraMachine')} They do not make a MachineHealthCheck remediate the Machine.`,
  ),

  must(
    'core.infra-machine.dry-run',
    'InfraMachine',
    'InfraMachineTemplate: support for SSA dry run',
    dryRun('InfraMachineTemplate'),
  ),
  should(
    'core.infra-machine.pausing',
    'InfraMachine',
    'InfraMachine: pausing',
    pausing('InfraMachine', 'the Cluster or the Machine', 'Machine'),
  ),

  must(
    'core.infra-machine-pool.owner',
    'InfraMachinePool',
    workflow.InfraMachinePool,
    'Core sets the MachinePool as owner of the InfraMachinePool that its template refers to, and sets the label of the Cluster on it.',
  ),
  must(
    'core.infra-machine-pool.provider-id-list',
    'InfraMachinePool',
    'InfraMachinePool: providerIDList',
    'Core copies spec.providerIDList to the MachinePool, counts the Nodes with these IDs, and deletes the Node of an ID that is removed from the list.',
  ),
  must(
    'core.infra-machine-pool.replicas',
    'InfraMachinePool',
    'InfraMachinePool: replicas',
    'Core copies status.replicas of the InfraMachinePool to status.replicas of the MachinePool.',
  ),
  must(
    'core.infra-machine-pool.initialization',
    'InfraMachinePool',
    'InfraMachinePool: initialization completed',
    'Once the InfraMachinePool is initialized, core sets status.initialization.infrastructureProvisioned of the MachinePool, and copies provider IDs and replicas.',
  ),
  must(
    'core.infra-machine-pool.conditions',
    'InfraMachinePool',
    'InfraMachinePool: conditions',
    `${legacyConditions('InfraMachinePool', 'MachinePool', 'InfrastructureReady')} Like upstream, core does not set InfrastructureReady in status.conditions of the MachinePool.`,
  ),
  must(
    'core.infra-machine-pool.terminal-failures',
    'InfraMachinePool',
    'InfraMachinePool: terminal failures',
    failures('InfraMachinePool'),
  ),
  must(
    'core.infra-machine-pool.machine-kind',
    'InfraMachinePool',
    'MachinePoolMachines support',
    'Core creates a Machine for each infrastructure machine of a pool that reports status.infrastructureMachineKind.',
  ),
  must(
    'core.infra-machine-pool.informational',
    'InfraMachinePool',
    'InfraMachinePool: instances',
    'Core uses neither status.instances nor spec.providerID of the InfraMachinePool.',
  ),
  should(
    'core.infra-machine-pool.pausing',
    'InfraMachinePool',
    'InfraMachinePool: pausing',
    pausing('InfraMachinePool', 'the Cluster or the MachinePool', 'MachinePool'),
  ),

  must(
    'core.bootstrap-config.owner',
    'BootstrapConfig',
    workflow.BootstrapConfig,
    'Core sets the Machine as owner of the BootstrapConfig that spec.bootstrap.configRef names, and sets the label of the Cluster on it.',
  ),
  must(
    'core.bootstrap-config.data-secret',
    'BootstrapConfig',
    'BootstrapConfig: data secret',
    'Once the BootstrapConfig is initialized, core copies its status.dataSecretName to spec.bootstrap.dataSecretName of the Machine, if that is not set.',
  ),
  must(
    'core.bootstrap-config.initialization',
    'BootstrapConfig',
    'BootstrapConfig: initialization completed',
    'Core reports an initialized BootstrapConfig in status.initialization.bootstrapDataSecretCreated of the Machine.',
  ),
  must(
    'core.bootstrap-config.conditions',
    'BootstrapConfig',
    'BootstrapConfig: conditions',
    'Core copies the condition Ready of the BootstrapConfig to BootstrapConfigReady of the Machine, and uses defaults for absent fields.',
  ),
  must(
    'core.bootstrap-config.legacy-conditions',
    'BootstrapConfig',
    'BootstrapConfig: conditions',
    'Until spec.bootstrap.dataSecretName of the Machine is set, core copies the condition Ready, with its severity if it has one, from the BootstrapConfig to BootstrapReady in status.deprecated.v1beta1 of the Machine.',
  ),
  must(
    'core.bootstrap-config.terminal-failures',
    'BootstrapConfig',
    'BootstrapConfig: terminal failures',
    `${failures('BootstrapConfig')} They do not make a MachineHealthCheck remediate the Machine.`,
  ),
  must(
    'core.bootstrap-config.dry-run',
    'BootstrapConfig',
    'BootstrapConfigTemplate: support for SSA dry run',
    dryRun('BootstrapConfigTemplate'),
  ),
  must(
    'core.bootstrap-config.taint',
    'BootstrapConfig',
    'Taint Nodes at creation',
    'Core removes the taint node.cluster.x-k8s.io/uninitialized from a Node with the write that first sets its labels.',
  ),
  should(
    'core.bootstrap-config.pausing',
    'BootstrapConfig',
    'BootstrapConfig: pausing',
    pausing('BootstrapConfig', 'the Cluster or the Machine', 'Machine'),
  ),

  must(
    'core.control-plane.owner',
    'ControlPlane',
    workflow.ControlPlane,
    'Core sets the Cluster as owner of the control plane that spec.controlPlaneRef names, and sets the label of the Cluster on it.',
  ),
  must(
    'core.control-plane.endpoint',
    'ControlPlane',
    'ControlPlane: endpoint',
    'Once the control plane is initialized, core copies its spec.controlPlaneEndpoint to the Cluster, if the Cluster has no endpoint.',
  ),
  must(
    'core.control-plane.replicas',
    'ControlPlane',
    'ControlPlane: replicas',
    'Core copies the counters of replicas to status.controlPlane of the Cluster; in contract v1beta1 it reads updatedReplicas and unavailableReplicas.',
  ),
  must(
    'core.control-plane.machine-template',
    'ControlPlane',
    'ControlPlane: machines',
    'In a topology, core writes metadata, infrastructure template, readiness gates and timeouts of Machines to spec.machineTemplate of the control plane, at the paths of its contract version. A change of metadata or timeouts creates no new template.',
  ),
  must(
    'core.control-plane.node-taints',
    'ControlPlane',
    'ControlPlane: machines',
    'Core adds the taints of a Machine with propagation Always to its Node, removes those that the Machine no longer has, and keeps the taints of other clients.',
  ),
  must(
    'core.control-plane.external-managed',
    'ControlPlane',
    'ControlPlane: machines',
    'If status.externalManagedControlPlane is true, core deletes the Node of a deleted Machine even when the cluster has no control plane Machines.',
  ),
  must(
    'core.metadata-propagation',
    'ControlPlane',
    'Metadata propagation',
    'Core propagates the labels and annotations in spec.template of a MachineDeployment to its MachineSets, Machines, InfraMachines and BootstrapConfigs, without a rollout.',
  ),
  must(
    'core.in-place-propagation',
    'ControlPlane',
    'MinReadySeconds and UpToDate propagation',
    'Core propagates minReadySeconds, timeouts, readiness gates and taints of a MachineDeployment to its MachineSets and Machines, without a rollout.',
  ),
  must(
    'core.control-plane.version',
    'ControlPlane',
    'ControlPlane: version',
    'Core copies status.versions to status.controlPlane of the Cluster.',
  ),
  must(
    'core.control-plane.skew',
    'ControlPlane',
    'ControlPlane: version',
    'In a topology, core upgrades workers only after the control plane has reached its spec.version: in all entries of status.versions or, without that field, in status.version.',
  ),
  must(
    'core.control-plane.initialization',
    'ControlPlane',
    'ControlPlane: initialization completed',
    'Core reports an initialized control plane in status.initialization.controlPlaneInitialized and in the condition ControlPlaneInitialized of the Cluster.',
  ),
  must(
    'core.in-place-update',
    'ControlPlane',
    'ControlPlane: in-place updates',
    'Core calls UpdateMachine for a Machine with the annotation of an in-place update and the pending hook UpdateMachine, and removes the annotations when the update is done.',
  ),
  must(
    'core.control-plane.conditions',
    'ControlPlane',
    'ControlPlane: conditions',
    'Core copies the condition Available to ControlPlaneAvailable of the Cluster, and includes RollingOut, ScalingUp and ScalingDown in the Cluster conditions of these types.',
  ),
  must(
    'core.control-plane.legacy-conditions',
    'ControlPlane',
    'ControlPlane: conditions',
    legacyConditions('ControlPlane', 'Cluster', 'ControlPlaneReady'),
  ),
  must('core.control-plane.terminal-failures', 'ControlPlane', 'ControlPlane: terminal failures', failures('ControlPlane')),
  must(
    'core.control-plane.kubeconfig',
    'ControlPlane',
    'Cluster kubeconfig management',
    'Core connects to the workload cluster with the Secret <cluster>-kubeconfig.',
  ),
  should(
    'core.control-plane.pausing',
    'ControlPlane',
    'ControlPlane: pausing',
    pausing('ControlPlane', 'the Cluster', 'Cluster'),
  ),

  must(
    'core.ipam.immutable-claim',
    'IPAM',
    'Data Types',
    'Core rejects a change of the spec of an IPAddressClaim, and names the difference.',
  ),
  must(
    'core.ipam.immutable-address',
    'IPAM',
    'Data Types',
    'Core rejects a change of the spec of an IPAddress, and names the difference.',
  ),
  must(
    'core.ipam.valid-address',
    'IPAM',
    'Data Types',
    'Core rejects an IPAddress whose address or gateway is no IP address, or whose prefix is too long for the address.',
  ),
  must(
    'core.ipam.pool-of-claim',
    'IPAM',
    'Normal IPAddressClaim',
    'Core rejects an IPAddress of another pool than that of its claim, if the claim exists.',
  ),
  must(
    'core.ipam.defaults',
    'IPAM',
    'Data Types',
    'Core adds nothing to claims and addresses: they have no defaults, and no controller of core reconciles them.',
  ),
  must(
    'core.ipam.versions',
    'IPAM',
    'Data Types',
    'Core converts claims and addresses between v1beta1 and v1beta2, with the status that a provider has written in either version.',
  ),
] as const satisfies readonly CoreRule[]

export type CoreRuleId = (typeof coreRules)[number]['id']
