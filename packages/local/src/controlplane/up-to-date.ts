import { type Machine, TemplateClonedFromGroupKindAnnotation, TemplateClonedFromNameAnnotation } from '@capstan/api'
import { equal, type UnknownObject } from '@capstan/kube'
import type { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'
import { type LocalControlPlane, machineTemplateOf } from '../kinds/local-control-plane.ts'

/** A Machine with its infrastructure and bootstrap config, as far as they exist. */
export interface MachineParts {
  readonly machine: Machine
  readonly infrastructure?: UnknownObject | undefined
  readonly bootstrap?: LocalBootstrapConfig | undefined
}

/**
 * Returns the reasons why a Machine is not up to date; empty when it is. Missing objects, a missing version of the Machine, and
 * infrastructure without annotations that name its template count as matching. Pure.
 */
export function outdatedReasons(
  { spec }: Pick<LocalControlPlane, 'spec'>,
  { machine, infrastructure, bootstrap }: MachineParts,
  now: number,
): string[] {
  const reasons: string[] = []
  if (isRolloutDue({ spec }, machine, now)) reasons.push('LocalControlPlane spec.rollout.after expired')
  if (machine.spec.version !== undefined && machine.spec.version !== spec.version) {
    reasons.push(`Version ${machine.spec.version}, ${spec.version} required`)
  }
  if (bootstrap && !equal(bootstrap.spec ?? {}, spec.bootstrapConfigSpec ?? {})) {
    reasons.push('LocalBootstrapConfig is not up-to-date')
  }
  const ref = machineTemplateOf({ spec }).spec.infrastructureRef
  const { [TemplateClonedFromNameAnnotation]: name, [TemplateClonedFromGroupKindAnnotation]: groupKind } =
    infrastructure?.metadata.annotations ?? {}
  if (infrastructure && name !== undefined && groupKind !== undefined) {
    if (name !== ref.name || groupKind !== `${ref.kind}.${ref.apiGroup}`) reasons.push(`${infrastructure.kind} is not up-to-date`)
  }
  return reasons
}

/** Whether `rollout.after` has passed and the Machine was created before it. An in-place update cannot change this. */
export function isRolloutDue({ spec }: Pick<LocalControlPlane, 'spec'>, { metadata }: Machine, now: number): boolean {
  const rolloutAfter = Date.parse(spec.rollout?.after ?? '')
  return Date.parse(metadata.creationTimestamp) < rolloutAfter && rolloutAfter < now
}
