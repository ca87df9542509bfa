/** What a MachineSet wants of its Machines. Pure. Upstream: computeDesiredMachine in machineset_controller.go, v1.14. */
import {
  Machine,
  MachineDeploymentNameLabel,
  MachineFinalizer,
  MachineSet,
  MachineSetNameLabel,
  type ContractVersionedObjectReference,
  type MachineSpec,
  labelValue,
} from '@capstan/api'
import { controllerReference, diffMerge, type Input, type JsonObject, type Random } from '@capstan/kube'
import { metadataPatch, type MetadataPatch, type WantedMetadata } from '../managed-metadata.ts'
import { nameFromTemplate } from '../naming/generated-name.ts'
import { MachineSetManager } from './scope.ts'

const DefaultNaming = '{{ .machineSet.name }}-{{ .random }}'

export function machineName({ metadata, spec }: MachineSet, random: Random): string {
  const data = { cluster: { name: spec.clusterName }, machineSet: { name: metadata.name } }
  return nameFromTemplate(spec.machineNaming?.template ?? DefaultNaming, data, random)
}

/** Labels and annotations of a Machine, and of its bootstrap config and infrastructure. */
export function wantedMetadata({ metadata, spec }: MachineSet): WantedMetadata {
  const deployment = metadata.labels?.[MachineDeploymentNameLabel]
  return {
    labels: {
      ...spec.template.metadata?.labels,
      [MachineSetNameLabel]: labelValue(metadata.name),
      ...(deployment === undefined ? {} : { [MachineDeploymentNameLabel]: deployment }),
    },
    annotations: { ...spec.template.metadata?.annotations },
  }
}

/** A Machine to create. Its finalizer is there from the beginning, so that it cannot vanish and leave its infrastructure behind. */
export function newMachine(
  machineSet: MachineSet,
  of: { name: string; configRef?: ContractVersionedObjectReference; infrastructureRef: ContractVersionedObjectReference },
): Input<Machine> {
  const { namespace } = machineSet.metadata
  const { template, clusterName } = machineSet.spec
  const bootstrap = of.configRef ? { ...template.spec.bootstrap, configRef: of.configRef } : template.spec.bootstrap
  return {
    metadata: {
      name: of.name,
      namespace: namespace!,
      ...wantedMetadata(machineSet),
      finalizers: [MachineFinalizer],
      ownerReferences: [controllerReference(machineSet, MachineSet)],
    },
    spec: { ...template.spec, clusterName, bootstrap, infrastructureRef: of.infrastructureRef },
  }
}

/** What a Machine has to take over from its set, as a merge patch; `undefined` when it has it all. */
export interface InPlaceChange {
  readonly metadata: MetadataPatch | undefined
  readonly spec: JsonObject | undefined
}

export function inPlaceChange(machineSet: MachineSet, machine: Machine): InPlaceChange {
  const wanted = { ...machine.spec, ...inPlaceFields(machineSet.spec.template.spec) }
  return {
    metadata: metadataPatch(machine, MachineSetManager, wantedMetadata(machineSet)),
    spec: diffMerge(machine.spec, wanted),
  }
}

/** Fields that reach Machines which are there already. All others need a new Machine. */
function inPlaceFields({ readinessGates, minReadySeconds, taints, deletion }: MachineSpec) {
  // Machines get this default on admission: without it here, every pass would find it to be in the way.
  const { nodeDeletionTimeoutSeconds = 10 } = deletion ?? {}
  return { readinessGates, minReadySeconds, taints, deletion: { ...deletion, nodeDeletionTimeoutSeconds } }
}
