/** The kinds of this provider, and the controllers that a manager runs. */
import type { Controller } from '@capstan/controller'
import type { DeclaredKind } from '@capstan/kube'
import type { Cloud } from './cloud.ts'
import { clusterController, SampleCluster, SampleClusterTemplate } from './cluster.ts'
import { controlPlaneController, SampleControlPlane, SampleControlPlaneTemplate } from './control-plane.ts' // controlplane
import { machineController, SampleMachine, SampleMachineTemplate } from './machine.ts'
import { machinePoolController, SampleMachinePool, SampleMachinePoolTemplate } from './machine-pool.ts' // machinepool

export const kinds: readonly DeclaredKind[] = [
  SampleCluster,
  SampleClusterTemplate,
  SampleMachine,
  SampleMachineTemplate,
  SampleMachinePool, // machinepool
  SampleMachinePoolTemplate, // machinepool
  SampleControlPlane, // controlplane
  SampleControlPlaneTemplate, // controlplane
]

export const controllers = (cloud: Cloud): readonly Controller[] => [
  clusterController(cloud),
  machineController(cloud),
  machinePoolController(cloud), // machinepool
  controlPlaneController(cloud), // controlplane
]
