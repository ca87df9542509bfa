/**
 * Computes the desired Machines of a MachineSet. Pure, except for the random numbers that `machineName` takes from its argument. Upstream:
 * computeDesiredMachine in machineset_controller.go, v1.14.
 */
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
import {
  controllerReference,
  diffMerge,
  draft,
  equal,
  type Input,
  type JsonObject,
  type Random,
  withErrorContext,
} from '@capstan/kube'
import type { WantedMetadata } from '../managed-metadata.ts'
import { nameFromTemplate } from '../naming/generated-name.ts'

const DefaultNaming = '{{ .machineSet.name }}-{{ .random }}'

/**
 * Returns a name for a new Machine, by the naming template of the set.
 * @throws Error when the naming template is invalid or does not contain `{{ .random }}`
 */
export function machineName({ metadata, spec }: MachineSet, random: Random): string {
  const template = spec.machineNaming?.template || DefaultNaming
  // Only for an API server that does not call the admission webhooks: admission rejects a template without this text.
  if (!template.includes('{{ .random }}'))
    throw new Error('cannot generate Machine name: {{ .random }} is missing in machineNaming.template')
  const data = { cluster: { name: spec.clusterName }, machineSet: { name: metadata.name } }
  return withErrorContext('failed to generate Machine name', () => nameFromTemplate(template, data, random))
}

/** Returns labels and annotations of a Machine, its bootstrap config and its infrastructure. */
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

/** Returns a Machine to create. The Machine has its finalizer from the start, so that its infrastructure is always deleted as well. */
export function newMachine(
  machineSet: MachineSet,
  refs: { name: string; configRef?: ContractVersionedObjectReference; infrastructureRef: ContractVersionedObjectReference },
): Input<Machine> {
  const { namespace } = machineSet.metadata
  const { template, clusterName } = machineSet.spec
  // The configRef of the set names a template. If the Machine had this reference, the template would be deleted with the Machine.
  const { configRef: _template, ...dataSecret } = template.spec.bootstrap
  const bootstrap = { ...dataSecret, ...(refs.configRef ? { configRef: refs.configRef } : {}) }
  return {
    metadata: {
      name: refs.name,
      namespace: namespace!,
      ...wantedMetadata(machineSet),
      finalizers: [MachineFinalizer],
      ownerReferences: [controllerReference(machineSet, MachineSet)],
    },
    spec: { ...template.spec, clusterName, bootstrap, infrastructureRef: refs.infrastructureRef },
  }
}

/**
 * Returns the fields of an existing Machine that the MachineSet writes by server-side apply. References, version and failure domain of the
 * Machine stay.
 */
export function machineIntent(machineSet: MachineSet, machine: Machine): Input<Machine> {
  const { bootstrap, infrastructureRef, version, failureDomain } = machine.spec
  const { name, finalizers = [] } = machine.metadata
  const { configRef } = bootstrap
  const desired = newMachine(machineSet, { name, infrastructureRef, ...(configRef ? { configRef } : {}) })
  const ownBootstrap = equal(desired.spec.bootstrap, {}) ? undefined : desired.spec.bootstrap
  return draft({
    metadata: {
      ...desired.metadata,
      // As upstream, includes the finalizers of other writers.
      finalizers: finalizers.includes(MachineFinalizer) ? finalizers : [...finalizers, MachineFinalizer],
    },
    // As upstream, an empty bootstrap is not applied, so that the set does not become a manager of this field.
    spec: { ...desired.spec, bootstrap: ownBootstrap, version, failureDomain },
  }) as Input<Machine>
}

/**
 * Returns the merge patch for the spec of a Machine that is being deleted. It has the fields of the set that propagate also to such
 * Machines. `undefined` when there is no difference.
 */
export const inPlaceChange = (machineSet: MachineSet, machine: Machine): JsonObject | undefined =>
  diffMerge(machine.spec, { ...machine.spec, ...inPlaceFields(machineSet.spec.template.spec) })

/** Returns the fields of the template's spec that propagate to all existing Machines, also to those that are being deleted. */
function inPlaceFields({ readinessGates, minReadySeconds, taints, deletion }: MachineSpec) {
  // Admission sets this default on Machines: without it here, every reconcile would see a difference.
  const { nodeDeletionTimeoutSeconds = 10 } = deletion ?? {}
  return { readinessGates, minReadySeconds, taints, deletion: { ...deletion, nodeDeletionTimeoutSeconds } }
}
