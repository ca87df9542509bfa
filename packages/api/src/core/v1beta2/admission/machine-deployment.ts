/** Defaults and rules of MachineDeployments beyond their schema. Upstream: core/webhooks/admission/machinedeployment.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden, invalid, labelValueProblems } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import { ClusterNameLabel, MachineDeploymentNameLabel } from '../../well-known.ts'
import type { MachineDeploymentSpec } from '../machine-deployment.ts'
import {
  bootstrapErrors,
  intOrPercentErrors,
  metadataErrors,
  rolloutStrategyErrors,
  selectorErrors,
  versionErrors,
} from './field-checks.ts'
import { machineCreatorErrors, machineNamingErrors, templateTaintErrors } from './machine-template.ts'
import { defaultReplicas } from './replicas.ts'
import { isEmptySelector } from './selector.ts'

type MachineDeploymentLike = KubeObject & { spec: MachineDeploymentSpec }

export function defaultMachineDeployment(
  object: MachineDeploymentLike,
  { oldObject }: AdmissionContext<MachineDeploymentLike>,
): void {
  const { metadata, spec } = object
  const clusterLabel = { [ClusterNameLabel]: spec.clusterName }
  metadata.labels = { ...metadata.labels, ...clusterLabel }
  spec.replicas ??= defaultReplicas(object, oldObject)

  const strategy = { ...spec.rollout?.strategy, type: spec.rollout?.strategy?.type ?? ('RollingUpdate' as const) }
  if (strategy.type === 'RollingUpdate') strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: 0, ...strategy.rollingUpdate }
  spec.rollout = { ...spec.rollout, strategy }

  const nameLabel = isEmptySelector(spec.selector) ? { [MachineDeploymentNameLabel]: metadata.name } : {}
  // As upstream, a missing selector is defaulted in the same way as an empty selector.
  const selector: MachineDeploymentSpec['selector'] | undefined = spec.selector
  spec.selector = { ...selector, matchLabels: { ...selector?.matchLabels, ...nameLabel, ...clusterLabel } }
  spec.template.metadata = {
    ...spec.template.metadata,
    labels: { ...spec.template.metadata?.labels, ...nameLabel, ...clusterLabel },
  }
  const template = spec.template.spec
  if (template.version) template.version = withVersionPrefix(template.version)
}

export function machineDeploymentErrors(
  object: MachineDeploymentLike,
  { oldObject }: AdmissionContext<MachineDeploymentLike>,
): FieldError[] {
  const { metadata, spec } = object
  const { template } = spec
  return [
    // The name becomes a label value.
    ...labelValueProblems(metadata.name).map((problem) =>
      invalid('metadata.name', metadata.name, `must be a valid label value: ${problem}`),
    ),
    ...bootstrapErrors('spec.template.spec', template.spec),
    ...selectorErrors(spec.selector, template.metadata?.labels, forbidden),
    ...machineCreatorErrors(object, oldObject),
    ...rolloutStrategyErrors('spec.rollout.strategy', spec.rollout?.strategy),
    ...intOrPercentErrors('spec.remediation.maxInFlight', spec.remediation?.maxInFlight),
    ...versionErrors('spec.template.spec.version', template.spec.version),
    ...machineNamingErrors(spec.machineNaming),
    ...templateTaintErrors(template),
    ...metadataErrors('spec.template.metadata', template.metadata),
  ]
}
