/**
 * Describes how the local provider follows each rule for providers, except those of IPAM. `docs/reference/contracts.md` shows each
 * description below its rule. `lint.test.ts` of `@capstan/cli` verifies the rules on the provider's CustomResourceDefinitions, and
 * `live/conform.env.test.ts` on the running provider. No test verifies that a description is true.
 */
import { type ContractName, ContractNames } from './manifests.ts'

const kinds: Readonly<Record<ContractName, string>> = {
  InfraCluster: 'LocalCluster',
  InfraMachine: 'LocalMachine',
  InfraMachinePool: 'LocalMachinePool',
  BootstrapConfig: 'LocalBootstrapConfig',
  ControlPlane: 'LocalControlPlane',
}

/** Descriptions that differ between contracts. `ownRules`: descriptions of rules that not every contract has, by id without prefix. */
interface Descriptions {
  readonly id: string
  readonly initialization: string
  readonly conditions: string
  readonly failures: string
  readonly pausing: string
  readonly ownerFirst?: string
  readonly deletion: string
  readonly restart: string
  readonly ownRules: { readonly [rule: string]: string }
}

const timeline = 'Times of past steps are in status.timeline, so that a restart neither repeats nor forgets a step.'
const dryRun =
  'The webhook rejects changes of spec.template.spec, except in a dry run with the annotation topology.cluster.x-k8s.io/dry-run.'
const failuresAt = (step: string) =>
  `A simulated failure of ${step} that has a reason sets status.failureReason and status.failureMessage.`

