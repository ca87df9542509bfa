import type { DeclaredKind } from '@capstan/kube'
import { Cluster } from './core/v1beta2/cluster.ts'
import { ClusterClass } from './core/v1beta2/cluster-class.ts'
import { Machine } from './core/v1beta2/machine.ts'
import { MachineDeployment } from './core/v1beta2/machine-deployment.ts'
import { MachineSet } from './core/v1beta2/machine-set.ts'
import { ExtensionConfig } from './runtime/v1beta2/extension-config.ts'

/** Every kind of the core provider, for whoever installs its CustomResourceDefinitions. */
export const coreKinds = [
  Cluster,
  ClusterClass,
  Machine,
  MachineSet,
  MachineDeployment,
  ExtensionConfig,
] as unknown as readonly DeclaredKind[]
