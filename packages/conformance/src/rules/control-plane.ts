/** Rules of ControlPlane and BootstrapConfig, except those that all contracts share. */
import { BootstrapConfigContract, ContractVersions, ControlPlaneContract, type ContractVersion } from '@capstan/api/contract'
import { bootstrapDataSecret, bootstrapSentinelFile, bootstrapTaint } from '../live/checks/bootstrap-config.ts'
import { type LiveCheck } from '../live/checks/check.ts'
import {
  controlPlaneCertificates,
  controlPlaneEndpoint,
  controlPlaneKubeconfig,
  controlPlaneMachineLabel,
  controlPlaneMetadata,
  controlPlaneMachinesUpToDate,
  controlPlanePlacement,
  controlPlaneReplicas,
  controlPlaneScale,
  controlPlaneVersion,
} from '../live/checks/control-plane.ts'
import { type Claim, claimsOf, type ContractName } from '../manifests.ts'
import type { Problem, Rule } from '../rule.ts'
import { hasField } from '../schema-fields.ts'
import { ofEachClaim, optionalField, requiredField } from './checks.ts'
import { dryRun, endpointProblems } from './infrastructure.ts'

const bothVersions = ContractVersions
const contracts: readonly ContractName[] = ['ControlPlane']
const notStatic = { none: 'behaviour of the controller' } as const

const has = (claim: Claim, path: string): boolean => hasField(claim.schema, path)

/** Counters of replicas in the status. */
const counters: Readonly<Record<ContractVersion, readonly string[]>> = {
  v1beta2: ['replicas', 'readyReplicas', 'availableReplicas', 'upToDateReplicas'],
  v1beta1: ['replicas', 'readyReplicas', 'unavailableReplicas', 'updatedReplicas'],
}

const scalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
} as const

function scaleProblems({ manifest, crd, version }: Claim): Problem[] {
  const path = `spec.versions[${crd.spec.versions.indexOf(version)}].subresources.scale`
  const scale = version.subresources?.scale
  const wrongPaths = Object.entries(scalePaths).filter(
    ([name, expected]) => scale?.[name as keyof typeof scalePaths] !== expected,
  )
  if (wrongPaths.length === 0) return []
  const expected = wrongPaths.map(([name, value]) => `${name} ${value}`).join(', ')
  const message = scale
    ? `Scale subresource of version ${version.name} differs, expected ${expected}`
    : `Version ${version.name} has spec.replicas and no scale subresource`
  const edit =
    'Add +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector.'
  return [{ manifest, path, message, edit }]
}

/**
 * Whether the control plane has Machines: its spec has `machineTemplate`, or a reference to an infrastructure template in a field that
 * older providers use instead.
 */
export const hasMachines = (claim: Claim): boolean =>
  ['spec.machineTemplate', 'spec.infrastructureTemplate', 'spec.infrastructureRef'].some((path) => has(claim, path))

const timeouts = [
  ControlPlaneContract.nodeDrainTimeout,
  ControlPlaneContract.nodeVolumeDetachTimeout,
  ControlPlaneContract.nodeDeletionTimeout,
]

function machineProblems(claim: Claim): Problem[] {
  const { contractVersion } = claim
  const type = contractVersion === 'v1beta2' ? 'integer' : 'string'
  return [
    ...requiredField(claim, ControlPlaneContract.machineTemplateMetadata.paths[contractVersion], 'object'),
    ...requiredField(claim, ControlPlaneContract.machineInfrastructureRef.paths[contractVersion], 'object'),
    ...timeouts.flatMap(({ paths }) => requiredField(claim, paths[contractVersion], type)),
  ]
}

/** Live checks of the rules that are declared as a table. */
const liveChecks: Readonly<Record<string, LiveCheck>> = {
  'control-plane.kubeconfig': controlPlaneKubeconfig,
  'control-plane.certificates': controlPlaneCertificates,
  'control-plane.placement': controlPlanePlacement,
  'control-plane.metadata': controlPlaneMetadata,
  'control-plane.min-ready-seconds': controlPlaneMachinesUpToDate,
}

