/** Defaults and rules of MachineSets beyond their schema. Upstream: core/webhooks/admission/machineset.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { invalid } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import { labelValue } from '../../label-value.ts'
import { ClusterNameLabel, MachineSetNameLabel } from '../../well-known.ts'
import type { MachineSetSpec } from '../machine-set.ts'
import { bootstrapErrors, metadataErrors, selectorErrors, versionErrors } from './field-checks.ts'
import { machineCreatorErrors, machineNamingErrors, templateTaintErrors } from './machine-template.ts'
import { defaultReplicas } from './replicas.ts'
import { isEmptySelector, printedLabels } from './selector.ts'

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
  const { selector, template, machineNaming } = object.spec
  const labels = template.metadata?.labels
  return [
    ...bootstrapErrors('spec.template.spec', template.spec),
    ...selectorErrors(selector, labels, (field, problem) => invalid(field, printedLabels(labels ?? {}), problem)),
    ...machineCreatorErrors(object, oldObject),
    ...versionErrors('spec.template.spec.version', template.spec.version),
    ...templateTaintErrors(template),
    ...machineNamingErrors(machineNaming),
    ...metadataErrors('spec.template.metadata', template.metadata),
  ]
}
