/**
 * Labels, annotations, finalizers and other keys of Cluster API and of Capstan (`capstan.dev`). Constants that exist upstream have upstream's
 * names, except `ConversionDataAnnotation`, which is `DataAnnotation` in util/conversion. Upstream: api/core/v1beta2 (common_types.go and the
 * files of the kinds), api/core/v1beta1 (`RevisionHistoryAnnotation`), api/runtime/v1beta2, and cmd/clusterctl/api, v1.14.
 */

// Labels

/** Name of the Cluster of an object. A label of a cluster's objects, such as Machines and Secrets; Nodes have an annotation of this name. */
export const ClusterNameLabel = 'cluster.x-k8s.io/cluster-name'
/** Marks objects that the topology controller owns; the value is empty. */
export const ClusterTopologyOwnedLabel = 'topology.cluster.x-k8s.io/owned'
/** Name of the MachineDeployment within `Cluster.spec.topology.workers`. */
export const ClusterTopologyMachineDeploymentNameLabel = 'topology.cluster.x-k8s.io/deployment-name'
/** Name of the MachinePool within `Cluster.spec.topology.workers`. */
export const ClusterTopologyMachinePoolNameLabel = 'topology.cluster.x-k8s.io/pool-name'
/** Marks control plane Machines, and their infrastructure and bootstrap objects; the value is empty. */
export const MachineControlPlaneLabel = 'cluster.x-k8s.io/control-plane'
/** Name of the control plane object that owns the Machine, hashed when it is not a valid label value. */
export const MachineControlPlaneNameLabel = 'cluster.x-k8s.io/control-plane-name'
/** Name of the MachineSet that owns the Machine, hashed when it is not a valid label value. */
export const MachineSetNameLabel = 'cluster.x-k8s.io/set-name'
/** Name of the MachineDeployment that owns the MachineSet or Machine. */
export const MachineDeploymentNameLabel = 'cluster.x-k8s.io/deployment-name'
/** Name of the MachinePool that owns the Machine, hashed when it is not a valid label value. */
export const MachinePoolNameLabel = 'cluster.x-k8s.io/pool-name'
/** Distinguishes the MachineSets of one MachineDeployment. */
export const MachineDeploymentUniqueLabel = 'machine-template-hash'
/** The provider of a component or CustomResourceDefinition. */
export const ProviderNameLabel = 'cluster.x-k8s.io/provider'
/**
 * Marks components that clusterctl manages. Of custom resources, `clusterctl move` moves only those whose CustomResourceDefinition has this
 * label.
 */
export const ClusterctlLabel = 'clusterctl.cluster.x-k8s.io'
/** Limits which managers reconcile an object: see the flag --watch-filter. */
export const WatchLabel = 'cluster.x-k8s.io/watch-filter'
/** On a Node: the infrastructure may interrupt its machine at any time. The value is empty. */
export const InterruptibleLabel = 'cluster.x-k8s.io/interruptible'

// Annotations set by users