export const controlPlaneRules: readonly Rule[] = [
  {
    id: 'control-plane.endpoint',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: endpoint',
    versions: bothVersions,
    applies: 'kinds with spec.controlPlaneEndpoint; needed when neither the infrastructure nor the user provides the endpoint',
    sentence: 'The endpoint has a host (string) and a port (integer).',
    why: 'Once the control plane is initialized, core copies host and port to Cluster.spec.controlPlaneEndpoint, unless the Cluster has an endpoint. Core fails when host or port has another type.',
    check: ofEachClaim('`spec.controlPlaneEndpoint.host` and `.port`.', { contracts }, endpointProblems),
    live: [controlPlaneEndpoint],
  },
  {
    id: 'control-plane.replicas',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: replicas',
    versions: bothVersions,
    applies: 'kinds with spec.replicas',
    sentence: 'The status has counters of the replicas, and a selector of the Machines.',
    why: 'Core copies the counters to Cluster.status.controlPlane, where a counter is absent if the provider never reports it. Autoscalers read the selector through the scale subresource.',
    check: ofEachClaim(
      '`spec.replicas`, the counters in `status` by contract version, and `status.selector`.',
      { contracts, applies: (claim) => has(claim, 'spec.replicas') },
      (claim) => [
        ...requiredField(claim, 'spec.replicas', 'integer'),
        ...counters[claim.contractVersion].flatMap((name) => requiredField(claim, `status.${name}`, 'integer')),
        ...requiredField(claim, 'status.selector', 'string'),
      ],
    ),
    live: [controlPlaneReplicas],
  },
  {
    id: 'control-plane.scale',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: replicas',
    versions: bothVersions,
    applies: 'kinds with spec.replicas',
    sentence: 'The scale subresource has the paths .spec.replicas, .status.replicas and .status.selector.',
    why: 'Requests of kubectl scale and autoscalers return 404, or change a field that the controller does not read.',
    check: ofEachClaim(
      '`spec.versions[*].subresources.scale`.',
      { contracts, applies: (claim) => has(claim, 'spec.replicas') },
      scaleProblems,
    ),
    live: [controlPlaneScale],
  },
  {
    id: 'control-plane.version',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: version',
    versions: bothVersions,
    applies: 'kinds with spec.version',
    sentence: 'The running versions are reported in status.versions, or the lowest of them in status.version.',
    why: 'Core treats a control plane without a reported version as one that is being created: workers of a topology are not upgraded, and MachineSet preflight checks wait.',
    check: ofEachClaim(
      '`spec.version`, and `status.versions` or `status.version`.',
      { contracts, applies: (claim) => has(claim, 'spec.version') },
      (claim) => [
        ...requiredField(claim, 'spec.version', 'string'),
        ...(has(claim, 'status.versions') ? [] : requiredField(claim, 'status.version', 'string')),
        ...optionalField(claim, 'status.versions', 'array'),
      ],
    ),
    live: [controlPlaneVersion],
  },
  {
    id: 'control-plane.machines',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: machines',
    versions: bothVersions,
    applies: 'kinds with spec.machineTemplate, spec.infrastructureTemplate or spec.infrastructureRef',
    sentence:
      'The machine template has metadata, a reference to the infrastructure, and timeouts for drain, volume detach and Node deletion.',
    why: 'Core writes these fields from the topology and the API server prunes those that the schema lacks. Without a drain timeout, the deletion of a control plane Machine waits as long as a PodDisruptionBudget blocks an eviction.',
    cases: ['siderolabs/cluster-api-control-plane-provider-talos#258'],
    check: ofEachClaim(
      'Fields of `spec.machineTemplate`, by contract version: seconds in v1beta2, duration strings in v1beta1.',
      { contracts, applies: hasMachines },
      machineProblems,
    ),
  },
  {
    id: 'control-plane.readiness-gates-and-taints',
    level: 'SHOULD',
    pages: ['ControlPlane'],
    section: 'ControlPlane: machines',
    versions: bothVersions,
    applies: 'kinds whose machine template has readiness gates or taints',
    sentence: 'Readiness gates and taints are lists.',
    why: 'Core writes both as lists from the topology, and the API server rejects the object if the schema declares another type for them.',
    check: ofEachClaim('`readinessGates` and `taints` of the machine template.', { contracts }, (claim) =>
      [ControlPlaneContract.readinessGates, ControlPlaneContract.taints].flatMap(({ paths }) =>
        optionalField(claim, paths[claim.contractVersion], 'array'),
      ),
    ),
  },
  {
    id: 'control-plane.machine-label',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: machines',
    versions: bothVersions,
    applies: 'control planes made of Machines',
    sentence: 'Machines of the control plane have the label cluster.x-k8s.io/control-plane with an empty value.',
    why: 'Core counts Machines without the label as workers. When a Cluster is deleted, core waits until all workers are deleted before it deletes the control plane, so the deletion never ends.',
    check: notStatic,
    live: [controlPlaneMachineLabel],
  },
  {
    id: 'control-plane.externally-managed',
    level: 'SHOULD',
    pages: ['ControlPlane'],
    section: 'ControlPlane: machines',
    versions: bothVersions,
    applies: 'kinds with status.externalManagedControlPlane',
    sentence: 'status.externalManagedControlPlane is a boolean.',
    why: 'Core reads the field when a Machine is deleted. Core treats a value of another type as false, and keeps the Node of the Machine if no control plane Machine would remain.',
    check: ofEachClaim('`status.externalManagedControlPlane`.', { contracts }, (claim) =>
      optionalField(claim, ControlPlaneContract.externalManagedControlPlane.paths[claim.contractVersion], 'boolean'),
    ),
  },
  {
    id: 'control-plane.rollout-after',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlane: rolloutAfter',
    versions: ['v1beta2'],
    applies: 'kinds with spec.rollout.after or spec.rolloutAfter that claim contract v1beta2',
    sentence: 'The time after which Machines are replaced is spec.rollout.after.',
    why: 'Core writes spec.rollout.after from the topology, and the API server prunes it where the schema lacks it: no rollout happens.',
    check: ofEachClaim(
      '`spec.rollout.after`.',
      {
        contracts,
        versions: ['v1beta2'],
        applies: (claim) => has(claim, 'spec.rollout.after') || has(claim, 'spec.rolloutAfter'),
      },
      (claim) => requiredField(claim, ControlPlaneContract.rolloutAfter.paths.v1beta2, 'string'),
    ),
  },
  {
    id: 'control-plane.template-machine-metadata',
    level: 'MUST',
    pages: ['ControlPlane'],
    section: 'ControlPlaneTemplate, ControlPlaneTemplateList resource definition',
    versions: bothVersions,
    applies: 'templates of control planes made of Machines',
    sentence: 'Templates have spec.template.spec.machineTemplate.metadata.',
    why: 'Core copies the labels and annotations of the template to the control plane, for its Machines. The API server prunes them from the template if the schema lacks the field.',
    check: {
      looksAt: '`spec.template.spec.machineTemplate.metadata` of templates whose kind has `spec.machineTemplate`.',
      run({ kinds }) {
        const claims = kinds.filter(({ contract }) => contract === 'ControlPlane').flatMap(claimsOf)
        const withMachines = claims.filter((claim) => !claim.isTemplate && has(claim, 'spec.machineTemplate'))
        const templates = claims.filter(
          ({ isTemplate, crd }) =>
            isTemplate && withMachines.some((owner) => `${owner.crd.spec.names.kind}Template` === crd.spec.names.kind),
        )
        if (templates.length === 0) return undefined
        return templates.flatMap((claim) => requiredField(claim, 'spec.template.spec.machineTemplate.metadata', 'object'))
      },
    },
  },
  ...(
    [
      [
        'control-plane.in-place',
        'SHOULD',
        'ControlPlane: in-place updates',
        'Machines can be updated in place instead of being replaced.',
        'Changes that could be made in place replace Machines.',
      ],
      [
        'control-plane.kubeconfig',
        'MUST',
        'Cluster kubeconfig management',
        'The Secret <cluster>-kubeconfig has the label of the Cluster and, under the key value, a kubeconfig that is renewed before it expires.',
        'Core cannot connect to the workload cluster: Nodes are not found and Machines are not drained.',
      ],
      [
        'control-plane.certificates',
        'SHOULD',
        'Cluster certificate management',
        'The certificate authorities of a Cluster are in Secrets. Secrets that users provide are used.',
        'Tools that read the Secrets find none.',
      ],
      [
        'control-plane.placement',
        'SHOULD',
        'Machine placement',
        'Machines are spread over the failure domains of Cluster.status.failureDomains that allow control planes.',
        'All Machines of the control plane may fail at once.',
      ],
      [
        'control-plane.metadata',
        'SHOULD',
        'Metadata propagation',
        'Labels and annotations propagate to Machines and Nodes without a rollout.',
        'Metadata of Machines stays outdated until they are replaced.',
      ],
      [
        'control-plane.min-ready-seconds',
        'SHOULD',
        'MinReadySeconds and UpToDate propagation',
        'Machines have minReadySeconds and the condition UpToDate.',
        'Conditions of the Cluster cannot count Machines that are outdated or not available yet.',
      ],
    ] as const
  ).map(
    ([id, level, section, sentence, why]): Rule => ({
      id,
      level,
      pages: ['ControlPlane'],
      section,
      versions: bothVersions,
      applies:
        id === 'control-plane.kubeconfig' || id === 'control-plane.certificates' ? 'always' : 'control planes made of Machines',
      sentence,
      why,
      check: notStatic,
      ...(liveChecks[id] ? { live: [liveChecks[id]] } : {}),
    }),
  ),
]

