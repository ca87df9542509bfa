/** Admission rules that MachineSets and MachineDeployments have in common. Upstream: core/webhooks/admission, v1.14. */
import type { FieldError } from '@capstan/kube'
import { forbidden, invalid } from '@capstan/kube'
import { MachineSetSkipPreflightChecksAnnotation } from '../../well-known.ts'
import type { MachineTemplateSpec } from '../shared/machine-template.ts'
import type { MachineNaming } from '../shared/naming.ts'
import { taintErrors, workerTaintErrors } from './field-checks.ts'

/** A MachineSet or MachineDeployment. */
interface MachineCreator {
  metadata: { annotations?: { [key: string]: string } }
  spec: { clusterName: string; machineNaming?: MachineNaming; template: MachineTemplateSpec }
}

/** Returns errors for unknown preflight checks to skip, and for a Cluster name that has changed or differs from that in the template. */
export function machineCreatorErrors({ metadata, spec }: MachineCreator, old: MachineCreator | undefined): FieldError[] {
  return [
    ...skippedPreflightCheckErrors(metadata.annotations?.[MachineSetSkipPreflightChecksAnnotation]),
    ...(old && old.spec.clusterName !== spec.clusterName ? [forbidden('spec.clusterName', 'field is immutable')] : []),
    ...(spec.clusterName === spec.template.spec.clusterName
      ? []
      : [
          invalid(
            'spec.clusterName',
            spec.clusterName,
            'spec.clusterName and spec.template.spec.clusterName must be set to the same value',
          ),
        ]),
  ]
}

export const templateTaintErrors = ({ spec: { taints } }: MachineTemplateSpec): FieldError[] => [
  ...taintErrors('spec.template.spec.taints', taints),
  ...workerTaintErrors('spec.template.spec.taints', taints),
]

/**
 * Returns an error for a naming template that does not contain the text `{{ .random }}`: without a random part, a second Machine would get the
 * same name. The package `core` finds other errors on admission, by rendering the template (`naming/machine-naming-admission.ts`).
 */
export const machineNamingErrors = (naming: MachineNaming | undefined): FieldError[] =>
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
