/** Rules of InfraCluster, InfraMachine and InfraMachinePool, except those that all contracts share. */
import { ContractVersions, InfraClusterContract, InfraMachineContract, InfraMachinePoolContract } from '@capstan/api/contract'
import { dryRunAccepted } from '../live/checks/all-resources.ts'
import { externallyManaged, infraClusterEndpoint, infraClusterFailureDomains } from '../live/checks/infra-cluster.ts'
import { poolBothReady, poolMachineKind, poolProviderIDList, poolReplicas } from '../live/checks/infra-machine-pool.ts'
import {
  infraMachineAddresses,
  infraMachineFailureDomain,
  infraMachineProviderID,
  waitsFor,
} from '../live/checks/infra-machine.ts'
import type { Claim, ContractName } from '../manifests.ts'
import type { Problem, Rule } from '../rule.ts'
import { fieldAt, hasField } from '../schema-fields.ts'
import { itemTypeProblem, ofEachClaim, ofEachKind, optionalField, requiredField, schemaProblem } from './checks.ts'

const bothVersions = ContractVersions

/** Returns the problems of a list whose items must be objects with these fields of type string. */
function listOfObjects(claim: Claim, path: string, names: readonly string[]): Problem[] {
  const problems = optionalField(claim, path, 'array')
  const field = fieldAt(claim.schema, path)
  if (problems.length > 0 || field === undefined || field === 'any' || field.items === undefined) return problems
  const { properties, type } = field.items
  if (properties === undefined) return itemTypeProblem(claim, path, type, 'object')
  return names
    .filter((name) => properties[name]?.type !== 'string')
    .map((name) =>
      schemaProblem(claim, path, `items of ${path} have no string ${name}`, `Add ${name} (string) to the items of ${path}.`),
    )
}

/** Returns the problems of `spec.controlPlaneEndpoint`, which must have host and port; an empty list if the schema has no such field. */
export function endpointProblems(claim: Claim): Problem[] {
  const path = InfraClusterContract.controlPlaneEndpoint.paths[claim.contractVersion]
  if (!hasField(claim.schema, path)) return []
  return [...requiredField(claim, `${path}.host`, 'string'), ...requiredField(claim, `${path}.port`, 'integer')]
}

const infraCluster: readonly ContractName[] = ['InfraCluster']
const infraMachine: readonly ContractName[] = ['InfraMachine']
const infraMachinePool: readonly ContractName[] = ['InfraMachinePool']

export const infraClusterRules: readonly Rule[] = [
  {
    id: 'infra-cluster.endpoint',
    level: 'MUST',
    pages: infraCluster,
    section: 'InfraCluster: control plane endpoint',
    versions: bothVersions,
    applies:
      'kinds with spec.controlPlaneEndpoint, a field that is needed if neither the control plane nor the user provides the endpoint',
    sentence: 'The endpoint has a host (string) and a port (integer).',
    why: 'Once the InfraCluster is provisioned, core copies host and port to Cluster.spec.controlPlaneEndpoint, unless the Cluster has an endpoint. Core fails when host or port has another type.',
    check: ofEachClaim('`spec.controlPlaneEndpoint.host` and `.port`.', { contracts: infraCluster }, endpointProblems),
    live: [infraClusterEndpoint],
  },
  {
    id: 'infra-cluster.failure-domains',
    level: 'MUST',
    pages: infraCluster,
    section: 'InfraCluster: failure domains',
    versions: bothVersions,
    applies: 'kinds with status.failureDomains',
    sentence: 'Failure domains are a list of objects with a name in contract v1beta2, a map from names in v1beta1.',
    why: 'Core reads the field by the newest contract that the labels claim. Core fails when it finds a map instead of a list, or a list instead of a map; the Cluster then gets no control plane.',
    cases: ['projectbeskar/beskar7#160'],
    check: ofEachClaim('`status.failureDomains`, by contract version.', { contracts: infraCluster }, (claim) => {
      const path = InfraClusterContract.failureDomains.paths[claim.contractVersion]
      if (claim.contractVersion === 'v1beta2') return listOfObjects(claim, path, ['name'])
      return optionalField(claim, path, 'object')
    }),
    live: [infraClusterFailureDomains],
  },
  {
    id: 'infra-cluster.externally-managed',
    level: 'SHOULD',
    pages: infraCluster,
    section: 'Externally managed infrastructure',
    versions: bothVersions,
    applies: 'always',
    sentence: 'Controllers do not reconcile an InfraCluster with the annotation cluster.x-k8s.io/managed-by.',
    why: 'Two systems would manage the same infrastructure.',
    check: { none: 'behaviour of the controller' },
    live: [externallyManaged],
  },
]

