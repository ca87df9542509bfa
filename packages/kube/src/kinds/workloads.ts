/**
 * The kinds Pod and DaemonSet. Their schemas declare only some fields; other fields of specs, containers, statuses, container
 * statuses, conditions and the metadata of pod templates are preserved.
 */
import { defineKind, type ObjectOf } from '../kind.ts'
import { type Schema, s } from '../schema.ts'
import { labelSelector } from './label-selector.ts'

/** Adds preservation of unknown fields to a schema: declared fields are validated, all other fields are preserved. */
const keepUnknownFields = <T, O extends boolean>(schema: Schema<T, O>): Schema<T, O> =>
  schema.with({ 'x-kubernetes-preserve-unknown-fields': true })

const podSpec = () =>
  keepUnknownFields(
    s.object({
      containers: s
        .list(keepUnknownFields(s.object({ name: s.string(), image: s.string().optional() })))
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
      keepUnknownFields(
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
  doc: 'A group of containers that run on the same node.',
  spec: podSpec().optional(),
  status: keepUnknownFields(
    s.object({
      phase: s.string().optional(),
      conditions: podConditions().optional(),
      podIP: s.string().optional(),
      hostIP: s.string().optional(),
      containerStatuses: s
        .list(
          keepUnknownFields(s.object({ name: s.string(), ready: s.boolean().optional(), restartCount: s.int32().optional() })),
        )
        .optional(),
    }),
  ),
})
export type Pod = ObjectOf<typeof Pod>

export const DaemonSet = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  shortNames: ['ds'],
  categories: ['all'],
  scope: 'Namespaced',
  doc: 'Runs one pod on every node, or on each of the selected nodes.',
  spec: keepUnknownFields(
    s.object({
      selector: labelSelector,
      template: podTemplate(),
      updateStrategy: s.unknownObject().optional(),
      minReadySeconds: s.int32().optional(),
      revisionHistoryLimit: s.int32().optional(),
    }),
  ),
  status: keepUnknownFields(
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
})
export type DaemonSet = ObjectOf<typeof DaemonSet>
