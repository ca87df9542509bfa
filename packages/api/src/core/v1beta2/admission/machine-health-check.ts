/** Defaults and rules of MachineHealthChecks beyond their schema. Upstream: core/webhooks/admission/machinehealthcheck.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden, invalid, required } from '@capstan/kube'
import { ClusterNameLabel } from '../../well-known.ts'
import type { MachineHealthCheckSpec } from '../machine-health-check.ts'
import { healthCheckFieldErrors } from './health-check.ts'
import { isEmptySelector, printedSelector, selectorSyntaxErrors } from './selector.ts'

type MachineHealthCheckLike = KubeObject & { spec: MachineHealthCheckSpec }

/** Default time in seconds within which a Machine must get a Node. */
export const DefaultNodeStartupTimeoutSeconds = 600

export function defaultMachineHealthCheck({ metadata, spec }: MachineHealthCheckLike): void {
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  spec.checks = {
    ...spec.checks,
    nodeStartupTimeoutSeconds: spec.checks?.nodeStartupTimeoutSeconds ?? DefaultNodeStartupTimeoutSeconds,
  }
}

export function machineHealthCheckErrors(
  { spec }: MachineHealthCheckLike,
  { oldObject }: AdmissionContext<MachineHealthCheckLike>,
): FieldError[] {
  const { selector, clusterName } = spec
  const selected = selector.matchLabels?.[ClusterNameLabel]
  return [
    ...selectorSyntaxErrors('spec.selector', selector),
    ...(isEmptySelector(selector) ? [required('spec.selector', 'selector must not be empty')] : []),
    ...(selected !== undefined && selected !== clusterName
      ? [
          invalid(
            'spec.selector',
            printedSelector(selector),
            'cannot specify a cluster selector other than the one specified by ClusterName',
          ),
        ]
      : []),
    ...(oldObject && oldObject.spec.clusterName !== clusterName ? [forbidden('spec.clusterName', 'field is immutable')] : []),
    ...healthCheckFieldErrors('spec', spec),
  ]
}
