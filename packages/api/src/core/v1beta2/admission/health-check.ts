/** Rules of health checks that MachineHealthChecks, ClusterClasses and topologies share. */
import type { FieldError } from '@capstan/kube'
import { invalid } from '@capstan/kube'
import type { HealthCheckRemediation, HealthChecks } from '../shared/health-check.ts'
import { intOrPercentErrors } from './field-checks.ts'

/** Minimum of `nodeStartupTimeoutSeconds`, except 0, which disables the timeout. */
const MinStartupTimeout = 30

/** Returns the errors of a health check; `path` is the path of the health check in its object, such as `spec`. */
export function healthCheckFieldErrors(
  path: string,
  healthCheck:
    | { readonly checks?: HealthChecks | undefined; readonly remediation?: HealthCheckRemediation | undefined }
    | undefined,
): FieldError[] {
  const timeout = healthCheck?.checks?.nodeStartupTimeoutSeconds
  return [
    ...(timeout !== undefined && timeout !== 0 && timeout < MinStartupTimeout
      ? [invalid(`${path}.checks.nodeStartupTimeoutSeconds`, timeout, 'must be at least 30s')]
      : []),
    ...intOrPercentErrors(
      `${path}.remediation.triggerIf.unhealthyLessThanOrEqualTo`,
      healthCheck?.remediation?.triggerIf?.unhealthyLessThanOrEqualTo,
    ),
  ]
}
