/**
 * What runs in a workload cluster, as far as Cluster API looks at it. What a pod's specification holds beside the fields named
 * here is kept as it came.
 */
import { type FieldError, invalid } from '../errors.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { type Schema, s } from '../schema.ts'
import { labelSelector } from './label-selector.ts'

/** Declared fields are typed and checked, all others kept. */
const open = <T, O extends boolean>(schema: Schema<T, O>): Schema<T, O> =>
  schema.with({ 'x-kubernetes-preserve-unknown-fields': true })

const podSpec = () =>
  open(
    s.object({
      containers: s
        .list(open(s.object({ name: s.string(), image: s.string().optional() })))
        .listMap('name')
        .with({ 'x-kubernetes-patch-merge-key': 'name', 'x-kubernetes-patch-strategy': 'merge' } as object)
        .optional(),
      nodeName: s.string().optional(),
      hostNetwork: s.boolean().optional(),
      priorityClassName: s.string().optional(),
      serviceAccountName: s.string().optional(),
      terminationGracePeriodSeconds: s.int64().optional(),
    }),
  )

const podTemplate = () =>
  s.object({
    metadata: s
      .object({ labels: s.map(s.string()).optional(), annotations: s.map(s.string()).optional() })
      .with({ 'x-kubernetes-preserve-unknown-fields': true })
      .optional(),
    spec: podSpec().optional(),
  })

const podConditions = () =>
  s
    .list(
      open(
        s.object({
          type: s.string(),
          status: s.string(),
          reason: s.string().optional(),
          message: s.string().optional(),
          lastTransitionTime: s.timestamp().nullable().optional(),
        }),
      ),
    )
    .listMap('type')
    .with({ 'x-kubernetes-patch-merge-key': 'type', 'x-kubernetes-patch-strategy': 'merge' } as object)

export const Pod = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  categories: ['all'],
  scope: 'Namespaced',
  doc: 'Containers that run together on a node.',
  spec: podSpec().optional(),
  status: open(
    s.object({
      phase: s.string().optional(),
      conditions: podConditions().optional(),
      podIP: s.string().optional(),
      hostIP: s.string().optional(),
      containerStatuses: s
        .list(open(s.object({ name: s.string(), ready: s.boolean().optional(), restartCount: s.int32().optional() })))
        .optional(),
    }),
  ),
})
export type Pod = ObjectOf<typeof Pod>

export const Service = defineKind({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  shortNames: ['svc'],
  categories: ['all'],
  scope: 'Namespaced',
  doc: 'A name and an address for a set of pods.',
  spec: open(
    s.object({
      type: s.string().optional(),
      clusterIP: s.string().optional(),
      selector: s.map(s.string()).atomic().optional(),
      ports: s
        .list(
          open(
            s.object({
              name: s.string().optional(),
              protocol: s.string().default('TCP'),
              port: s.int32(),
              targetPort: s.intOrString().optional(),
            }),
          ),
        )
        .optional(),
      sessionAffinity: s.string().optional(),
      internalTrafficPolicy: s.string().optional(),
    }),
  ).optional(),
  status: s.unknownObject(),
  default(service) {
    const spec = (service.spec ??= {})
    spec.type ??= 'ClusterIP'
    spec.sessionAffinity ??= 'None'
    if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster'
    for (const port of spec.ports ?? []) port.targetPort ??= port.port
  },
})
export type Service = ObjectOf<typeof Service>

export const Deployment = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  shortNames: ['deploy'],
  categories: ['all'],
  scope: 'Namespaced',
  doc: 'Keeps a number of pods running, and rolls changes out.',
  spec: open(
    s.object({
      replicas: s.int32().optional(),
      selector: labelSelector,
      template: podTemplate(),
      strategy: s.unknownObject().optional(),
      minReadySeconds: s.int32().optional(),
      revisionHistoryLimit: s.int32().optional(),
      progressDeadlineSeconds: s.int32().optional(),
    }),
  ),
  status: open(
    s.object({
      observedGeneration: s.int64().optional(),
      replicas: s.int32().optional(),
      updatedReplicas: s.int32().optional(),
      readyReplicas: s.int32().optional(),
      availableReplicas: s.int32().optional(),
      conditions: podConditions().optional(),
    }),
  ),
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  default({ spec }) {
    spec.replicas ??= 1
    spec.strategy ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
    spec.revisionHistoryLimit ??= 10
    spec.progressDeadlineSeconds ??= 600
  },
  validate: (deployment) => selectorErrors(deployment.spec),
})
export type Deployment = ObjectOf<typeof Deployment>

export const DaemonSet = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  shortNames: ['ds'],
  categories: ['all'],
  scope: 'Namespaced',
  doc: 'Keeps one pod running on every node.',
  spec: open(
    s.object({
      selector: labelSelector,
      template: podTemplate(),
      updateStrategy: s.unknownObject().optional(),
      minReadySeconds: s.int32().optional(),
      revisionHistoryLimit: s.int32().optional(),
    }),
  ),
  status: open(
    s.object({
      observedGeneration: s.int64().optional(),
      currentNumberScheduled: s.int32().optional(),
      desiredNumberScheduled: s.int32().optional(),
      numberMisscheduled: s.int32().optional(),
      numberReady: s.int32().optional(),
      updatedNumberScheduled: s.int32().optional(),
      numberAvailable: s.int32().optional(),
    }),
  ),
  default({ spec }) {
    spec.updateStrategy ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }
    spec.revisionHistoryLimit ??= 10
  },
  validate: (daemonSet) => selectorErrors(daemonSet.spec),
})
export type DaemonSet = ObjectOf<typeof DaemonSet>

function selectorErrors({
  selector: { matchLabels = {} },
  template,
}: {
  selector: { matchLabels?: { [key: string]: string } }
  template: { metadata?: { labels?: { [key: string]: string } } }
}): FieldError[] {
  const labels = template.metadata?.labels ?? {}
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
    ? []
    : [invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')]
}
