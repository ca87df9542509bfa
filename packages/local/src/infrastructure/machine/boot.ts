import { isUpdateInProgress, type Machine, MachineControlPlaneLabel } from '@capstan/api'
import type { LocalMachine } from '../../kinds/local-machine.ts'

/**
 * Inputs for the boot of a LocalMachine. They come from its Machine. For a machine of a LocalMachinePool, which may have no Machine, the
 * Secret, version and failure domain come from `spec.pool`.
 */
export interface BootInputs {
  /** Name of the Secret with the bootstrap data; `undefined` until the Machine names it. */
  readonly dataSecretName: string | undefined
  readonly version: string | undefined
  readonly failureDomain: string | undefined
  readonly isControlPlane: boolean
  readonly isUpdateInProgress: boolean
  /** Whether core has found the Node of the Machine (`status.nodeRef`). */
  readonly hasNode: boolean
}

/** Returns the inputs of the boot; `undefined` while there is neither a Machine nor a pool. */
export function bootInputsOf({ spec }: LocalMachine, machine: Machine | undefined): BootInputs | undefined {
  if (spec?.pool) {
    const { dataSecretName, version, failureDomain } = spec.pool
    const hasNode = machine?.status?.nodeRef !== undefined
    return { dataSecretName, version, failureDomain, isControlPlane: false, isUpdateInProgress: false, hasNode }
  }
  if (!machine) return undefined
  return {
    dataSecretName: machine.spec.bootstrap.dataSecretName,
    version: machine.spec.version,
    failureDomain: machine.spec.failureDomain,
    isControlPlane: machine.metadata.labels?.[MachineControlPlaneLabel] !== undefined,
    isUpdateInProgress: isUpdateInProgress(machine),
    hasNode: machine.status?.nodeRef !== undefined,
  }
}
