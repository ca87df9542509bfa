import { BootstrapConfigContract, dataSecretNameOf, MachineConditions } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting, type NewCondition } from '@capstan/kube'
import { failureOf, setFailure } from '../external/failure.ts'
import { mirroredCondition } from '../external/mirrored.ts'
import { readTyped } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { observeAndAdopt } from './reference.ts'
import type { MachinePhase, MachineScope } from './scope.ts'

/** Adopts the bootstrap config and, once it has generated the bootstrap data, copies the name of the Secret. */
export const bootstrap: MachinePhase = async (scope, io) => {
  const { machine } = scope
  const ref = machine.spec.bootstrap.configRef
  if (!ref) {
    scope.bootstrap = { state: 'none' }
    return proceed()
  }
  scope.bootstrap = await observeAndAdopt(scope, io, ref)
  if (scope.bootstrap.state !== 'found') {
    return isDeleting(machine) ? proceed() : wait(`${ref.kind} ${ref.name} to exist`)
  }
  const { external } = scope.bootstrap
  setFailure(machine, failureOf(external, BootstrapConfigContract))
  const status = (machine.status ??= {})
  if (machine.spec.bootstrap.dataSecretName) {
    status.initialization = { ...status.initialization, bootstrapDataSecretCreated: true }
    return proceed()
  }
  if (isDeleting(external.object)) return proceed()
  if (!readTyped(external, BootstrapConfigContract.dataSecretCreated, 'boolean'))
    return wait(`${ref.kind} ${ref.name} to create the data secret`)
  const dataSecretName = readContract(scope.bootstrap, dataSecretNameOf)
  if (!dataSecretName) {
    throw new Error(`got empty status.dataSecretName field from bootstrap provider for Machine ${machine.metadata.name}`)
  }
  machine.spec.bootstrap.dataSecretName = dataSecretName
  status.initialization = { ...status.initialization, bootstrapDataSecretCreated: true }
  return proceed()
}

/** Returns the BootstrapConfigReady condition. Pure. */
export function bootstrapConfigReadyCondition({ machine, bootstrap }: MachineScope): NewCondition {
  const condition = MachineConditions.BootstrapConfigReady
  const kind = machine.spec.bootstrap.configRef?.kind
  if (kind === undefined) return condition.true('DataSecretProvided')
  const wasCreated = machine.status?.initialization?.bootstrapDataSecretCreated === true
  return mirroredCondition(bootstrap, {
    kind,
    as: condition,
    source: 'Ready',
    milestone: BootstrapConfigContract.dataSecretCreated,
    reached: wasCreated,
    deleted: isDeleting(machine) && wasCreated ? `${kind} has been deleted` : undefined,
  })
}
