import { addressesOf, failureDomainsOfMachine, InfraMachineContract, MachineConditions, providerIDOf } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting, type NewCondition, TerminalError } from '@capstan/kube'
import { failureOf, setFailure } from '../external/failure.ts'
import { mirroredCondition } from '../external/mirrored.ts'
import { readTyped } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { observeAndAdopt } from './reference.ts'
import type { MachinePhase, MachineScope } from './scope.ts'

/** Adopts the infrastructure machine and, once it is provisioned, copies its provider ID, addresses and failure domain. */
export const infrastructure: MachinePhase = async (scope, io) => {
  const { machine } = scope
  const ref = machine.spec.infrastructureRef
  scope.infrastructure = await observeAndAdopt(scope, io, ref)
  if (scope.infrastructure.state !== 'found') {
    if (isDeleting(machine)) return proceed()
    if (!wasProvisioned(scope)) return wait(`${ref.kind} ${ref.name} to exist`)
    const failureMessage = `Machine infrastructure resource ${ref.kind} ${machine.metadata.namespace}/${ref.name} has been deleted after provisioning was completed`
    setFailure(machine, { failureReason: 'InvalidConfiguration', failureMessage })
    throw new TerminalError(failureMessage)
  }
  const { external } = scope.infrastructure
  setFailure(machine, failureOf(external, InfraMachineContract))
  if (isDeleting(external.object)) return proceed()
  if (!readTyped(external, InfraMachineContract.provisioned, 'boolean') && !wasProvisioned(scope)) {
    return wait(`${ref.kind} ${ref.name} to be provisioned`)
  }
  const providerID = readContract(scope.infrastructure, providerIDOf)
  if (!providerID) return wait(`${ref.kind} ${ref.name} to report spec.providerID`)

  const status = (machine.status ??= {})
  const addresses = readContract(scope.infrastructure, addressesOf)
  const { inSpec, inStatus } = readContract(scope.infrastructure, failureDomainsOfMachine)
  if (addresses?.length) status.addresses = addresses
  else if (addresses) delete status.addresses
  // Upstream: the provider's spec.failureDomain is deprecated, but still overrides the Machine's.
  if (inSpec) machine.spec.failureDomain = inSpec
  else if (inSpec === '') delete machine.spec.failureDomain
  if (inStatus) status.failureDomain = inStatus
  else if (inStatus === '') delete status.failureDomain
  machine.spec.providerID = providerID
  status.initialization = { ...status.initialization, infrastructureProvisioned: true }
  return proceed()
}

/** Returns the InfrastructureReady condition. Pure. */
export function infrastructureReadyCondition(scope: MachineScope): NewCondition {
  const { machine, infrastructure } = scope
  const { kind } = machine.spec.infrastructureRef
  const unexpected = isDeleting(machine) ? '' : ' while the Machine still exists'
  return mirroredCondition(infrastructure, {
    kind,
    as: MachineConditions.InfrastructureReady,
    source: 'Ready',
    milestone: InfraMachineContract.provisioned,
    reached: wasProvisioned(scope),
    deleted: wasProvisioned(scope) ? `${kind} has been deleted${unexpected}` : undefined,
  })
}

const wasProvisioned = ({ machine }: MachineScope): boolean => machine.status?.initialization?.infrastructureProvisioned === true