export const infraMachineRules: readonly Rule[] = [
  {
    id: 'infra-machine.provider-id',
    level: 'MUST',
    pages: infraMachine,
    section: 'InfraMachine: provider ID',
    versions: bothVersions,
    applies: 'always',
    sentence: 'spec.providerID is a string.',
    why: 'Core copies it to the Machine and finds the Node by it. Without it the Machine is never provisioned.',
    check: ofEachClaim('`spec.providerID`.', { contracts: infraMachine }, (claim) =>
      requiredField(claim, InfraMachineContract.providerID.paths[claim.contractVersion], 'string'),
    ),
    live: [infraMachineProviderID],
  },
  {
    id: 'infra-machine.failure-domain',
    level: 'MUST',
    pages: infraMachine,
    section: 'InfraMachine: failure domain',
    versions: bothVersions,
    applies: 'kinds with status.failureDomain or spec.failureDomain',
    sentence: 'The failure domain is a string.',
    why: 'Core copies it to the Machine, and fails when it has another type.',
    check: ofEachClaim('`status.failureDomain` and `spec.failureDomain`.', { contracts: infraMachine }, (claim) =>
      [InfraMachineContract.failureDomain, InfraMachineContract.specFailureDomain].flatMap(({ paths }) =>
        optionalField(claim, paths[claim.contractVersion], 'string'),
      ),
    ),
    live: [infraMachineFailureDomain],
  },
  {
    id: 'infra-machine.addresses',
    level: 'MUST',
    pages: infraMachine,
    section: 'InfraMachine: addresses',
    versions: bothVersions,
    applies: 'kinds with status.addresses',
    sentence: 'Addresses are a list of objects with type and address, both strings.',
    why: 'Core copies the list to Machine.status.addresses, and fails when it has another shape.',
    check: ofEachClaim('`status.addresses[*]`.', { contracts: infraMachine }, (claim) =>
      listOfObjects(claim, InfraMachineContract.addresses.paths[claim.contractVersion], ['type', 'address']),
    ),
    live: [infraMachineAddresses],
  },
  {
    id: 'infra-machine.in-place',
    level: 'SHOULD',
    pages: infraMachine,
    section: 'InfraMachine: support for in-place changes',
    versions: ['v1beta2'],
    applies: 'providers that support in-place updates',
    sentence: 'Controller and webhooks accept changes of the spec that core makes for an update in place.',
    why: 'The webhook rejects the write, and the update in place does not start.',
    check: { none: 'behaviour of controller and webhooks' },
  },
  {
    id: 'infra-machine.autoscaling-from-zero',
    level: 'MUST',
    pages: infraMachine,
    section: 'InfraMachineTemplate: support cluster autoscaling from zero',
    versions: bothVersions,
    applies: 'templates with status.capacity or status.nodeInfo',
    sentence: 'status.capacity and status.nodeInfo of the template are objects.',
    why: 'Core does not read them. The cluster autoscaler does, and cannot scale from zero when they have another shape.',
    check: ofEachClaim(
      '`status.capacity` and `status.nodeInfo` of templates.',
      { contracts: infraMachine, templates: true },
      (claim) => ['status.capacity', 'status.nodeInfo'].flatMap((path) => optionalField(claim, path, 'object')),
    ),
  },
  {
    id: 'infra-machine.waits-for-infrastructure',
    level: 'SHOULD',
    pages: infraMachine,
    section: 'Normal resource',
    versions: bothVersions,
    applies: 'always',
    sentence: 'No machine is provisioned before Cluster.status.initialization.infrastructureProvisioned is true.',
    why: 'The machine would be placed into a network that does not exist yet.',
    check: { none: 'behaviour of the controller' },
    live: [waitsFor('while the infrastructure of its Cluster is not provisioned', 'late-machine', 'waited for infrastructure')],
  },
  {
    id: 'infra-machine.waits-for-bootstrap-data',
    level: 'SHOULD',
    pages: infraMachine,
    section: 'Normal resource',
    versions: bothVersions,
    applies: 'always',
    sentence: 'No machine is provisioned before Machine.spec.bootstrap.dataSecretName is set.',
    why: 'The machine would boot without data, and never become a Node.',
    check: { none: 'behaviour of the controller' },
    live: [waitsFor('while its Machine has no bootstrap data', 'late-data', 'waited for data')],
  },
  dryRun('infra-machine.dry-run', 'InfraMachine', 'InfraMachineTemplate: support for SSA dry run'),
]