/** Pauses the reconciliation of one object. The value is ignored. */
export const PausedAnnotation = 'cluster.x-k8s.io/paused'
/** On an infrastructure cluster: it is managed externally, not by its controller. The value is ignored. */
export const ManagedByAnnotation = 'cluster.x-k8s.io/managed-by'
/** On a MachinePool: its replicas are managed externally, unless the value is `false`. */
export const ReplicasManagedByAnnotation = 'cluster.x-k8s.io/replicas-managed-by'
/** The Machine is deleted first when its MachineSet or control plane scales down. */
export const DeleteMachineAnnotation = 'cluster.x-k8s.io/delete-machine'
/** MachineHealthChecks that select the Machine report it as unhealthy, so that it is remediated. */
export const RemediateMachineAnnotation = 'cluster.x-k8s.io/remediate-machine'
/** MachineHealthChecks skip the Machine. */
export const MachineSkipRemediationAnnotation = 'cluster.x-k8s.io/skip-remediation'
/** On a MachineSet or its bootstrap config template: comma-separated preflight checks that the MachineSet skips, or `All`. */
export const MachineSetSkipPreflightChecksAnnotation = 'machineset.cluster.x-k8s.io/skip-preflight-checks'
/** The Node is not drained before its Machine is deleted. */
export const ExcludeNodeDrainingAnnotation = 'machine.cluster.x-k8s.io/exclude-node-draining'
/** Deletion of the Machine does not wait for volumes to be detached. */
export const ExcludeWaitForNodeVolumeDetachAnnotation = 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach'
/** Annotations `<prefix>/<name>` block the drain of the Machine's Node. */
export const PreDrainDeleteHookAnnotationPrefix = 'pre-drain.delete.hook.machine.cluster.x-k8s.io'
/** Annotations `<prefix>/<name>` block the deletion of the Machine's infrastructure. */
export const PreTerminateDeleteHookAnnotationPrefix = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io'
/** Annotations `<prefix>/<name>` on a Cluster block the start of an upgrade. */
export const BeforeClusterUpgradeHookAnnotationPrefix = 'before-upgrade.hook.cluster.cluster.x-k8s.io'
/** On a worker in `Cluster.spec.topology.workers`: defers its upgrade, and the upgrades of all workers after it in the same list. */
export const ClusterTopologyHoldUpgradeSequenceAnnotation = 'topology.cluster.x-k8s.io/hold-upgrade-sequence'
/** On a worker in `Cluster.spec.topology.workers`: defers its upgrade, but not the upgrades of other workers. */
export const ClusterTopologyDeferUpgradeAnnotation = 'topology.cluster.x-k8s.io/defer-upgrade'
/** On a Cluster: maximum number of MachineDeployments, and of MachinePools, that upgrade concurrently; 1 when absent. */
export const ClusterTopologyUpgradeConcurrencyAnnotation = 'topology.cluster.x-k8s.io/upgrade-concurrency'
/** On a Cluster: disables the validation that rejects a topology for an existing Cluster without topology. */
export const ClusterTopologyUnsafeUpdateClassNameAnnotation = 'unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check'
/** On a Cluster: disables the validation of version changes of its topology. */
export const ClusterTopologyUnsafeUpdateVersionAnnotation = 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check'
/** Minimum number of replicas for the cluster autoscaler. Also determines the default of `spec.replicas`. */
export const AutoscalerMinSizeAnnotation = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size'
/** Maximum number of replicas for the cluster autoscaler. Also determines the default of `spec.replicas`. */
export const AutoscalerMaxSizeAnnotation = 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'
/** On an ExtensionConfig: `namespace/name` of the Secret whose `ca.crt` becomes the caBundle. */
export const InjectCAFromSecretAnnotation = 'runtime.cluster.x-k8s.io/inject-ca-from-secret'
/** On a Cluster: its hooks are called again at once, despite cached responses. Core removes the annotation. */
export const RetryHooksAnnotation = 'runtime.capstan.dev/retry-hooks'

// Annotations set by controllers

/** Name of the template from which an object was cloned. */
export const TemplateClonedFromNameAnnotation = 'cluster.x-k8s.io/cloned-from-name'
/** `Kind.group` of the template from which an object was cloned. */
export const TemplateClonedFromGroupKindAnnotation = 'cluster.x-k8s.io/cloned-from-groupkind'
/** On a MachineSet: while `true`, it creates no Machines. */
export const DisableMachineCreateAnnotation = 'cluster.x-k8s.io/disable-machine-create'
/** On a MachineSet: its revision in its MachineDeployment. On a MachineDeployment: the latest of these revisions. */
export const RevisionAnnotation = 'machinedeployment.clusters.x-k8s.io/revision'
/** Earlier revisions of a MachineSet, separated by commas. */
export const RevisionHistoryAnnotation = 'machinedeployment.clusters.x-k8s.io/revision-history'
/** On a MachineSet: replicas of its MachineDeployment when the MachineDeployment controller last updated the MachineSet. */
export const DesiredReplicasAnnotation = 'machinedeployment.clusters.x-k8s.io/desired-replicas'
/** On a MachineSet: like `DesiredReplicasAnnotation`, but the sum of replicas and maxSurge. */
export const MaxReplicasAnnotation = 'machinedeployment.clusters.x-k8s.io/max-replicas'
/** Time at which certificates of a control plane Machine expire, in RFC 3339. */
export const MachineCertificatesExpiryDateAnnotation = 'machine.cluster.x-k8s.io/certificates-expiry'
/** On a Machine, its infrastructure and bootstrap config: an in-place update is in progress. */
export const UpdateInProgressAnnotation = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress'
/** On a Machine that moved to another MachineSet, until the MachineDeployment controller has acknowledged the move. */
export const PendingAcknowledgeMoveAnnotation = 'in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move'
/** On a MachineSet: names of the Machines whose move to it the MachineDeployment controller has acknowledged, separated by commas. */
export const AcknowledgedMoveAnnotation = 'in-place-updates.internal.cluster.x-k8s.io/acknowledged-move'
/** On a MachineSet: the MachineSet to which its Machines move instead of being deleted. */
export const MachineSetMoveMachinesToMachineSetAnnotation =
  'in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset'
/** On a MachineSet: the MachineSets from which Machines move to it. */
export const MachineSetReceiveMachinesFromMachineSetsAnnotation =
  'in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets'
