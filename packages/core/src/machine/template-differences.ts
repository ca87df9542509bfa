import { type MachineTemplateSpec, TemplateSuffix } from '@capstan/api'
import { equal } from '@capstan/kube'

/**
 * Compares the template of a MachineSet with the desired template. Returns the differences that require a rollout, as messages of the
 * UpToDate condition; an empty list when there are none. Fields that can change on an existing Machine are ignored. Pure. Upstream:
 * MachineTemplateUpToDate in core/reconcilers/machinedeployment/mdutil, v1.14.
 */
export function templateDifferences({ spec: from }: MachineTemplateSpec, { spec: to }: MachineTemplateSpec): string[] {
  const lines: string[] = []
  if ((from.version ?? '') !== (to.version ?? '')) lines.push(`Version ${from.version ?? ''}, ${to.version ?? ''} required`)
  if (!equal(from.bootstrap, to.bootstrap)) {
    const [current, desired] = [from, to].map(({ bootstrap }) => bootstrap.dataSecretName ?? 'nil')
    const { configRef } = from.bootstrap
    lines.push(configRef ? notUpToDate(configRef.kind) : `spec.bootstrap.dataSecretName ${current}, ${desired} required`)
  }
  if (!equal(from.infrastructureRef, to.infrastructureRef)) lines.push(notUpToDate(from.infrastructureRef.kind))
  if ((from.failureDomain ?? '') !== (to.failureDomain ?? '')) {
    lines.push(`Failure domain ${from.failureDomain ?? ''}, ${to.failureDomain ?? ''} required`)
  }
  return lines
}

const notUpToDate = (kind: string): string =>
  `${kind.endsWith(TemplateSuffix) ? kind.slice(0, -TemplateSuffix.length) : kind} is not up-to-date`
