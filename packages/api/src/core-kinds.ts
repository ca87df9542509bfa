import type { DeclaredKind } from '@capstan/kube'
import { ClusterResourceSet } from './addons/v1beta2/cluster-resource-set.ts'
import { ClusterResourceSetBinding } from './addons/v1beta2/cluster-resource-set-binding.ts'
import { Cluster } from './core/v1beta2/cluster.ts'
import { ClusterClass } from './core/v1beta2/cluster-class.ts'
import { Machine } from './core/v1beta2/machine.ts'
import { MachineDeployment } from './core/v1beta2/machine-deployment.ts'
import { MachineDrainRule } from './core/v1beta2/machine-drain-rule.ts'
import { MachineHealthCheck } from './core/v1beta2/machine-health-check.ts'
import { MachinePool } from './core/v1beta2/machine-pool.ts'
import { MachineSet } from './core/v1beta2/machine-set.ts'
import { IPAddress } from './ipam/v1beta2/ip-address.ts'
import { IPAddressClaim } from './ipam/v1beta2/ip-address-claim.ts'
import { ExtensionConfig } from './runtime/v1beta2/extension-config.ts'

/** All kinds of the core provider. */
export const coreKinds = [
  Cluster,
  ClusterClass,
  Machine,
  MachineSet,
  MachineDeployment,
  MachinePool,
  MachineHealthCheck,
  MachineDrainRule,
  ClusterResourceSet,
  ClusterResourceSetBinding,
  IPAddress,
  IPAddressClaim,
  ExtensionConfig,
] as unknown as readonly DeclaredKind[]
