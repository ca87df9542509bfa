import type { DeclaredKind } from '@capstan/kube'
import { LocalBootstrapConfig, LocalBootstrapConfigTemplate } from './local-bootstrap-config.ts'
import { LocalCluster, LocalClusterTemplate } from './local-cluster.ts'
import { LocalControlPlane, LocalControlPlaneTemplate } from './local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from './local-machine.ts'

/** Every kind of this provider, for whoever installs its CustomResourceDefinitions. */
export const localKinds = [
  LocalCluster,
  LocalClusterTemplate,
  LocalMachine,
  LocalMachineTemplate,
  LocalControlPlane,
  LocalControlPlaneTemplate,
  LocalBootstrapConfig,
  LocalBootstrapConfigTemplate,
] as unknown as readonly DeclaredKind[]
