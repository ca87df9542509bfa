/** Defaults and rules of MachineSets beyond their schema. Upstream: core/webhooks/admission/machineset.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { invalid } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import { labelValue } from '../../label-value.ts'
import { ClusterNameLabel, MachineSetNameLabel } from '../../well-known.ts'
import type { MachineSetSpec } from '../machine-set.ts'
import { selectorErrors } from './field-checks.ts'
import { machineTemplateErrors } from './machine-template.ts'
import { defaultReplicas } from './replicas.ts'
import { isEmptySelector } from './selector.ts'

type MachineSetLike = KubeObject & { spec: MachineSetSpec }

export function defaultMachineSet(object: MachineSetLike, { oldObject }: AdmissionContext<MachineSetLike>): void {
  const { metadata, spec } = object
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  spec.replicas ??= defaultReplicas(object, oldObject)
  if (isEmptySelector(spec.selector)) {
    const nameLabel = { [MachineSetNameLabel]: labelValue(metadata.name) }
    spec.selector = { ...spec.selector, matchLabels: nameLabel }
    spec.template.metadata = { ...spec.template.metadata, labels: { ...spec.template.metadata?.labels, ...nameLabel } }
  }
  const template = spec.template.spec
  if (template.version) template.version = withVersionPrefix(template.version)
}

export const machineSetErrors = (object: MachineSetLike, { oldObject }: AdmissionContext<MachineSetLike>): FieldError[] => {
  const labels = object.spec.template.metadata?.labels
  return [
    ...selectorErrors(object.spec.selector, labels, (field, problem) => invalid(field, labels ?? {}, problem)),
    ...machineTemplateErrors(object, oldObject),
  ]
}
