/**
 * Validation of ClusterClasses, as far as it needs neither other objects nor rendered templates. The core provider checks variables,
 * patches and naming templates. Upstream: core/webhooks/admission/clusterclass.go and internal/topology/check, v1.14.
 */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden, invalid, parseApiVersion } from '@capstan/kube'
import { isUpgrade, parseVersion, tryParseVersion, versionText } from '../../../versions.ts'
import { TemplateSuffix } from '../../well-known.ts'
import type { ClusterClassSpec, MachineDeploymentClass } from '../cluster-class.ts'
import type { TemplateReference } from '../shared/references.ts'
import { healthCheckFieldErrors } from './health-check.ts'
import { intOrPercentErrors, metadataErrors, rolloutStrategyErrors, taintErrors } from './field-checks.ts'

type ClusterClassLike = KubeObject & { spec: ClusterClassSpec }

export const clusterClassErrors = (
  { spec }: ClusterClassLike,
  { oldObject }: AdmissionContext<ClusterClassLike>,
): FieldError[] => [
  ...templateErrors(spec),
  ...uniqueErrors('machineDeployments', 'MachineDeployment', spec.workers?.machineDeployments),
  ...uniqueErrors('machinePools', 'MachinePool', spec.workers?.machinePools),
  ...deploymentClasses(spec).flatMap(({ worker, path }) =>
    rolloutStrategyErrors(`${path}.rollout.strategy`, worker.rollout?.strategy),
  ),
  ...healthCheckErrors(spec),
  ...taintErrors('spec.controlPlane.taints', spec.controlPlane.taints),
  ...[...deploymentClasses(spec), ...poolClasses(spec)].flatMap(({ worker, path }) =>
    taintErrors(`${path}.taints`, worker.taints),
  ),
  ...metadataErrors('spec.controlPlane.metadata', spec.controlPlane.metadata),
  ...[...deploymentClasses(spec), ...poolClasses(spec)].flatMap(({ worker, path }) =>
    metadataErrors(`${path}.template.metadata`, worker.metadata),
  ),
  ...kubernetesVersionErrors(spec.kubernetesVersions),
  ...(oldObject ? classIncompatibilities(oldObject.spec, spec) : []),
]

const deploymentClasses = (spec: ClusterClassSpec) =>
  (spec.workers?.machineDeployments ?? []).map((worker) => ({ worker, path: `spec.workers.machineDeployments[${worker.class}]` }))

const poolClasses = (spec: ClusterClassSpec) =>
  (spec.workers?.machinePools ?? []).map((worker) => ({ worker, path: `spec.workers.machinePools[${worker.class}]` }))

/** Validates templates. The errors have upstream's field paths, some of which differ from the actual paths. */
function templateErrors({ infrastructure, controlPlane, workers }: ClusterClassSpec): FieldError[] {
  const { machineInfrastructure } = controlPlane
  const workerTemplateErrors = (
    list: string,
    classes: readonly Pick<MachineDeploymentClass, 'bootstrap' | 'infrastructure'>[] | undefined,
  ) =>
    (classes ?? []).flatMap(({ bootstrap, infrastructure }, index) => [
      ...templateKindErrors(`spec.workers.${list}[${index}].template.bootstrap`, bootstrap.templateRef),
      ...templateKindErrors(`spec.workers.${list}[${index}].template.infrastructure`, infrastructure.templateRef),
    ])
  return [
    ...templateKindErrors('spec.infrastructure', infrastructure.templateRef),
    ...templateKindErrors('spec.controlPlane', controlPlane.templateRef),
    ...(machineInfrastructure
      ? templateKindErrors('spec.controlPlane.machineInfrastructure', machineInfrastructure.templateRef)
      : []),
    ...workerTemplateErrors('machineDeployments', workers?.machineDeployments),
    ...workerTemplateErrors('machinePools', workers?.machinePools),
  ]
}

const templateKindErrors = (path: string, { kind }: TemplateReference): FieldError[] =>
  kind.endsWith(TemplateSuffix) && kind !== TemplateSuffix
    ? []
    : [invalid(`${path}.ref.kind`, kind, `template kind must be of form "<name>${TemplateSuffix}"`)]

const uniqueErrors = (list: string, kind: string, classes: readonly { class: string }[] | undefined): FieldError[] =>
  (classes ?? []).flatMap(({ class: name }, index, all) =>
    all.findIndex((candidate) => candidate.class === name) === index
      ? []
      : [
          invalid(
            `spec.workers.${list}[${index}].class`,
            name,
            `${kind} class must be unique. ${kind} with class ${JSON.stringify(name)} is defined more than once`,
          ),
        ],
  )

