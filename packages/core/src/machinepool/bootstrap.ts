import { BootstrapConfigContract, dataSecretNameOf } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting } from '@capstan/kube'
import { failureOf, setFailure } from '../external/failure.ts'
import { readTyped } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { observeAndAdopt } from './reference.ts'
import type { MachinePoolPhase, MachinePoolScope } from './scope.ts'

/**
 * Adopts the bootstrap config and, once its bootstrap data exist, copies the name of their Secret to the MachinePool. Without a bootstrap config,
 * requires that the MachinePool names the Secret.
 */
export const bootstrap: MachinePoolPhase = async (scope, io) => {
  const { machinePool } = scope
  const { bootstrap } = machinePool.spec.template.spec
  const ref = bootstrap.configRef
  if (!ref) {
    scope.bootstrap = { state: 'none' }
    if (bootstrap.dataSecretName !== undefined) return recordDataSecret(scope, true)
    const { namespace, name } = machinePool.metadata
    throw new Error(
      `neither .spec.bootstrap.configRef nor .spec.bootstrap.dataSecretName are set for MachinePool "${name}" in namespace "${namespace}"`,
    )
  }
  scope.bootstrap = await observeAndAdopt(scope, io, ref)
  if (scope.bootstrap.state !== 'found') return wait(`${ref.kind} ${ref.name} to exist`)
  const { external } = scope.bootstrap
  setFailure(machinePool, failureOf(external, BootstrapConfigContract))
  if (isDeleting(external.object)) return proceed()

  if (!readTyped(external, BootstrapConfigContract.dataSecretCreated, 'boolean')) {
    recordDataSecret(scope, false)
    return wait(`${ref.kind} ${ref.name} to create the data secret`)
  }
  const dataSecretName = readContract(scope.bootstrap, dataSecretNameOf)
  if (dataSecretName === undefined) {
    const { namespace, name } = machinePool.metadata
    throw new Error(
      `retrieved empty dataSecretName from bootstrap provider for MachinePool "${name}" in namespace "${namespace}"`,
    )
  }
  bootstrap.dataSecretName = dataSecretName
  return recordDataSecret(scope, true)
}

function recordDataSecret({ machinePool }: MachinePoolScope, bootstrapDataSecretCreated: boolean) {
  const status = (machinePool.status ??= {})
  status.initialization = { ...status.initialization, bootstrapDataSecretCreated }
  return proceed()
}