export const bootstrapConfigRules: readonly Rule[] = [
  {
    id: 'bootstrap-config.data-secret',
    level: 'MUST',
    pages: ['BootstrapConfig'],
    section: 'BootstrapConfig: data secret',
    versions: bothVersions,
    applies: 'always',
    sentence: 'status.dataSecretName is a string: the name of a Secret whose key value holds the bootstrap data.',
    why: 'Core copies the name to the Machine once initialization is completed, and fails when the name is empty. The infrastructure provider waits for the name.',
    check: ofEachClaim(
      '`status.dataSecretName`. The content of the Secret is not checked.',
      { contracts: ['BootstrapConfig'] },
      (claim) => requiredField(claim, BootstrapConfigContract.dataSecretName.paths[claim.contractVersion], 'string'),
    ),
    live: [bootstrapDataSecret],
  },
  {
    id: 'bootstrap-config.in-place',
    level: 'SHOULD',
    pages: ['BootstrapConfig'],
    section: 'BootstrapConfig: support for in-place changes',
    versions: ['v1beta2'],
    applies: 'providers that support in-place updates',
    sentence: 'Controller and webhooks accept changes of the spec that core makes for an update in place.',
    why: 'The webhook rejects the write, and the update in place does not start.',
    check: { none: 'behaviour of controller and webhooks' },
  },
  dryRun('bootstrap-config.dry-run', 'BootstrapConfig', 'BootstrapConfigTemplate: support for SSA dry run'),
  {
    id: 'bootstrap-config.sentinel-file',
    level: 'MUST',
    pages: ['BootstrapConfig'],
    section: 'Sentinel file',
    versions: bothVersions,
    applies: 'always',
    sentence: 'The bootstrap data creates a sentinel file after bootstrapping has succeeded.',
    why: 'Infrastructure providers that look for the file cannot detect whether bootstrapping succeeded.',
    check: { none: 'content of the bootstrap data' },
    live: [bootstrapSentinelFile],
  },
  {
    id: 'bootstrap-config.taint',
    level: 'SHOULD',
    pages: ['BootstrapConfig'],
    section: 'Taint Nodes at creation',
    versions: bothVersions,
    applies: 'bootstrap data of worker Machines',
    sentence: 'Nodes register with the taint node.cluster.x-k8s.io/uninitialized:NoSchedule.',
    why: 'Pods may be scheduled to a Node before core has set its labels.',
    check: { none: 'content of the bootstrap data' },
    live: [bootstrapTaint],
  },
]