function healthCheckErrors(spec: ClusterClassSpec): FieldError[] {
  const { healthCheck, machineInfrastructure } = spec.controlPlane
  const controlPlanePath = 'spec.controlPlane.healthCheck'
  return [
    ...healthCheckFieldErrors(controlPlanePath, healthCheck),
    ...(healthCheck && !machineInfrastructure
      ? [forbidden(controlPlanePath, 'can be only set if spec.controlPlane.machineInfrastructure is set')]
      : []),
    ...deploymentClasses(spec).flatMap(({ worker, path }) => [
      ...healthCheckFieldErrors(`${path}.healthCheck`, worker.healthCheck),
      ...intOrPercentErrors(`${path}.healthCheck.remediation.maxInFlight`, worker.healthCheck?.remediation?.maxInFlight),
    ]),
  ]
}

/**
 * Returns errors for versions that are invalid, are not in ascending order or omit a minor version. As upstream, the path in the errors is
 * `spec.kubernetesVersion`, although the field is `spec.kubernetesVersions`.
 */
function kubernetesVersionErrors(versions: readonly string[] | undefined): FieldError[] {
  const errors: FieldError[] = []
  let previous: string | undefined
  for (const [index, version] of (versions ?? []).entries()) {
    const path = `spec.kubernetesVersion[${index}]`
    const parsed = tryParseVersion(version)
    if (!parsed) {
      errors.push(invalid(path, version, 'version must be a valid semantic version'))
      continue
    }
    if (previous !== undefined) {
      const before = parseVersion(previous)
      const { minor } = parsed
      if (!isUpgrade(previous, version))
        errors.push(invalid(path, version, `version must be greater than ${versionText(before)}`))
      if (minor !== before.minor && minor !== before.minor + 1) {
        const problem = `expecting a version with minor ${before.minor} or ${before.minor + 1}, found version ${versionText(parsed).slice(1)}`
        errors.push(invalid(path, version, problem))
      }
    }
    previous = version
  }
  return errors
}

/**
 * Returns errors for infrastructure and control plane templates whose group or kind changes, because existing Clusters have objects of the
 * old kind. `spec.controlPlane.machineInfrastructure` can be neither added nor removed. The group and kind of a bootstrap template may change.
 */
export function classIncompatibilities(before: ClusterClassSpec, after: ClusterClassSpec): FieldError[] {
  const machineInfrastructure = [before, after].map((spec) => spec.controlPlane.machineInfrastructure?.templateRef)
  const workerIncompatibilities = (list: 'machineDeployments' | 'machinePools') =>
    (after.workers?.[list] ?? []).flatMap((worker, index) => {
      const old = before.workers?.[list]?.find((candidate) => candidate.class === worker.class)
      const path = `spec.workers.${list}[${index}].infrastructure.templateRef`
      return old ? incompatibility(path, old.infrastructure.templateRef, worker.infrastructure.templateRef) : []
    })
  return [
    ...incompatibility('spec.infrastructure.templateRef', before.infrastructure.templateRef, after.infrastructure.templateRef),
    ...incompatibility('spec.controlPlane.templateRef', before.controlPlane.templateRef, after.controlPlane.templateRef),
    ...incompatibility('spec.controlPlane.machineInfrastructure.templateRef', machineInfrastructure[0], machineInfrastructure[1]),
    ...workerIncompatibilities('machineDeployments'),
    ...workerIncompatibilities('machinePools'),
  ]
}

function incompatibility(
  path: string,
  before: TemplateReference | undefined,
  after: TemplateReference | undefined,
): FieldError[] {
  const change = (property: string, from: string, to: string): string =>
    `${property} cannot be changed from ${JSON.stringify(from)} to ${JSON.stringify(to)} to prevent incompatible changes in the Clusters`
  const groups = [before, after].map((ref) => (ref ? parseApiVersion(ref.apiVersion).group : '')) as [string, string]
  const kinds = [before?.kind ?? '', after?.kind ?? ''] as const
  return [
    ...(groups[0] === groups[1] ? [] : [forbidden(`${path}.apiVersion`, change('group of apiVersion', groups[0], groups[1]))]),
    ...(kinds[0] === kinds[1] ? [] : [forbidden(`${path}.kind`, change('kind', kinds[0], kinds[1]))]),
  ]
}
