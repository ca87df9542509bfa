/**
 * Admission rules that MachineSets and MachineDeployments have in common, because both contain a template of Machines.
 * Upstream: core/webhooks/admission, v1.14.
 */
import type { FieldError } from '@capstan/kube'
import { forbidden, invalid } from '@capstan/kube'
import { MachineSetSkipPreflightChecksAnnotation } from '../../well-known.ts'
import type { MachineTemplateSpec } from '../shared/machine-template.ts'
import type { MachineNaming } from '../shared/naming.ts'
import { bootstrapErrors, metadataErrors, taintErrors, versionErrors, workerTaintErrors } from './field-checks.ts'

interface MachineCreator {
  metadata: { annotations?: { [key: string]: string } }
  spec: { clusterName: string; machineNaming?: MachineNaming; template: MachineTemplateSpec }
}

export function machineTemplateErrors({ metadata, spec }: MachineCreator, old: MachineCreator | undefined): FieldError[] {
  const { template } = spec
  return [
    ...bootstrapErrors('spec.template.spec', template.spec),
    ...skippedPreflightCheckErrors(metadata.annotations?.[MachineSetSkipPreflightChecksAnnotation]),
    ...(old && old.spec.clusterName !== spec.clusterName ? [forbidden('spec.clusterName', 'field is immutable')] : []),
    ...(spec.clusterName === template.spec.clusterName
      ? []
      : [
          invalid(
            'spec.clusterName',
            spec.clusterName,
            'spec.clusterName and spec.template.spec.clusterName must be set to the same value',
          ),
        ]),
    ...versionErrors('spec.template.spec.version', template.spec.version),
    ...taintErrors('spec.template.spec.taints', template.spec.taints),
    ...workerTaintErrors('spec.template.spec.taints', template.spec.taints),
    ...machineNamingErrors(spec.machineNaming),
    ...metadataErrors('spec.template.metadata', template.metadata),
  ]
}

/** The template must contain a random part; otherwise a second Machine would get the same name. Rendering finds other errors. */
const machineNamingErrors = (naming: MachineNaming | undefined): FieldError[] =>
  !naming?.template || naming.template.includes('{{ .random }}')
    ? []
    : [invalid('spec.machineNaming.template', naming.template, 'invalid template, {{ .random }} is missing')]

const preflightChecks = ['All', 'ControlPlaneIsStable', 'ControlPlaneVersionSkew', 'KubeadmVersionSkew', 'KubernetesVersionSkew']

function skippedPreflightCheckErrors(annotation: string | undefined): FieldError[] {
  if (!annotation) return []
  const unknown = annotation
    .split(',')
    .map((check) => check.trim())
    .filter((check) => !preflightChecks.includes(check))
  if (unknown.length === 0) return []
  const field = `metadata.annotations.${MachineSetSkipPreflightChecksAnnotation}`
  return [invalid(field, unknown, `skipped preflight check(s) must be among: [${preflightChecks.join(' ')}]`)]
}
