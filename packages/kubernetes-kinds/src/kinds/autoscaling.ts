/** HorizontalPodAutoscaler in `autoscaling/v1` and `autoscaling/v2`, stored as v2. Upstream: pkg/apis/autoscaling, v1.36. */
import { draft, type UnknownObject } from '@capstan/kube'
import { autoscalerColumns } from './autoscaling/columns.ts'
import { defaultMetric, toV1, toV2 } from './autoscaling/conversion.ts'
import { specErrors } from './autoscaling/validation.ts'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { nonNegative } from './counts.ts'
import { nullIfNone } from './go-nulls.ts'
import type { AutoscalingV2HorizontalPodAutoscaler as Autoscaler, HPAScalingRules } from './schemas/types.ts'

const autoscalerV2: BuiltinKind<Autoscaler> = {
  convertFrom: { 'autoscaling/v1': toV2 },
  columns: autoscalerColumns,
  default({ spec, status }) {
    nullIfNone(status, 'currentMetrics')
    spec.minReplicas ??= 1
    if (!spec.metrics?.length) spec.metrics = [defaultMetric()]
    const { behavior } = spec
    if (!behavior) return
    behavior.scaleUp = { ...scaleUp, ...behavior.scaleUp }
    behavior.scaleDown = { ...scaleDown, ...behavior.scaleDown }
  },
  prepare(autoscaler, old) {
    // Go always encodes this field.
    if (!old) autoscaler.status = { ...autoscaler.status, currentMetrics: null as never }
  },
  validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return nonNegative('status', status, 'currentReplicas', 'desiredReplicas')
    return specErrors(spec, old?.spec)
  },
}

/** Default rules for scaling up: at most four pods, or an increase by 100 % if that is more, in 15 seconds. */
const scaleUp: HPAScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
}
/** Default rules for scaling down: at most 100 % of the pods in 15 seconds. */
const scaleDown: HPAScalingRules = { selectPolicy: 'Max', policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] }

const autoscalerV1: BuiltinKind = {
  storedAs: 'autoscaling/v2',
  convertFrom: { 'autoscaling/v2': toV1 },
  columns: autoscalerColumns.map((column) => ({
    ...column,
    cell: (autoscaler, now) => column.cell(inStoredForm(autoscaler), now),
  })),
  default(autoscaler) {
    // Without metrics, the conversion to v2 and back sets the default target: 80 % CPU utilization.
    toV2(autoscaler)
    toV1(autoscaler)
    ;(autoscaler.spec as { minReplicas?: number }).minReplicas ??= 1
  },
  // The validation reads only spec.scaleTargetRef of `old`, which is the same in both versions.
  validate: (autoscaler, old, context) =>
    autoscalerV2.validate!(inStoredForm(autoscaler) as unknown as Autoscaler, old as unknown as Autoscaler | undefined, context),
}

function inStoredForm(autoscaler: UnknownObject): UnknownObject {
  const stored = draft(autoscaler)
  toV2(stored)
  return stored
}

export const autoscalingV1: KindTable = { horizontalpodautoscalers: autoscalerV1 }
export const autoscalingV2: KindTable = { horizontalpodautoscalers: autoscalerV2 }
