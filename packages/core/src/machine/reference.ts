/** The objects that a Machine refers to: its bootstrap config and its infrastructure machine. */
import { Machine, MachineControlPlaneLabel, PausedAnnotation } from '@capstan/api'
import type { ContractField } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { apiVersionOf, controllerReference, keyOf, type OwnerReference, parseApiVersion } from '@capstan/kube'
import { adopt } from '../external/adopt.ts'
import type { ContractRef, External } from '../external/get.ts'
import { type Observed, observed, read } from '../external/observed.ts'
import { observeExternal } from '../external/observe.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { MachineIO, MachineScope } from './scope.ts'

/** Reads a referenced object, and takes it over from whoever made it for the Machine. */
export async function observeReference(scope: MachineScope, io: MachineIO, ref: ContractRef): Promise<Observed> {
  const { machine, cluster } = scope
  const external = await observeExternal(io, ref, machine.metadata.namespace!, machinesOfReference)
  if (!external || external.object.metadata.annotations?.[PausedAnnotation] !== undefined) return observed(external)
  const object = await adopt(io.client, external.kind, external.object, {
    owner: controllerReference(machine, Machine),
    clusterName: machine.spec.clusterName,
    release: (owner) => isMaker(owner, scope),
  })
  return observed({ ...external, object })

  /** A MachineSet or a control plane owns what it makes for a Machine until the Machine does. */
  function isMaker({ apiVersion, kind }: OwnerReference, { machine }: MachineScope): boolean {
    const { group } = parseApiVersion(apiVersion)
    if (kind === 'MachineSet' && group === Machine.group) return true
    const controlPlane = cluster.spec.controlPlaneRef
    const isControlPlane = machine.metadata.labels?.[MachineControlPlaneLabel] !== undefined
    return isControlPlane && controlPlane?.kind === kind && controlPlane.apiGroup === group
  }
}

/** Tells a provider's terminal failure on, in the deprecated fields made for it. */
export function copyFailure(
  { machine }: MachineScope,
  external: External,
  fields: { failureReason: ContractField<string>; failureMessage: ContractField<string> },
): void {
  const reason = read(external, fields.failureReason)
  const message = read(external, fields.failureMessage)
  if (!reason && !message) return
  const { kind, object } = external
  setFailure(machine, {
    ...(reason ? { failureReason: reason } : {}),
    ...(message
      ? {
          failureMessage: `Failure detected from referenced resource ${apiVersionOf(kind)}, Kind=${kind.kind} with name "${object.metadata.name}": ${message}`,
        }
      : {}),
  })
}

export function setFailure(machine: Machine, failure: { failureReason?: string; failureMessage?: string }): void {
  const status = (machine.status ??= {})
  status.deprecated = { ...status.deprecated, v1beta1: { ...status.deprecated?.v1beta1, ...failure } }
}

/** Machines by what they refer to. */
export const byReference: Index<Machine> = {
  name: 'machine by reference',
  kind: Machine,
  values: ({ metadata, spec }) =>
    [spec.infrastructureRef, spec.bootstrap.configRef].flatMap((ref) => (ref ? referenceText(ref, metadata.namespace) : [])),
}

const machinesOfReference: MapFunction = (object, cache) => cache.byIndex(byReference, referredText(object)).map(keyOf)
