/** Reads fields of provider objects at the paths of the contract version that core chooses. */
import { type ContractField, ControlPlaneContract, readField } from '@capstan/api/contract'
import type { KubeObject } from '@capstan/kube'
import type { ContractName } from '../manifests.ts'
import { fieldAt } from '../schema-fields.ts'
import type { ScenarioRecord } from './bench.ts'

/** Returns the value of a field; `undefined` if the field is absent or null, or a parent of the field is not an object. */
export function read<T>(
  { target }: Pick<ScenarioRecord, 'target'>,
  contract: ContractName,
  object: KubeObject,
  field: ContractField<T>,
): T | undefined {
  try {
    return readField(object, field, target[contract]!.contractVersion)
  } catch {
    return undefined
  }
}

/**
 * Returns the value of a field of the object with this name, as last recorded; `undefined` if there is no such object or no value (see
 * `read`). `contract` determines the kind of the object.
 */
export function readOf<T>(
  recorded: Pick<ScenarioRecord, 'target' | 'recording'>,
  contract: ContractName,
  name: string,
  field: ContractField<T>,
): T | undefined {
  const underTest = recorded.target[contract]
  const object = underTest && recorded.recording.object(underTest.kind, name)
  return object && read(recorded, contract, object, field)
}

/** Whether the schema of a kind under test has a field, or accepts unknown fields in its place. */
export function declares<T>(
  { target }: Pick<ScenarioRecord, 'target'>,
  contract: ContractName,
  field: ContractField<T>,
): boolean {
  const underTest = target[contract]
  const schema = underTest?.crd.spec.versions.find(({ name }) => name === underTest.kind.version)?.schema?.openAPIV3Schema
  return schema !== undefined && fieldAt(schema, field.paths[underTest!.contractVersion]) !== undefined
}

/** Whether objects of the control plane kind under test can have the field `spec.replicas`. */
export const hasReplicas = (recorded: Pick<ScenarioRecord, 'target'>): boolean =>
  declares(recorded, 'ControlPlane', ControlPlaneContract.specReplicas)

/** Whether objects of the control plane kind under test can have the field `spec.version`, the Kubernetes version. */
export const hasVersion = (recorded: Pick<ScenarioRecord, 'target'>): boolean =>
  declares(recorded, 'ControlPlane', ControlPlaneContract.version)
