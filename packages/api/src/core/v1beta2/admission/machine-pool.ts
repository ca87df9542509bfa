/** Defaults and rules of MachinePools beyond their schema. Upstream: core/webhooks/admission/machinepool.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden, invalid } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import { ClusterNameLabel } from '../../well-known.ts'
import type { MachinePoolSpec } from '../machine-pool.ts'
import { bootstrapErrors, metadataErrors, versionErrors } from './field-checks.ts'
import { defaultReplicas } from './replicas.ts'

type MachinePoolLike = KubeObject & { spec: MachinePoolSpec }

export function defaultMachinePool(object: MachinePoolLike, { oldObject }: AdmissionContext<MachinePoolLike>): void {
  const { metadata, spec } = object
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  spec.replicas ??= defaultReplicas(object, oldObject)
  const template = spec.template.spec
  template.deletion = { nodeDeletionTimeoutSeconds: 10, ...template.deletion }
  if (template.version) template.version = withVersionPrefix(template.version)
}

export function machinePoolErrors({ spec }: MachinePoolLike, { oldObject }: AdmissionContext<MachinePoolLike>): FieldError[] {
  const { clusterName, template } = spec
  return [
    ...bootstrapErrors('spec.template.spec', template.spec),
    ...(oldObject && oldObject.spec.clusterName !== clusterName ? [forbidden('spec.clusterName', 'field is immutable')] : []),
    ...(clusterName === template.spec.clusterName
      ? []
      : [
          invalid(
            'spec.clusterName',
            clusterName,
            'spec.clusterName and spec.template.spec.clusterName must be set to the same value',
          ),
        ]),
    ...versionErrors('spec.template.spec.version', template.spec.version),
    // Upstream names the field spec.taints, although it is spec.template.spec.taints.
    ...(template.spec.taints?.length ? [forbidden('spec.taints', 'taints feature for MachinePools is not yet implemented')] : []),
    ...metadataErrors('spec.template.metadata', template.metadata),
  ]
}
