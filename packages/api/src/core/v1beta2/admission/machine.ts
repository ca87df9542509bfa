/** Defaults and rules of Machines beyond their schema. Upstream: core/webhooks/admission/machine.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import { ClusterNameLabel, MachineControlPlaneLabel, MachinePoolNameLabel } from '../../well-known.ts'
import type { MachineSpec } from '../shared/machine-template.ts'
import { bootstrapErrors, taintErrors, versionErrors, workerTaintErrors } from './field-checks.ts'

type MachineLike = KubeObject & { spec: MachineSpec }

export function defaultMachine({ metadata, spec }: MachineLike): void {
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  if (spec.version) spec.version = withVersionPrefix(spec.version)
  spec.deletion = { nodeDeletionTimeoutSeconds: 10, ...spec.deletion }
}

export function machineErrors({ metadata, spec }: MachineLike, { oldObject }: AdmissionContext<MachineLike>): FieldError[] {
  // The Machines of a MachinePool have no bootstrap data of their own.
  const isInPool = metadata.labels?.[MachinePoolNameLabel] !== undefined
  const isInControlPlane = metadata.labels?.[MachineControlPlaneLabel] !== undefined
  return [
    ...(isInPool ? [] : bootstrapErrors('spec', spec)),
    ...(oldObject && oldObject.spec.clusterName !== spec.clusterName
      ? [forbidden('spec.clusterName', 'field is immutable')]
      : []),
    ...versionErrors('spec.version', spec.version),
    ...taintErrors('spec.taints', spec.taints),
    ...(isInControlPlane ? [] : workerTaintErrors('spec.taints', spec.taints)),
  ]
}
