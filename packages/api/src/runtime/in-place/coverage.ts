/**
 * Determines whether an extension covers all differences: its patches are applied to the current objects, whose specs must then equal those
 * of the desired objects, except in the fields that `differences.ts` ignores. Of MachineSets and templates, `spec.template.spec` is compared.
 * Labels and annotations are not compared. Pure. Upstream: canExtensionsUpdateMachine and canExtensionsUpdateMachineSet, v1.14.
 */
import { isRecord, shortList, type UnknownObject, withErrorContext } from '@capstan/kube'
import type { RequestOf, ResponseOf } from '../hook.ts'
import type { CanUpdateMachine } from '../hooks/can-update-machine.ts'
import type { CanUpdateMachineSet } from '../hooks/can-update-machine-set.ts'
import { applyResponsePatch, inPlacePatchPaths } from './apply-patch.ts'
import { differingPaths, machineSpecDifferences } from './differences.ts'

type MachineRequest = Pick<RequestOf<typeof CanUpdateMachine>, 'current' | 'desired'>
type MachineResponse = Pick<
  ResponseOf<typeof CanUpdateMachine>,
  'machinePatch' | 'infrastructureMachinePatch' | 'bootstrapConfigPatch'
>
type MachineSetRequest = Pick<RequestOf<typeof CanUpdateMachineSet>, 'current' | 'desired'>
type MachineSetResponse = Pick<
  ResponseOf<typeof CanUpdateMachineSet>,
  'machineSetPatch' | 'infrastructureMachineTemplatePatch' | 'bootstrapConfigTemplatePatch'
>

/**
 * Returns the differences of a Machine that a response does not cover, as one sentence for each object; empty when the Machine can be
 * updated in place. Bootstrap configs are compared when both the current and the desired objects have one.
 *
 * @throws Error when a patch cannot be applied
 */
export function uncoveredOfMachine({ current, desired }: MachineRequest, response: MachineResponse, handler: string): string[] {
  const patched = withErrorContext(`failed to apply patches from extension ${handler} to the CanUpdateMachine request`, () => ({
    machine: applyResponsePatch(current.machine, response.machinePatch, Spec),
    bootstrap: current.bootstrapConfig && applyResponsePatch(current.bootstrapConfig, response.bootstrapConfigPatch, Spec),
    infrastructure: applyResponsePatch(current.infrastructureMachine, response.infrastructureMachinePatch, Spec),
  }))
  return [
    ...sentence('Machine', machineSpecDifferences(patched.machine.spec, desired.machine.spec, 'spec')),
    ...providerDifferences(patched.bootstrap, desired.bootstrapConfig, Spec),
    ...providerDifferences(patched.infrastructure, desired.infrastructureMachine, Spec),
  ]
}

/**
 * Returns the differences that a response does not cover for Machines that would move from one MachineSet to another, as one sentence for
 * each object. Templates of bootstrap configs are compared when both MachineSets have one. Core calls the hook only if both have one, or
 * if neither has one.
 *
 * @throws Error when a patch cannot be applied
 */
export function uncoveredOfMachineSet(
  { current, desired }: MachineSetRequest,
  response: MachineSetResponse,
  handler: string,
): string[] {
  const patched = withErrorContext(
    `failed to apply patches from extension ${handler} to the CanUpdateMachineSet request`,
    () => ({
      set: applyResponsePatch(current.machineSet, response.machineSetPatch, TemplateSpec),
      bootstrap:
        current.bootstrapConfigTemplate &&
        applyResponsePatch(current.bootstrapConfigTemplate, response.bootstrapConfigTemplatePatch, TemplateSpec),
      infrastructure: applyResponsePatch(
        current.infrastructureMachineTemplate,
        response.infrastructureMachineTemplatePatch,
        TemplateSpec,
      ),
    }),
  )
  const [from, to] = [patched.set.spec.template.spec, desired.machineSet.spec.template.spec]
  return [
    ...sentence('MachineSet', machineSpecDifferences(from, to, TemplateSpec.join('.'))),
    ...providerDifferences(patched.bootstrap, desired.bootstrapConfigTemplate, TemplateSpec),
    ...providerDifferences(patched.infrastructure, desired.infrastructureMachineTemplate, TemplateSpec),
  ]
}

const Spec = inPlacePatchPaths.CanUpdateMachine
const TemplateSpec = inPlacePatchPaths.CanUpdateMachineSet

function providerDifferences(from: UnknownObject | undefined, to: UnknownObject | undefined, path: readonly string[]): string[] {
  if (!from || !to) return []
  const valueIn = (object: UnknownObject) =>
    path.reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), object)
  return sentence(from.kind, differingPaths(valueIn(from), valueIn(to), path.join('.')))
}

/** Maximum number of paths in one sentence. */
const MaxPaths = 10

/** Formats the uncovered paths of an object. Upstream logs a diff with values after the colon, not paths. */
function sentence(kind: string, paths: readonly string[]): string[] {
  if (paths.length === 0) return []
  return [`${kind} cannot be updated in-place: ${shortList(paths, MaxPaths)}`]
}
