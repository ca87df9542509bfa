import type { DeclaredKind } from '@capstan/kube'
import { LocalBootstrapConfig, LocalBootstrapConfigTemplate } from './local-bootstrap-config.ts'
import { LocalCluster, LocalClusterTemplate } from './local-cluster.ts'
import { LocalControlPlane, LocalControlPlaneTemplate } from './local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from './local-machine.ts'
import { LocalMachinePool, LocalMachinePoolTemplate } from './local-machine-pool.ts'

/** All kinds of this provider, to install their CustomResourceDefinitions. */
export const localKinds = [
  LocalCluster,
  LocalClusterTemplate,
  LocalMachine,
  LocalMachineTemplate,
  LocalMachinePool,
  LocalMachinePoolTemplate,
  LocalControlPlane,
  LocalControlPlaneTemplate,
  LocalBootstrapConfig,
  LocalBootstrapConfigTemplate,
] as unknown as readonly DeclaredKind[]
