/** Schemas and labels shared by kinds of this provider: contract fields, settings of the simulation, and labels of the CRDs. */
import { ClusterctlLabel, ProviderNameLabel } from '@capstan/api'
import type { Schema, Shape } from '@capstan/kube'
import { s } from '@capstan/kube'

const dnsSubdomain = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
const qualifiedName =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'
const labelValue = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'
const conditionType =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$'

/** Returns the labels of this provider's CRDs: name of the provider, label of clusterctl, and API version v1alpha1 for contract v1beta2. */
export const contractLabels = (provider: 'infrastructure' | 'control-plane' | 'bootstrap') => ({
  [ProviderNameLabel]: `${provider}-local`,
  [ClusterctlLabel]: '',
  'cluster.x-k8s.io/v1beta2': 'v1alpha1',
})

/** Schema of a Go duration, such as `500ms`, `10s` or `1m30s`. */
export const duration = () => s.string({ pattern: '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$', maxLength: 32 })

/** Schema of a simulated failure. `stages` are the steps at which an object of the kind can fail. */
export const failure = <const Stages extends readonly string[]>(...stages: Stages) =>
  s
    .object({
      at: s.enum(...stages).doc('The step that fails.'),
      message: s.string({ minLength: 1, maxLength: 1024 }).doc('Message of the condition that reports the failure.'),
      times: s
        .int32({ minimum: 1, maximum: 1000 })
        .optional()
        .doc(
          'Number of attempts that fail before one succeeds. When absent, the first attempt fails and is not retried; to continue, set this field or remove the failure.',
        ),
      reason: s
        .string({ minLength: 1, maxLength: 256 })
        .optional()
        .doc('Makes the failure terminal: status.failureReason gets this value, and status.failureMessage the message.'),
    })
    .optional()
    .doc('A simulated failure.')

/** Fields of a status in which a terminal failure is reported; deprecated in contract v1beta2. */
export const failureStatus = {
  failureReason: s.string({ maxLength: 256 }).optional().doc('Reason of a terminal failure; never removed.'),
  failureMessage: s.string({ maxLength: 10240 }).optional().doc('Message of a terminal failure; never removed.'),
} satisfies Shape

export const endpoint = () =>
  s.object(
    {
      host: s.string({ minLength: 1, maxLength: 512 }).optional().doc('Host name or address of the control plane.'),
      port: s.int32({ minimum: 1, maximum: 65535 }).optional().doc('Port of the control plane.'),
    },
    { minProperties: 1 },
  )

/** Schema of a contract reference: API group, kind and name of an object in the same namespace. */
export const contractRef = () =>
  s.object({
    apiGroup: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }).doc('API group of the object.'),
    kind: s.string({ minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$' }).doc('Kind of the object.'),
    name: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }).doc('Name of the object.'),
  })

export const templateMetadata = () =>
  s
    .object(
      {
        labels: s.map(s.string()).optional().doc('Labels of the objects created from this template.'),
        annotations: s.map(s.string()).optional().doc('Annotations of the objects created from this template.'),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('Labels and annotations of the objects created from this template.')

/** Schema of the `spec` of a `…Template` kind: metadata and spec of the objects that are created from the template. */
export const templateOf = <T>(spec: Schema<T>) =>
  s.object({
    template: s
      .object({ metadata: templateMetadata(), spec: spec as Schema<T, false> })
      .doc('Metadata and spec of the created objects.'),
  })

export const failureDomains = () =>
  s
    .list(
      s.object({
        name: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the failure domain.'),
        controlPlane: s.boolean().optional().doc('Whether control plane machines may be placed here.'),
        attributes: s.map(s.string()).optional().doc('Attributes, without meaning to Cluster API.'),
      }),
      { minItems: 1, maxItems: 100 },
    )
    .listMap('name')

/**
 * Fields of `machineTemplate.spec`, in LocalControlPlane and its template, that propagate to Machines without a rollout. `readinessGates`
 * also propagates, but is not a field of the template.
 */
export const propagatedMachineFields = {
  minReadySeconds: s.int32({ minimum: 0 }).optional().doc('How long a Machine must be Ready before it is Available. Default 0.'),
  deletion: s
    .object(
      {
        nodeDrainTimeoutSeconds: s.int32({ minimum: 0 }).optional().doc('Timeout of draining the Node; 0 means without limit.'),
        nodeVolumeDetachTimeoutSeconds: s
          .int32({ minimum: 0 })
          .optional()
          .doc('Timeout of detaching the volumes; 0 means without limit.'),
        nodeDeletionTimeoutSeconds: s
          .int32({ minimum: 0 })
          .optional()
          .doc('Timeout of deleting the Node; 0 means without limit.'),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('Timeouts of Machine deletion.'),
  taints: s
    .list(
      s.object({
        key: s.string({ minLength: 1, maxLength: 317, pattern: qualifiedName }).doc('Key of the taint.'),
        value: s.string({ minLength: 1, maxLength: 63, pattern: labelValue }).optional().doc('Value of the taint.'),
        effect: s.enum('NoSchedule', 'PreferNoSchedule', 'NoExecute').doc('Effect on Pods that do not tolerate the taint.'),
        propagation: s
          .enum('Always', 'OnInitialization')
          .doc('Always keeps the taint on the Node; OnInitialization adds it once.'),
      }),
      { minItems: 1, maxItems: 64 },
    )
    .listMap('key', 'effect')
    .optional()
    .doc('Taints of the Nodes.'),
} satisfies Shape

export const readinessGates = () =>
  s
    .list(
      s.object({
        conditionType: s
          .string({ minLength: 1, maxLength: 316, pattern: conditionType })
          .doc('Type of a condition of the Machine.'),
        polarity: s
          .enum('Positive', 'Negative')
          .optional()
          .doc('Positive (the default): the gate passes while the condition is True. Negative: while it is False.'),
      }),
      { minItems: 1, maxItems: 32 },
    )
    .listMap('conditionType')
    .optional()
    .doc('Additional conditions that must be met for a Machine to be Ready.')
