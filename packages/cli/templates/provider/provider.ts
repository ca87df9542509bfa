/** The kinds of this provider, and the controllers that a manager runs. */
import type { Controller } from '@capstan/controller'
import type { DeclaredKind } from '@capstan/kube'
import type { Cloud } from './cloud.ts'
import { clusterController, SampleCluster, SampleClusterTemplate } from './cluster.ts'
import { controlPlaneController, SampleControlPlane, SampleControlPlaneTemplate } from './control-plane.ts' // if --kinds includes controlplane
import { machineController, SampleMachine, SampleMachineTemplate } from './machine.ts'
import { machinePoolController, SampleMachinePool, SampleMachinePoolTemplate } from './machine-pool.ts' // if --kinds includes machinepool

export const kinds: readonly DeclaredKind[] = [
  SampleCluster,
  SampleClusterTemplate,
  SampleMachine,
  SampleMachineTemplate,
  SampleMachinePool, // if --kinds includes machinepool
  SampleMachinePoolTemplate, // if --kinds includes machinepool
  SampleControlPlane, // if --kinds includes controlplane
  SampleControlPlaneTemplate, // if --kinds includes controlplane
]

export const controllers = (cloud: Cloud): readonly Controller[] => [
  clusterController(cloud),
  machineController(cloud),
  machinePoolController(cloud), // if --kinds includes machinepool
  controlPlaneController(cloud), // if --kinds includes controlplane
]
