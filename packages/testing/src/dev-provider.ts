/** Kinds of a provider without controllers. Tests act as the provider: they write fields of these objects, and check how core reacts. */
import { type DeclaredKind, defineKind, s } from '@capstan/kube'

const devKind = (group: string, kind: string, plural: string, contract = 'v1beta2'): DeclaredKind =>
  defineKind({
    group,
    version: 'v1beta1',
    kind,
    plural,
    scope: 'Namespaced',
    spec: s.unknownObject().optional(),
    status: s.unknownObject(),
    labels: { [`cluster.x-k8s.io/${contract}`]: 'v1beta1' },
  }) as unknown as DeclaredKind

export const DevCluster = devKind('infra.example.com', 'DevCluster', 'devclusters')
export const DevMachine = devKind('infra.example.com', 'DevMachine', 'devmachines')
export const DevMachinePool = devKind('infra.example.com', 'DevMachinePool', 'devmachinepools')
/** Like DevMachinePool, but of contract v1beta1. */
export const OldMachinePool = devKind('infra.example.com', 'OldMachinePool', 'oldmachinepools', 'v1beta1')
export const DevControlPlane = devKind('controlplane.example.com', 'DevControlPlane', 'devcontrolplanes')
export const DevConfig = devKind('bootstrap.example.com', 'DevConfig', 'devconfigs')

export const devKinds: readonly DeclaredKind[] = [
  DevCluster,
  DevMachine,
  DevMachinePool,
  OldMachinePool,
  DevControlPlane,
  DevConfig,
]

export const DevClusterTemplate = devKind('infra.example.com', 'DevClusterTemplate', 'devclustertemplates')
export const DevMachineTemplate = devKind('infra.example.com', 'DevMachineTemplate', 'devmachinetemplates')
export const DevControlPlaneTemplate = devKind('controlplane.example.com', 'DevControlPlaneTemplate', 'devcontrolplanetemplates')
export const DevConfigTemplate = devKind('bootstrap.example.com', 'DevConfigTemplate', 'devconfigtemplates')

export const devTemplateKinds: readonly DeclaredKind[] = [
  DevClusterTemplate,
  DevMachineTemplate,
  DevControlPlaneTemplate,
  DevConfigTemplate,
]
