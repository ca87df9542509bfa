import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

const quantities = () => s.map(s.intOrString()).optional()

export const Node = defineKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  shortNames: ['no'],
  scope: 'Cluster',
  doc: 'A worker or control plane machine of the cluster.',
  spec: s
    .object({
      providerID: s.string().optional().doc('ID of the machine at its infrastructure provider: <provider>://<id>.'),
      podCIDR: s.string().optional(),
      podCIDRs: s.list(s.string()).listSet().optional(),
      unschedulable: s.boolean().optional(),
      taints: s
        .list(
          s.object({
            key: s.string(),
            value: s.string().optional(),
            effect: s.enum('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
            timeAdded: s.timestamp().optional(),
          }),
        )
        .atomic()
        .optional(),
      configSource: s.unknownObject().optional(),
      externalID: s.string().optional(),
    })
    .optional(),
  status: s
    .object({
      capacity: quantities(),
      allocatable: quantities(),
      phase: s.string().optional(),
      conditions: s
        .list(
          s.object({
            type: s.string(),
            status: s.string(),
            lastHeartbeatTime: s.timestamp().nullable().optional(),
            lastTransitionTime: s.timestamp().nullable().optional(),
            reason: s.string().optional(),
            message: s.string().optional(),
          }),
        )
        .listMap('type')
        .with({ 'x-kubernetes-patch-merge-key': 'type', 'x-kubernetes-patch-strategy': 'merge' } as object)
        .optional(),
      addresses: s
        .list(s.object({ type: s.string(), address: s.string() }))
        .listMap('type')
        .with({ 'x-kubernetes-patch-merge-key': 'type', 'x-kubernetes-patch-strategy': 'merge' } as object)
        .optional(),
      nodeInfo: s
        .object({
          machineID: s.string().optional(),
          systemUUID: s.string().optional(),
          bootID: s.string().optional(),
          kernelVersion: s.string().optional(),
          osImage: s.string().optional(),
          containerRuntimeVersion: s.string().optional(),
          kubeletVersion: s.string().optional(),
          kubeProxyVersion: s.string().optional(),
          operatingSystem: s.string().optional(),
          architecture: s.string().optional(),
        })
        .with({ 'x-kubernetes-preserve-unknown-fields': true })
        .optional(),
    })
    .with({ 'x-kubernetes-preserve-unknown-fields': true }),
})
export type Node = ObjectOf<typeof Node>