const descriptions: Readonly<Record<ContractName, Descriptions>> = {
  InfraCluster: {
    id: 'infra-cluster',
    initialization: 'status.initialization.provisioned becomes true after spec.simulated.provisioningDelay, and is never reset.',
    conditions: 'Ready, Deleting and Paused.',
    failures: failuresAt('provisioning'),
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'The controller waits for the Cluster in the owner references.',
    deletion:
      'The controller waits until the LocalMachines of the Cluster are deleted, removes the workload API server, and then removes the finalizer.',
    restart: timeline,
    ownRules: {
      endpoint:
        'spec.controlPlaneEndpoint is the endpoint that the user has set, on the LocalCluster or on the Cluster. If there is none and spec.withoutEndpoint is not true, it is the endpoint of the listener of all workload API servers.',
      'failure-domains':
        'status.failureDomains has the domains of spec.failureDomains, by default a, b and c, and follows changes of the spec.',
      'externally-managed': 'The controller does nothing while the LocalCluster has the annotation cluster.x-k8s.io/managed-by.',
    },
  },
  InfraMachine: {
    id: 'infra-machine',
    initialization: 'status.initialization.provisioned becomes true after spec.simulated.provisioningDelay, and is never reset.',
    conditions: 'Ready, Provisioned, NodeProvisioned, Deleting and Paused.',
    failures: failuresAt('provisioning or of the Node'),
    pausing: 'Only the condition Paused is written.',
    ownerFirst:
      'The controller waits for the Machine in the owner references. The machine of a pool has its LocalMachinePool as an owner from its creation.',
    deletion:
      'The controller deletes the Node from the workload API server, and then removes the finalizer. Core deletes the Node of a machine that is removed from a pool.',
    restart: timeline,
    ownRules: {
      'provider-id': 'spec.providerID is `local:////<namespace>/<name>`, the same as on its Node.',
      'failure-domain':
        'status.failureDomain is spec.failureDomain of the Machine; for the machine of a pool, spec.pool.failureDomain.',
      addresses:
        'status.addresses has a Hostname and an InternalIP. The IP address is computed from namespace and name; no server listens there.',
      'in-place': 'Neither a webhook nor the controller rejects a change of the spec.',
      'autoscaling-from-zero': 'Not applicable: LocalMachineTemplate has no status.',
      'waits-for-infrastructure':
        'Until the infrastructure of the Cluster is provisioned, the condition Provisioned is False with the reason WaitingForClusterInfrastructure.',
      'waits-for-bootstrap-data':
        'Until the Machine has bootstrap data, the condition Provisioned is False with the reason WaitingForBootstrapData.',
      'dry-run': dryRun,
    },
  },
  InfraMachinePool: {
    id: 'infra-machine-pool',
    initialization: 'status.initialization.provisioned and status.ready become true together, and are never reset.',
    conditions: 'Ready, Provisioned, MachinesReady, Deleting and Paused.',
    failures: failuresAt('provisioning'),
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'The controller waits for the MachinePool in the owner references.',
    deletion: 'The controller deletes the machines of the pool, and then removes the finalizer.',
    restart: timeline,
    ownRules: {
      'provider-id-list':
        'spec.providerIDList has the provider ID of each LocalMachine of the pool, after spec.simulated.listDelay, and the IDs in spec.simulated.ghosts.',
      replicas: 'status.replicas is the number of LocalMachines of the pool.',
      'both-ready': 'status.initialization.provisioned and status.ready have the same value.',
      instances:
        'status.instances has name, provider ID, version and failure domain of each machine, and whether the machine is Ready.',
      'machine-kind':
        'If spec.machines is true, status.infrastructureMachineKind is LocalMachine. Otherwise the field is not set, and core creates no Machines.',
      'provider-id': 'spec.providerID is set when the pool is provisioned.',
      'dry-run': dryRun,
    },
  },
  BootstrapConfig: {
    id: 'bootstrap-config',
    initialization: 'status.initialization.dataSecretCreated becomes true once the Secret exists, and is never reset.',
    conditions: 'Ready, DataSecretAvailable and Paused.',
    failures: failuresAt('the bootstrap data'),
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'The controller waits for the Machine or MachinePool in the owner references.',
    deletion: 'A LocalBootstrapConfig has no finalizer: the garbage collector deletes its Secret.',
    restart: `${timeline} The Secret has the name of the LocalBootstrapConfig.`,
    ownRules: {
      'data-secret':
        'The Secret has the name of the LocalBootstrapConfig, the label cluster.x-k8s.io/cluster-name, and the keys value and format. Data that expire are renewed after half of spec.ttlSeconds, as long as a machine may join with them.',
      'in-place': 'Neither a webhook nor the controller rejects a change of the spec.',
      'dry-run': dryRun,
      'sentinel-file':
        'In both formats, cloud-config and Ignition, the data contain a command that creates /run/cluster-api/bootstrap-success.complete.',
      taint:
        'The bootstrap data of workers contain the taint node.cluster.x-k8s.io/uninitialized:NoSchedule, and their Nodes register with it.',
    },
  },
  ControlPlane: {
    id: 'control-plane',
    initialization:
      'status.initialization.controlPlaneInitialized becomes true once the workload API server accepts requests, after spec.simulated.initializationDelay.',
    conditions:
      'Available, CertificatesAvailable, Initialized, RollingOut, ScalingUp, ScalingDown, MachinesReady, MachinesUpToDate, Remediating, Deleting and Paused.',
    failures: failuresAt('initialization'),
    pausing:
      'Only the condition Paused and the finalizer are written; no Machine is created or deleted. A hosted API server continues to run.',
    deletion:
      'The controller waits until the worker Machines of the Cluster are deleted, deletes the control plane Machines, and then removes the finalizer.',
    restart:
      'Each step is computed from stored objects, such as Machines, Secrets and status.timeline, so that a restart neither repeats nor forgets a step.',
    ownRules: {
      endpoint:
        'If the Cluster has no endpoint, spec.controlPlaneEndpoint of the control plane is used. The user can set this field; if the user has not, a hosted control plane sets it.',
      replicas:
        'The status has replicas, readyReplicas, availableReplicas, upToDateReplicas, and the selector of the Machines. A hosted control plane has none of these fields.',
      scale: 'The scale subresource has the paths .spec.replicas, .status.replicas and .status.selector.',
      version:
        'status.versions has each version of the Machines with the number of Machines. status.version is the lowest of these versions. For a hosted control plane, both report the version of its API server.',
      machines:
        'spec.machineTemplate has metadata, spec.infrastructureRef, and the timeouts in seconds in spec.deletion. The copy of the kind that tests use for contract v1beta1 has the timeouts as durations.',
      'readiness-gates-and-taints':
        'Readiness gates and taints are lists in spec.machineTemplate.spec, and propagate to the Machines without a rollout.',
      'machine-label': 'Machines are created with the label cluster.x-k8s.io/control-plane, whose value is empty.',
      'externally-managed': 'status.externalManagedControlPlane is true if spec.hosted is true.',
      'rollout-after': 'Machines that were created before spec.rollout.after are replaced once this time is reached.',
      'template-machine-metadata': 'LocalControlPlaneTemplate has spec.template.spec.machineTemplate.metadata.',
      'in-place': 'Machines are updated in place if extensions cover the change, and replaced otherwise.',
      kubeconfig:
        'The Secret has the label cluster.x-k8s.io/cluster-name. Its client certificate is valid for a year. The Secret is renewed when half of this time has passed, and after a change of the certificate authority.',
      certificates:
        'The Secrets `<cluster>-ca`, `<cluster>-etcd`, `<cluster>-proxy` and `<cluster>-sa` are created once, unless the user has provided them. After a change of `<cluster>-ca`, the kubeconfig gets a new client certificate.',
      placement: 'A new Machine is placed in the failure domain for control planes with the fewest up-to-date Machines.',
      metadata:
        'Labels and annotations of spec.machineTemplate propagate to Machines, LocalMachines and LocalBootstrapConfigs. Core then copies labels and annotations with certain prefixes from Machines to Nodes.',
      'min-ready-seconds':
        'spec.minReadySeconds of Machines follows the machine template, and each Machine has the condition UpToDate.',
    },
  },
}

