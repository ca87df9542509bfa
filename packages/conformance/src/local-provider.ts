/**
 * Describes how the local provider follows each rule that applies to providers, for the reference page. `lint.test.ts` of `@capstan/cli`
 * verifies the rules on the provider's CustomResourceDefinitions, and `live/conform.env.test.ts` on the running provider. No test verifies
 * that a description is true.
 */
import { type ContractName, ContractNames } from './manifests.ts'

const kinds: Readonly<Record<ContractName, string>> = {
  InfraCluster: 'LocalCluster',
  InfraMachine: 'LocalMachine',
  InfraMachinePool: 'LocalMachinePool',
  BootstrapConfig: 'LocalBootstrapConfig',
  ControlPlane: 'LocalControlPlane',
}

/** Descriptions that differ between the contracts. */
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
const dryRun = 'The webhook rejects changes of the template, except in such a dry run.'

const descriptions: Readonly<Record<ContractName, Descriptions>> = {
  InfraCluster: {
    id: 'infra-cluster',
    initialization: 'status.initialization.provisioned becomes true after spec.simulated.provisioningDelay, and is never reset.',
    conditions: 'Ready, Deleting and Paused.',
    failures: 'Both are set by a simulated failure that has a reason.',
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'It waits for the Cluster in its owner references.',
    deletion: 'It waits for the LocalMachines of the Cluster, stops the workload API server and removes its finalizer.',
    restart: timeline,
    ownRules: {
      endpoint:
        'spec.controlPlaneEndpoint is that of the user or of the Cluster, or else, unless spec.withoutEndpoint is true, that of the listener of all workload API servers.',
      'failure-domains': 'Those of spec.failureDomains, or else a, b and c. They follow changes of the spec.',
      'externally-managed': 'The controller does nothing while the LocalCluster has the annotation.',
    },
  },
  InfraMachine: {
    id: 'infra-machine',
    initialization: 'status.initialization.provisioned becomes true after spec.simulated.provisioningDelay, and is never reset.',
    conditions: 'Ready, Provisioned, NodeProvisioned, Deleting and Paused.',
    failures: 'Both are set by a simulated failure that has a reason.',
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'It waits for the Machine or LocalMachinePool in its owner references.',
    deletion:
      'It deletes its Node from the workload API server, and removes its finalizer. Core deletes the Node of a machine that is removed from a pool.',
    restart: timeline,
    ownRules: {
      'provider-id': 'spec.providerID is local:////<namespace>/<name>, the same as on its Node.',
      'failure-domain': 'status.failureDomain is spec.failureDomain of the Machine.',
      addresses: 'A Hostname and an InternalIP that is computed from the name and not served.',
      'in-place': 'Webhook and controller accept every change of the spec.',
      'autoscaling-from-zero': 'Not applicable: LocalMachineTemplate has no status.',
      'waits-for-infrastructure': 'Until then the condition Provisioned has the reason WaitingForClusterInfrastructure.',
      'waits-for-bootstrap-data': 'Until then the condition Provisioned has the reason WaitingForBootstrapData.',
      'dry-run': dryRun,
    },
  },
  InfraMachinePool: {
    id: 'infra-machine-pool',
    initialization: 'status.initialization.provisioned and status.ready become true together, and are never reset.',
    conditions: 'Ready, Provisioned, MachinesReady, Deleting and Paused.',
    failures: 'Both are set by a simulated failure that has a reason.',
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'It waits for the MachinePool in its owner references.',
    deletion: 'It deletes its LocalMachines, and then removes its finalizer.',
    restart: timeline,
    ownRules: {
      'provider-id-list':
        'spec.providerIDList has the IDs of its LocalMachines after spec.simulated.listDelay, and those of spec.simulated.ghosts.',
      replicas: 'status.replicas counts its LocalMachines.',
      'both-ready': 'Both have the same value.',
      instances: 'Name, provider ID, version and failure domain of each machine, and whether the machine is Ready.',
      'machine-kind': 'With spec.machines it is LocalMachine; otherwise core creates no Machines.',
      'provider-id': 'spec.providerID is set when the pool is provisioned.',
      'dry-run': dryRun,
    },
  },
  BootstrapConfig: {
    id: 'bootstrap-config',
    initialization: 'status.initialization.dataSecretCreated becomes true once the Secret exists, and is never reset.',
    conditions: 'Ready, DataSecretAvailable and Paused.',
    failures: 'Both are set by a simulated failure that has a reason.',
    pausing: 'Only the condition Paused is written.',
    ownerFirst: 'It waits for the Machine or MachinePool in its owner references.',
    deletion: 'It has no finalizer: the garbage collector deletes its Secret.',
    restart: `${timeline} The name of the Secret is that of the object.`,
    ownRules: {
      'data-secret':
        'The Secret has the name of the object, the label of the Cluster, the keys value and format, and is renewed at half of spec.ttlSeconds while a machine may still join with it.',
      'in-place': 'Webhook and controller accept every change of the spec.',
      'dry-run': dryRun,
      'sentinel-file':
        'The last command of the data creates /run/cluster-api/bootstrap-success.complete, as cloud-config and as Ignition.',
      taint: 'Nodes of workers register with the taint; it is part of the bootstrap data.',
    },
  },
  ControlPlane: {
    id: 'control-plane',
    initialization:
      'status.initialization.controlPlaneInitialized becomes true once the workload API server accepts requests, after spec.simulated.initializationDelay.',
    conditions:
      'Available, and those of initialization, certificates, Machines, rollout, scale, remediation, deletion and pause.',
    failures: 'Both are set by a simulated failure that has a reason.',
    pausing:
      'Only the condition Paused and the finalizer are written; no Machine is created or deleted. A hosted API server continues to run.',
    deletion: 'It waits for the workers of the Cluster, deletes its Machines, and then removes its finalizer.',
    restart: 'Steps follow from the observed Machines, Secrets and Nodes alone.',
    ownRules: {
      endpoint:
        'Where the Cluster has no endpoint, a control plane uses the spec.controlPlaneEndpoint that the user has set; a hosted control plane sets the field if the user has not.',
      replicas:
        'replicas, readyReplicas, availableReplicas and upToDateReplicas, and the selector of its Machines. None if it is hosted.',
      scale: 'The subresource has these paths.',
      version: 'status.versions has all versions of its Machines with the number of Machines of each, status.version the lowest.',
      machines:
        'spec.machineTemplate has metadata and spec.infrastructureRef, and spec.deletion with the timeouts in seconds; its twin of contract v1beta1 has them as durations.',
      'readiness-gates-and-taints': 'Both are in spec.machineTemplate.spec and propagate to the Machines without a rollout.',
      'machine-label': 'Machines are created with the label.',
      'externally-managed': 'It is true if spec.hosted is.',
      'rollout-after': 'Machines created before spec.rollout.after are replaced once that time is reached.',
      'template-machine-metadata': 'LocalControlPlaneTemplate has the field.',
      'in-place': 'Machines are updated in place where extensions cover the change, and replaced otherwise.',
      kubeconfig:
        'The Secret has the label, and is written again after half of the year for which its certificate is valid, or for another certificate authority.',
      certificates:
        'The Secrets -ca, -etcd, -proxy and -sa are created once, and not when the user has provided them. After a change of -ca clients are issued new certificates.',
      placement: 'A new Machine is placed in the failure domain for control planes with the fewest up-to-date Machines.',
      metadata:
        'Labels and annotations of spec.machineTemplate propagate to Machines, LocalMachines and LocalBootstrapConfigs; core copies those of Machines to Nodes.',
      'min-ready-seconds':
        'Both: spec.minReadySeconds of Machines follows the template, and UpToDate is a condition of each Machine.',
    },
  },
}

