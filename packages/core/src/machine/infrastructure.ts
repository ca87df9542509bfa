import { addressesOf, InfraMachineContract, MachineConditions } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting, type NewCondition, TerminalError } from '@capstan/kube'
import { failureOf, setFailure } from '../external/failure.ts'
import { mirrored } from '../external/mirrored.ts'
import { invalidOf, readTyped } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { observeReference } from './reference.ts'
import type { MachinePhase, MachineScope } from './scope.ts'

/** Adopts the infrastructure machine and, once it is provisioned, copies its provider ID and addresses. */
export const infrastructure: MachinePhase = async (scope, io) => {
  const { machine } = scope
  const ref = machine.spec.infrastructureRef
  scope.infrastructure = await observeReference(scope, io, ref)
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
  const providerID = readTyped(external, InfraMachineContract.providerID, 'string')
  if (!providerID) return wait(`${ref.kind} ${ref.name} to report spec.providerID`)

  const status = (machine.status ??= {})
  const addresses = readContract(scope.infrastructure, addressesOf)
  if (addresses) status.addresses = addresses
  // Upstream: the deprecated spec field still wins when a provider sets it.
  const chosen = readTyped(external, InfraMachineContract.specFailureDomain, 'string')
  if (chosen) machine.spec.failureDomain = chosen
  else if (chosen === '') delete machine.spec.failureDomain
  const failureDomain = readTyped(external, InfraMachineContract.failureDomain, 'string')
  if (failureDomain) status.failureDomain = failureDomain
  else if (failureDomain === '') delete status.failureDomain
  machine.spec.providerID = providerID
  status.initialization = { ...status.initialization, infrastructureProvisioned: true }
  return proceed()
}

/** Returns the InfrastructureReady condition. Pure. */
export function infrastructureReady(scope: MachineScope): NewCondition {
  const { machine, infrastructure } = scope
  const { kind } = machine.spec.infrastructureRef
  const unexpected = isDeleting(machine) ? '' : ' while the Machine still exists'
  const condition = mirrored(infrastructure, {
    kind,
    as: MachineConditions.InfrastructureReady,
    source: 'Ready',
    milestone: InfraMachineContract.provisioned,
    reached: wasProvisioned(scope),
    deleted: wasProvisioned(scope) ? `${kind} has been deleted${unexpected}` : undefined,
  })
  const invalid = invalidOf(infrastructure)
  return invalid === undefined ? condition : { ...condition, message: invalid }
}

const wasProvisioned = ({ machine }: MachineScope): boolean => machine.status?.initialization?.infrastructureProvisioned === true