const descriptionsOf = (contract: ContractName): [string, string][] => {
  const { id, initialization, conditions, failures, pausing, ownerFirst, deletion, restart, ownRules } = descriptions[contract]
  const kind = kinds[contract]
  return Object.entries({
    resource: `${kind} has a spec and a status.`,
    initialization,
    conditions,
    'terminal-failures': failures,
    template: `The kind of templates is ${kind}Template.`,
    'template-fields': `${kind}Template has spec.template.spec and spec.template.metadata.`,
    pausing,
    ...(ownerFirst === undefined ? {} : { 'owner-first': ownerFirst }),
    deletion,
    restart,
    ...ownRules,
  }).map(([name, text]) => [`${id}.${name}`, text])
}

/** Descriptions by id of the rule. Rules of IPAM apply to no local kind. */
export const localProvider: { readonly [rule: string]: string } = {
  'namespaced-scope': 'All kinds are namespaced.',
  'type-and-object-meta': 'Objects of all kinds have these fields.',
  'crd-name': 'Each kind declares the plural that core computes.',
  'list-kind': 'The name of each list kind is the kind with List appended.',
  'contract-label':
    'The label of contract v1beta2 lists version v1alpha1. Tests also use copies of the kinds with the label of contract v1beta1.',
  'label-versions': 'Version v1alpha1 is served.',
  'other-label-versions': 'Not applicable: each kind has only one version.',
  'newest-contract': 'The provider implements contract v1beta2. Only copies of its kinds in tests claim contract v1beta1 alone.',
  'status-subresource': 'All kinds except templates have the status subresource.',
  conversion: 'Not applicable: each kind has only one version.',
  'template-defaults': 'Not applicable: each template has only one version.',
  'foreign-group-role':
    '`capstan manifests` writes a ClusterRole with the label cluster.x-k8s.io/aggregate-to-manager, for the three groups of the provider.',
  'owner-finalizers-role': 'The role of the manager allows updates of the finalizers of the provider’s kinds and of Machines.',
  'printer-columns': 'All kinds have printer columns.',
  'short-names': 'All kinds have the category cluster-api. All kinds except templates also have a short name.',
  ...Object.fromEntries(ContractNames.flatMap(descriptionsOf)),
  'clusterctl.metadata': '`capstan manifests --output-dir` writes metadata.yaml with the series of the release.',
  'clusterctl.provider-label': 'Every component of `capstan manifests` has the label cluster.x-k8s.io/provider.',
  'clusterctl.one-namespace': 'All components of `capstan manifests` are in one namespace.',
  'clusterctl.manager-container': 'The container of the Deployment is called manager.',
  'clusterctl.variables': 'Not applicable: the components have no variables.',
  'clusterctl.owner-references':
    'The provider makes the Cluster an owner of the template of its control plane Machines. The provider makes the LocalControlPlane the owner of the Secrets that it creates, its Machines, and the new LocalMachines and LocalBootstrapConfigs of these Machines. The provider makes the LocalBootstrapConfig the owner of its Secret, and the LocalMachinePool the owner of its LocalMachines. Core sets all other owners.',
  'infrastructure.several-instances': 'The manager has the flags --namespace and --watch-filter.',
  'control-plane-and-bootstrap.several-instances': 'The manager has the flags --namespace and --watch-filter.',
}
