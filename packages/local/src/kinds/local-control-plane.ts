import type { FieldError, ObjectOf, Shape } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, forbidden, invalid, required, s } from '@capstan/kube'
import { parse } from 'semver'
import { bootstrapConfigSpec } from './local-bootstrap-config.ts'
import {
  contractLabels,
  contractRef,
  duration,
  endpoint,
  failure,
  failureStatus,
  propagatedMachineFields,
  readinessGates,
  templateMetadata,
  templateOf,
} from './shapes.ts'
import { immutableTemplate } from './template.ts'

/** Fields that a control plane and its template have in common. */
const common = {
  machineNaming: s
    .object({ template: s.string({ minLength: 1, maxLength: 256 }).optional() }, { minProperties: 1 })
    .optional()
    .doc('How Machines are named: a Go template with the variables .cluster.name, .localControlPlane.name and .random.'),
  rollout: s
    .object(
      {
        after: s.timestamp().optional().doc('Machines created before this time are replaced once the time is reached.'),
        strategy: s
          .object(
            {
              type: s.enum('RollingUpdate').doc('RollingUpdate replaces one machine after the other.'),
              rollingUpdate: s
                .object(
                  {
                    maxSurge: s
                      .intOrString()
                      .optional()
                      .doc('Number of Machines above spec.replicas during a rollout: 1 (default) or 0.'),
                  },
                  { minProperties: 1 },
                )
                .optional()
                .doc('Limits of a rollout.'),
            },
            { minProperties: 1 },
          )
          .optional()
          .doc('How machines are replaced.'),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('When and how machines are replaced.'),
  remediation: s
    .object(
      {
        maxRetry: s
          .int32()
          .optional()
          .doc(
            'Maximum number of retries in a row. A retry replaces a Machine that itself replaced an unhealthy Machine. If absent, there is no limit.',
          ),
        retryPeriodSeconds: s
          .int32({ minimum: 0 })
          .optional()
          .doc('Minimum time between the remediation of a Machine and that of its replacement. Default 0.'),
        minHealthyPeriodSeconds: s
          .int32({ minimum: 0 })
          .optional()
          .doc(
            'Period after a remediation in which a failure of the replacement leads to a retry. A later failure counts as a new problem, with no retries so far. Default 3600.',
          ),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('How unhealthy machines are replaced.'),
  hosted: s
    .boolean()
    .optional()
    .doc(
      'Whether the API server runs without Machines and replicas, like the API server of a managed service. Do not change this field later.',
    ),
  bootstrapConfigSpec: bootstrapConfigSpec.optional().doc('Spec of the LocalBootstrapConfigs. A change starts a rollout.'),
  simulated: s
    .object({
      initializationDelay: duration()
        .optional()
        .doc('Time from the first connection to the API server until the control plane is initialized. Default 0s.'),
      failure: failure('initialization'),
    })
    .optional()
    .doc('How the simulated control plane behaves.'),
} satisfies Shape

/** A LocalControlPlane is a control plane with its certificates and kubeconfig. It has an odd number of replicas, or is hosted. */
export const LocalControlPlane = defineKind({
  group: 'controlplane.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalControlPlane',
  plural: 'localcontrolplanes',
  shortNames: ['lcp'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalControlPlane is the control plane of one Cluster: made of Machines, or hosted.',
  labels: contractLabels('control-plane'),
  spec: s.object({
    ...common,
    replicas: s
      .int32()
      .optional()
      .doc('Desired number of machines: an odd number. Default 1. Not allowed for a hosted control plane.'),
    version: s.string({ minLength: 1, maxLength: 256 }).doc('Kubernetes version, such as v1.36.0.'),
    machineTemplate: s
      .object({
        metadata: templateMetadata(),
        spec: s
          .object({
            ...propagatedMachineFields,
            readinessGates: readinessGates(),
            infrastructureRef: contractRef().doc('Template of the infrastructure machines. A change starts a rollout.'),
          })
          .doc('Spec of the Machines.'),
      })
      .optional()
      .doc('Template of the Machines; required unless the control plane is hosted.'),
    controlPlaneEndpoint: endpoint()
      .optional()
      .doc(
        'Endpoint of the Cluster if neither the user nor the infrastructure sets one. If this field is then empty, too, the provider sets it for a hosted control plane.',
      ),
  }),
  status: s.object({
    initialization: s
      .object({
        controlPlaneInitialized: s
          .boolean()
          .optional()
          .doc('True once the API server was reached and the simulated initialization is complete; never false again.'),
      })
      .optional()
      .doc('Milestones of provisioning that Cluster API waits for.'),
    externalManagedControlPlane: s.boolean().optional().doc('True if no Nodes exist for the control plane: it is hosted.'),
    selector: s.string({ minLength: 1, maxLength: 4096 }).optional().doc('Selects the Machines of this control plane.'),
    replicas: s.int32().optional().doc('Number of Machines.'),
    readyReplicas: s.int32().optional().doc('Number of Machines whose Ready condition is True.'),
    availableReplicas: s.int32().optional().doc('Number of Machines whose Available condition is True.'),
    upToDateReplicas: s.int32().optional().doc('Number of Machines whose UpToDate condition is True.'),
    version: s
      .string({ minLength: 1, maxLength: 256 })
      .optional()
      .doc('Lowest version among the Machines; if hosted, the version of the API server.'),
    versions: s
      .list(
        s.object({
          version: s.string({ minLength: 1, maxLength: 256 }).doc('A Kubernetes version.'),
          replicas: s.int32().optional().doc('Number of Machines with this version.'),
        }),
        { minItems: 1, maxItems: 100 },
      )
      .listMap('version')
      .optional()
      .doc('Kubernetes versions in use, from old to new.'),
    lastRemediation: s
      .object({
        machine: s.string({ minLength: 1, maxLength: 253 }).doc('The Machine that was deleted.'),
        time: s.timestamp().doc('When it was deleted.'),
        retryCount: s
          .int32({ minimum: 0 })
          .doc('Number of retries in a row, including this remediation. 0 if it was not a retry.'),
      })
      .optional()
      .doc('The last remediation of an unhealthy Machine.'),
    timeline: s
      .object({ apiServerReached: s.timestamp().optional().doc('When the API server was first reached.') })
      .optional()
      .doc('Times of past steps. Simulated delays are measured from these times, also after a restart of the provider.'),
    observedGeneration: s
      .int64({ minimum: 1 })
      .optional()
      .doc('The metadata.generation that was last reconciled without an error.'),
    ...failureStatus,
    conditions: s.conditions(),
  }),
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Available', '.status.conditions[?(@.type=="Available")].status'),
    column('Desired', '.spec.replicas', { type: 'integer' }),
    column('Current', '.status.replicas', { type: 'integer' }),
    column('Ready', '.status.readyReplicas', { type: 'integer' }),
    column('Available Replicas', '.status.availableReplicas', { type: 'integer', priority: 10 }),
    column('Up-to-date', '.status.upToDateReplicas', { type: 'integer' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Initialized', '.status.initialization.controlPlaneInitialized', { type: 'boolean' }),
    age(),
    column('Version', '.spec.version'),
  ],
  default({ spec }) {
    if (!spec.hosted) spec.replicas ??= 1
    if (!spec.version.startsWith('v')) spec.version = `v${spec.version}`
    spec.rollout ??= {}
    spec.rollout.strategy ??= { type: 'RollingUpdate' }
    spec.rollout.strategy.rollingUpdate ??= {}
    spec.rollout.strategy.rollingUpdate.maxSurge ??= 1
  },
  validate({ spec }, { oldObject }) {
    return [
      ...(spec.hosted ? hostedErrors(spec) : replicasErrors(spec.replicas)),
      ...(spec.hosted || spec.machineTemplate ? [] : [required('spec.machineTemplate', 'is required')]),
      ...versionErrors(spec.version, oldObject?.spec.version),
      ...maxSurgeErrors(spec.rollout?.strategy?.rollingUpdate?.maxSurge, spec.replicas),
    ]
  },
})
export type LocalControlPlane = ObjectOf<typeof LocalControlPlane>

/** Returns the template of the Machines. @throws Error when the control plane has none */
export function machineTemplateOf({ spec }: Pick<LocalControlPlane, 'spec'>) {
  if (!spec.machineTemplate) throw new Error('spec.machineTemplate is required, as the control plane is not hosted')
  return spec.machineTemplate
}

function hostedErrors({ replicas, machineTemplate }: { replicas?: number; machineTemplate?: object }): FieldError[] {
  const detail = 'cannot be set, as a hosted control plane has no Machines'
  return [
    ...(replicas === undefined ? [] : [forbidden('spec.replicas', detail)]),
    ...(machineTemplate === undefined ? [] : [forbidden('spec.machineTemplate', detail)]),
  ]
}

/** Validates the replicas by upstream's rules for a KubeadmControlPlane whose Machines are the members of etcd (stacked etcd). */
function replicasErrors(replicas: number | undefined): FieldError[] {
  if (replicas === undefined) return [required('spec.replicas', 'is required')]
  if (replicas <= 0) return [forbidden('spec.replicas', 'cannot be less than or equal to 0')]
  if (replicas % 2 === 0) return [forbidden('spec.replicas', 'cannot be an even number when etcd is stacked')]
  return []
}

function versionErrors(version: string, old: string | undefined): FieldError[] {
  const newVersion = parse(version)
  if (newVersion === null) return [invalid('spec.version', version, 'must be a valid semantic version')]
  const previous = parse(old)
  if (previous === null || newVersion.major !== previous.major || newVersion.minor < previous.minor + 2) return []
  return [forbidden('spec.version', `cannot update Kubernetes version from ${previous.version} to ${newVersion.version}`)]
}

function maxSurgeErrors(maxSurge: number | string | undefined, replicas = 1): FieldError[] {
  const field = 'spec.rollout.strategy.rollingUpdate.maxSurge'
  if (maxSurge === undefined || maxSurge === 1) return []
  if (maxSurge !== 0) return [required(field, 'value must be 1 or 0')]
  return replicas >= 3
    ? []
    : [required(field, 'when LocalControlPlane is configured to scale-in, replica count needs to be at least 3')]
}

export const LocalControlPlaneConditions = conditionTypes({
  /** Mirrored by core as ControlPlaneAvailable of the Cluster. */
  Available: ['Available', 'NotAvailable'],
  CertificatesAvailable: ['Available', 'NotAvailable', 'InternalError'],
  Initialized: ['Initialized', 'NotInitialized'],
  RollingOut: ['RollingOut', 'NotRollingOut'],
  ScalingDown: ['ScalingDown', 'NotScalingDown', 'WaitingForReplicasSet'],
  ScalingUp: ['ScalingUp', 'NotScalingUp', 'WaitingForReplicasSet'],
  MachinesReady: ['Ready', 'NotReady', 'ReadyUnknown', 'NoReplicas', 'InternalError'],
  MachinesUpToDate: ['UpToDate', 'NotUpToDate', 'UpToDateUnknown', 'NoReplicas', 'InternalError'],
  Remediating: ['Remediating', 'NotRemediating', 'InternalError'],
  Paused: ['Paused', 'NotPaused'],
  Deleting: ['NotDeleting', 'WaitingForWorkersDeletion', 'WaitingForMachineDeletion', 'DeletionCompleted', 'InternalError'],
})

/** Finalizer of a LocalControlPlane until its Machines are deleted or, if it is hosted, its API server is stopped. */
export const LocalControlPlaneFinalizer = 'localcontrolplane.controlplane.capstan.dev'

export const LocalControlPlaneTemplate = defineKind({
  group: 'controlplane.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalControlPlaneTemplate',
  plural: 'localcontrolplanetemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalControlPlaneTemplate is the template from which LocalControlPlanes of a ClusterClass are created. It lacks fields that each control plane gets separately: replicas, version, controlPlaneEndpoint, readinessGates and infrastructureRef.',
  labels: contractLabels('control-plane'),
  spec: templateOf(
    s.object({
      ...common,
      machineTemplate: s
        .object(
          {
            metadata: templateMetadata(),
            spec: s.object(propagatedMachineFields, { minProperties: 1 }).optional().doc('Spec of the Machines.'),
          },
          { minProperties: 1 },
        )
        .optional()
        .doc('Template of the Machines.'),
    }),
  ),
  columns: [age()],
  validate: immutableTemplate('LocalControlPlaneTemplate'),
})
export type LocalControlPlaneTemplate = ObjectOf<typeof LocalControlPlaneTemplate>
