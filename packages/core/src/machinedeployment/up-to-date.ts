/** Whether a MachineSet, or a Machine, is what its MachineDeployment now asks for. Upstream: mdutil.MachineTemplateUpToDate, v1.14. */
import type { MachineTemplateSpec } from '@capstan/api'
import { equal } from '@capstan/kube'

type MachineSpec = MachineTemplateSpec['spec']

/**
 * What differs in fields that only a new Machine can take over; empty when up to date. Labels, annotations, time limits, gates
 * and taints never differ here: they go to existing Machines in place.
 */
export function rolloutReasons(actual: MachineSpec, wanted: MachineSpec): string[] {
  const reasons: string[] = []
  if (actual.version !== wanted.version) reasons.push(`Version ${actual.version ?? ''}, ${wanted.version ?? ''} required`)
  const { configRef, dataSecretName } = actual.bootstrap
  const required = wanted.bootstrap
  if (!equal(configRef, required.configRef)) reasons.push(`${kindText(configRef ?? required.configRef)} is not up-to-date`)
  if (dataSecretName !== required.dataSecretName) {
    reasons.push(`spec.bootstrap.dataSecretName ${dataSecretName ?? 'nil'}, ${required.dataSecretName ?? 'nil'} required`)
  }
  if (!equal(actual.infrastructureRef, wanted.infrastructureRef)) {
    reasons.push(`${kindText(actual.infrastructureRef)} is not up-to-date`)
  }
  if (actual.failureDomain !== wanted.failureDomain) {
    reasons.push(`Failure domain ${actual.failureDomain ?? ''}, ${wanted.failureDomain ?? ''} required`)
  }
  return reasons
}

const kindText = (ref: { kind: string } | undefined): string => (ref?.kind ?? 'Bootstrap config').replace(/Template$/, '')