const descriptionsOf = (contract: ContractName): [string, string][] => {
  const { id, initialization, conditions, failures, pausing, ownerFirst, deletion, restart, ownRules } = descriptions[contract]
  const kind = kinds[contract]
  return Object.entries({
    resource: `${kind} has both.`,
    initialization,
    conditions,
    'terminal-failures': failures,
    template: `${kind}Template.`,
    'template-fields': `${kind}Template has both.`,
    pausing,
    ...(ownerFirst === undefined ? {} : { 'owner-first': ownerFirst }),
    deletion,
    restart,
    ...ownRules,
  }).map(([name, text]) => [`${id}.${name}`, text])
}

/** Descriptions by id of the rule. Rules of IPAM apply to no local kind. */
export const localProvider: { readonly [rule: string]: string } = {
  'namespaced-scope': 'All of its kinds are namespaced.',
  'type-and-object-meta': 'All of its kinds have them.',
  'crd-name': 'Names are computed by the same function as core’s.',
  'list-kind': 'The API server sets it.',
  'contract-label': 'v1alpha1 is labelled as contract v1beta2. The tests have twins of all kinds that are labelled as v1beta1.',
  'label-versions': 'v1alpha1 is served.',
  'other-label-versions': 'Not applicable: there is one version.',
  'newest-contract': 'It implements contract v1beta2; only its twins in tests claim v1beta1 alone.',
  'status-subresource': 'All of its kinds have it, except templates.',
  conversion: 'Not applicable: there is one version.',
  'template-defaults': 'Not applicable: there is one version.',
  'foreign-group-role': '`capstan manifests` writes a ClusterRole with the label for its three groups.',
  'owner-finalizers-role': 'Its role allows updates of the finalizers of its own kinds and of Machines.',
  'printer-columns': 'All of its kinds have columns.',
  'short-names': 'All of its kinds have the category cluster-api, objects also a short name.',
  ...Object.fromEntries(ContractNames.flatMap(descriptionsOf)),
  'clusterctl.metadata': '`capstan manifests --output-dir` writes metadata.yaml with the series of the release.',
  'clusterctl.provider-label': 'Every component of `capstan manifests` has the label.',
  'clusterctl.one-namespace': 'All components of `capstan manifests` are in one namespace.',
  'clusterctl.manager-container': 'The container is called manager.',
  'clusterctl.variables': 'Not applicable: its components have no variables.',
  'clusterctl.owner-references':
    'Objects that core does not own are owned by its own: Secrets by a LocalControlPlane or LocalBootstrapConfig, LocalMachines of a pool by a LocalMachinePool.',
  'infrastructure.several-instances': 'The manager has both flags.',
  'control-plane-and-bootstrap.several-instances': 'The manager has both flags.',
}
