/**
 * Builders of the objects that the cases of core-twin create. `kinds` are the stub kinds of the objects to which a built object refers;
 * default: the kinds of contract v1beta2.
 */
import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Input, KubeObject } from '@capstan/kube'
import { stub, type StubKinds } from './stub-kinds.ts'

/** Name of the Cluster of each case. */
export const clusterName = 'c'
const ClusterNameLabel = 'cluster.x-k8s.io/cluster-name'
const ref = (kinds: StubKinds, kind: string, name: string) => ({ apiGroup: kinds.group, kind, name })

type Spec<T> = T extends { spec: infer S } ? Partial<S> : never

/** Returns a Cluster that refers to a stub infrastructure and a stub control plane. */
export const cluster = (spec: Spec<Input<Cluster>> = {}, kinds = stub): Input<Cluster> => ({
  metadata: { name: clusterName },
  spec: {
    infrastructureRef: ref(kinds, 'StubCluster', clusterName),
    controlPlaneRef: ref(kinds, 'StubControlPlane', clusterName),
    ...spec,
  },
})

/** Time of conditions in cases where the time has no effect. */
export const longAgo = '2026-01-01T00:00:00Z'

/** Returns a condition of a Node, with the fields that the kubelet sets. */
export const nodeCondition = <S extends string>(
  type: string,
  status: S,
  { reason = 'Twin', message = '', time = longAgo }: { reason?: string; message?: string; time?: string } = {},
) => ({ type, status, reason, message, lastHeartbeatTime: time, lastTransitionTime: time })

/** Returns an object with a name and the given fields, for any kind. */
export const named = (name: string, fields: object = {}): Input<KubeObject> =>
  ({ metadata: { name }, ...fields }) as Input<KubeObject>

/** Returns a Machine whose stub infrastructure machine and stub bootstrap config have the name of the Machine. */
export const machine = (name: string, spec: Spec<Input<Machine>> = {}, kinds = stub): Input<Machine> => ({
  metadata: { name },
  spec: {
    clusterName,
    version: 'v1.35.0',
    bootstrap: { configRef: ref(kinds, 'StubConfig', name) },
    infrastructureRef: ref(kinds, 'StubMachine', name),
    ...spec,
  },
})

const machineTemplate = (labels: { [key: string]: string }, kinds: StubKinds) => ({
  metadata: { labels },
  spec: {
    clusterName,
    version: 'v1.35.0',
    bootstrap: { configRef: ref(kinds, 'StubConfigTemplate', 'worker') },
    infrastructureRef: ref(kinds, 'StubMachineTemplate', 'worker'),
  },
})

/** Returns a MachineSet that uses the templates with the name `worker`, and selects Machines by the label `set`. */
export const machineSet = (name: string, spec: Spec<Input<MachineSet>> = {}, kinds = stub): Input<MachineSet> => ({
  metadata: { name, labels: { [ClusterNameLabel]: clusterName } },
  spec: {
    clusterName,
    replicas: 1,
    selector: { matchLabels: { set: name } },
    template: machineTemplate({ set: name }, kinds),
    ...spec,
  },
})

/** Returns a MachineDeployment that uses the templates with the name `worker`, and selects Machines by the label `deployment`. */
export const machineDeployment = (
  name: string,
  spec: Spec<Input<MachineDeployment>> = {},
  kinds = stub,
): Input<MachineDeployment> => ({
  metadata: { name, labels: { [ClusterNameLabel]: clusterName } },
  spec: {
    clusterName,
    replicas: 1,
    selector: { matchLabels: { deployment: name } },
    template: machineTemplate({ deployment: name }, kinds),
    ...spec,
  },
})
