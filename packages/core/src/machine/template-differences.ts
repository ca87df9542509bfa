import { type MachineTemplateSpec, TemplateSuffix } from '@capstan/api'
import { equal } from '@capstan/kube'

/**
 * What has to be rolled out to bring Machines made from one template to another, in the words of the UpToDate condition; none
 * when they are as good as the same. Only what cannot change on a living Machine counts. Pure.
 * Upstream: internal/controllers/machinedeployment/mdutil, MachineTemplateUpToDate, v1.14.
 */
export function templateDifferences({ spec: from }: MachineTemplateSpec, { spec: to }: MachineTemplateSpec): string[] {
  const lines: string[] = []
  if ((from.version ?? '') !== (to.version ?? '')) lines.push(`Version ${from.version ?? ''}, ${to.version ?? ''} required`)
  if (from.bootstrap.configRef && to.bootstrap.configRef) {
    if (!equal(from.bootstrap.configRef, to.bootstrap.configRef)) lines.push(notUpToDate(from.bootstrap.configRef.kind))
  } else if (!equal(from.bootstrap, to.bootstrap)) {
    const [has, wants] = [from, to].map(({ bootstrap }) => bootstrap.dataSecretName ?? '')
    lines.push(`spec.bootstrap.dataSecretName ${has}, ${wants} required`)
  }
  if (!equal(from.infrastructureRef, to.infrastructureRef)) lines.push(notUpToDate(from.infrastructureRef.kind))
  if ((from.failureDomain ?? '') !== (to.failureDomain ?? '')) {
    lines.push(`Failure domain ${from.failureDomain ?? ''}, ${to.failureDomain ?? ''} required`)
  }
  return lines
}

const notUpToDate = (kind: string): string =>
  `${kind.endsWith(TemplateSuffix) ? kind.slice(0, -TemplateSuffix.length) : kind} is not up-to-date`
