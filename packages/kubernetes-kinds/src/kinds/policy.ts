/** The kinds of `policy/v1`. Upstream: pkg/apis/policy and pkg/registry/policy/poddisruptionbudget, v1.36. */
import { type FieldError, invalid, notSupported } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { labelSelector } from './checks.ts'
import { ageColumn, at, column, nameColumn, number } from './columns.ts'
import { atMostHundredPercent, intOrPercentErrors, nonNegative } from './counts.ts'
import type { PodDisruptionBudget, PodDisruptionBudgetSpec } from './schemas/types.ts'

const poddisruptionbudgets: BuiltinKind<PodDisruptionBudget> = {
  generation: true,
  columns: [
    nameColumn,
    column('Min Available', (o) => String((at(o, 'spec', 'minAvailable') as number | string | undefined) ?? 'N/A')),
    column('Max Unavailable', (o) => String((at(o, 'spec', 'maxUnavailable') as number | string | undefined) ?? 'N/A')),
    column('Allowed Disruptions', (o) => number(o, 'status', 'disruptionsAllowed'), { type: 'integer' }),
    ageColumn,
  ],
  validate({ spec, status }, _, { subresource }) {
    if (subresource !== 'status') return specErrors(spec)
    return nonNegative('status', status, 'disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods')
  },
}

function specErrors(spec: PodDisruptionBudgetSpec): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec
  // Upstream's error contains the spec as a Go struct.
  const badValue = {
    MinAvailable: minAvailable ?? null,
    Selector: selector ?? null,
    MaxUnavailable: maxUnavailable ?? null,
    UnhealthyPodEvictionPolicy: policy ?? null,
  }
  return [
    ...(minAvailable !== undefined && maxUnavailable !== undefined
      ? [invalid('spec', badValue, 'minAvailable and maxUnavailable cannot be both set')]
      : []),
    ...intOrPercentErrors('spec.minAvailable', minAvailable),
    ...atMostHundredPercent('spec.minAvailable', minAvailable),
    ...intOrPercentErrors('spec.maxUnavailable', maxUnavailable),
    ...atMostHundredPercent('spec.maxUnavailable', maxUnavailable),
    ...(policy === undefined || ['AlwaysAllow', 'IfHealthyBudget'].includes(policy)
      ? []
      : [notSupported('spec.unhealthyPodEvictionPolicy', policy, ['AlwaysAllow', 'IfHealthyBudget'])]),
    ...labelSelector('spec.selector', selector),
  ]
}

export const policy: KindTable = { poddisruptionbudgets }