export const infraMachinePoolRules: readonly Rule[] = [
  {
    id: 'infra-machine-pool.provider-id-list',
    level: 'MUST',
    pages: infraMachinePool,
    section: 'InfraMachinePool: providerIDList',
    versions: bothVersions,
    applies: 'always',
    sentence: 'spec.providerIDList is a list of strings.',
    why: 'Core copies it to the MachinePool and finds the Nodes by it. Without it the MachinePool has no Nodes.',
    check: ofEachClaim('`spec.providerIDList`.', { contracts: infraMachinePool }, (claim) => {
      const path = InfraMachinePoolContract.providerIDList.paths[claim.contractVersion]
      const problems = requiredField(claim, path, 'array')
      const field = fieldAt(claim.schema, path)
      if (problems.length > 0 || field === undefined || field === 'any') return problems
      return itemTypeProblem(claim, path, field.items?.type, 'string')
    }),
    live: [poolProviderIDList],
  },
  {
    id: 'infra-machine-pool.replicas',
    level: 'MUST',
    pages: infraMachinePool,
    section: 'InfraMachinePool: replicas',
    versions: bothVersions,
    applies: 'always',
    sentence: 'status.replicas is an integer.',
    why: 'Core copies it to MachinePool.status.replicas. The v1beta1 condition ReplicasReady of the MachinePool is False until as many Nodes are Ready.',
    check: ofEachClaim('`status.replicas`.', { contracts: infraMachinePool }, (claim) =>
      requiredField(claim, InfraMachinePoolContract.replicas.paths[claim.contractVersion], 'integer'),
    ),
    live: [poolReplicas],
  },
  {
    id: 'infra-machine-pool.both-ready',
    level: 'SHOULD',
    pages: infraMachinePool,
    section: 'InfraMachinePool: initialization completed',
    versions: ['v1beta2'],
    applies: 'kinds that claim contract v1beta2',
    sentence: 'Both status.initialization.provisioned and status.ready are reported.',
    why: 'Upstream core v1.14 reads status.ready in both contract versions. With that core, a pool that reports only status.initialization.provisioned never becomes ready. A pool that reports only status.ready works, but violates upstream’s book, which states status.initialization.provisioned as MUST.',
    cases: ['kubernetes-sigs/cluster-api#14030'],
    check: ofEachClaim(
      '`status.initialization.provisioned` and `status.ready`.',
      { contracts: infraMachinePool, versions: ['v1beta2'] },
      (claim) =>
        [InfraMachinePoolContract.provisioned, InfraMachinePoolContract.ready].flatMap(({ paths }) =>
          requiredField(claim, paths.v1beta2, 'boolean'),
        ),
    ),
    live: [poolBothReady],
  },
  {
    id: 'infra-machine-pool.instances',
    level: 'MAY',
    pages: infraMachinePool,
    section: 'InfraMachinePool: instances',
    versions: bothVersions,
    applies: 'kinds with status.instances',
    sentence: 'status.instances is a list of objects.',
    why: 'Nothing: core does not read it.',
    check: ofEachClaim('`status.instances`.', { contracts: infraMachinePool }, (claim) => {
      const path = InfraMachinePoolContract.instances.paths[claim.contractVersion]
      return optionalField(claim, path, 'array')
    }),
  },
  {
    id: 'infra-machine-pool.machine-kind',
    level: 'MUST',
    pages: infraMachinePool,
    section: 'MachinePoolMachines support',
    versions: bothVersions,
    applies: 'kinds with status.infrastructureMachineKind',
    sentence: 'status.infrastructureMachineKind is a string, and the provider ships a kind of machines in the group of the pool.',
    why: 'Core lists objects of that kind in the group of the pool and makes a Machine for each. It fails while there is no such kind.',
    cases: ['kubernetes-sigs/cluster-api#9005'],
    check: ofEachKind(
      '`status.infrastructureMachineKind`, and CustomResourceDefinitions of kinds that end with Machine.',
      { contracts: infraMachinePool },
      ({ manifest, crd }, kinds) =>
        crd.spec.versions.flatMap(({ schema }, index): Problem[] => {
          const path = InfraMachinePoolContract.infrastructureMachineKind.paths.v1beta2
          const field = fieldAt(schema?.openAPIV3Schema ?? {}, path)
          if (field === undefined) return []
          const at = `spec.versions[${index}].schema.openAPIV3Schema.properties.status.properties.infrastructureMachineKind`
          const hasMachineKind = kinds.some(
            (kind) => kind.contract === 'InfraMachine' && !kind.isTemplate && kind.crd.spec.group === crd.spec.group,
          )
          return [
            ...(field !== 'any' && field.type !== 'string'
              ? [{ manifest, path: at, message: `${path} is of type ${field.type}, expected string`, edit: 'Make it a string.' }]
              : []),
            ...(hasMachineKind
              ? []
              : [
                  {
                    manifest,
                    path: at,
                    message: `${path} names a kind of machines, but group ${crd.spec.group} has no CustomResourceDefinition of such a kind`,
                    edit: 'Ship the kind of the machines of the pool, or remove the field.',
                  },
                ]),
          ]
        }),
    ),
    live: [poolMachineKind],
  },
  {
    id: 'infra-machine-pool.provider-id',
    level: 'MAY',
    pages: infraMachinePool,
    section: 'InfraMachinePool: providerID',
    versions: bothVersions,
    applies: 'kinds with spec.providerID',
    sentence: 'spec.providerID of the pool is a string.',
    why: 'Nothing: core does not read it.',
    check: ofEachClaim('`spec.providerID`.', { contracts: infraMachinePool }, (claim) =>
      optionalField(claim, InfraMachinePoolContract.providerID.paths[claim.contractVersion], 'string'),
    ),
  },
  dryRun('infra-machine-pool.dry-run', 'InfraMachinePool', 'InfraMachinePoolTemplate: support for SSA dry run'),
]

/** Returns the rule about dry-run requests of core: in these requests, a webhook accepts changes of templates that it otherwise rejects. */
export function dryRun(id: string, page: ContractName, section: string): Rule {
  return {
    id,
    level: 'MUST',
    pages: [page],
    section,
    versions: bothVersions,
    applies: 'providers that support ClusterClasses and whose webhook rejects changes of templates',
    sentence:
      'In a dry run, the webhook accepts changes of a template that has the annotation topology.cluster.x-k8s.io/dry-run.',
    why: 'Core compares templates of a topology by a dry run. When the webhook rejects it, the topology is not reconciled.',
    check: { none: 'behaviour of the webhook' },
    live: [dryRunAccepted(page)],
  }
}