/** On a Cluster: the target version of the current upgrade step. */
export const ClusterTopologyUpgradeStepAnnotation = 'topology.internal.cluster.x-k8s.io/upgrade-step'
/** Set by the topology controller on objects of its dry-run requests, so that webhooks recognize them. */
export const TopologyDryRunAnnotation = 'topology.cluster.x-k8s.io/dry-run'
/** Names of hooks that must still be called for an object, separated by commas. */
export const PendingHooksAnnotation = 'runtime.cluster.x-k8s.io/pending-hooks'
/**
 * Set by core on a Cluster or Machine: records of the hooks for which it waits, as JSON. Upstream has only the messages in conditions.
 */
export const WaitingHooksAnnotation = 'runtime.capstan.dev/waiting-hooks'
/** On a Cluster: BeforeClusterDelete has allowed its deletion. */
export const OkToDeleteAnnotation = 'runtime.cluster.x-k8s.io/ok-to-delete'
/** On a CustomResourceDefinition: the generation for which stored objects were migrated. */
export const CRDMigrationObservedGenerationAnnotation = 'crd-migration.cluster.x-k8s.io/observed-generation'
/** On an object of an older version: the object of the newer version as JSON, with data that the older version cannot contain. */
export const ConversionDataAnnotation = 'cluster.x-k8s.io/conversion-data'

// Nodes and Pods of workload clusters

/** On a Node: name of its Cluster. */
export const ClusterNameAnnotation = 'cluster.x-k8s.io/cluster-name'
/** On a Node: namespace of its Cluster. */
export const ClusterNamespaceAnnotation = 'cluster.x-k8s.io/cluster-namespace'
/** On a Node: name of its Machine. */
export const MachineAnnotation = 'cluster.x-k8s.io/machine'
/** On a Node: kind of the object that controls its Machine, such as `MachineSet`; `MachinePool` for a Node of a pool. */
export const OwnerKindAnnotation = 'cluster.x-k8s.io/owner-kind'
/** On a Node: name of the object that controls its Machine, or of the MachinePool. */
export const OwnerNameAnnotation = 'cluster.x-k8s.io/owner-name'
/** On a Node: names of the labels copied from its Machine, separated by commas. Labels that the Machine no longer has are removed. */
export const LabelsFromMachineAnnotation = 'cluster.x-k8s.io/labels-from-machine'
/** On a Node: names of the annotations copied from its Machine, separated by commas. */
export const AnnotationsFromMachineAnnotation = 'cluster.x-k8s.io/annotations-from-machine'
/** On a Node: taints copied from its Machine whose propagation is `Always`, as `key:effect`, separated by commas. */
export const TaintsFromMachineAnnotation = 'cluster.x-k8s.io/taints-from-machine'
/** Labels of this domain are copied from Machine to Node. */
export const NodeRoleLabelPrefix = 'node-role.kubernetes.io'
/** Labels of this domain and its subdomains are copied from Machine to Node. */
export const NodeRestrictionLabelDomain = 'node-restriction.kubernetes.io'
/** Labels and annotations of this domain and its subdomains are copied from Machine to Node. */
export const ManagedNodeLabelDomain = 'node.cluster.x-k8s.io'
/** On a Pod of the workload cluster: with `skip`, drain ignores the Pod; with `wait-completed`, drain waits until the Pod has completed. */
export const PodDrainLabel = 'cluster.x-k8s.io/drain'
/** On a new Node until the labels of its Machine are copied. */
export const NodeUninitializedTaint = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' } as const
/** On the Node of a Machine that a rollout is going to replace. */
export const NodeOutdatedRevisionTaint = { key: 'node.cluster.x-k8s.io/outdated-revision', effect: 'PreferNoSchedule' } as const

// Finalizers

export const ClusterFinalizer = 'cluster.cluster.x-k8s.io'
export const MachineFinalizer = 'machine.cluster.x-k8s.io'
export const MachineSetFinalizer = 'cluster.x-k8s.io/machineset'
export const MachinePoolFinalizer = 'machinepool.cluster.x-k8s.io'
export const MachineDeploymentFinalizer = 'cluster.x-k8s.io/machinedeployment'
/** Finalizer of a MachineSet of a topology until its templates are deleted. */
export const MachineSetTopologyFinalizer = 'machineset.topology.cluster.x-k8s.io'
/** Finalizer of a MachineDeployment of a topology until its templates are deleted. */
export const MachineDeploymentTopologyFinalizer = 'machinedeployment.topology.cluster.x-k8s.io'

// Other constants

/** Type of the Secrets that Cluster API controllers create. */
export const ClusterSecretType = 'cluster.x-k8s.io/secret'
/** Suffix of the kinds of all templates. */
export const TemplateSuffix = 'Template'
/** Source (`definitions[].from`) of a variable that the ClusterClass itself defines. */
export const VariableDefinitionFromInline = 'inline'
