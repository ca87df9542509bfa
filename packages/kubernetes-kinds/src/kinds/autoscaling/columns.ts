import type { PrinterColumn } from '@capstan/apiserver/kinds'
import { ageColumn, at, column, list, nameColumn, number, text } from '../columns.ts'
import type { MetricSpec, MetricStatus } from '../schemas/types.ts'

/** Columns of HorizontalPodAutoscalers. The cells are computed from version v2. Upstream: printHorizontalPodAutoscaler, v1.36. */
export const autoscalerColumns: readonly PrinterColumn[] = [
  nameColumn,
  column('Reference', (o) => `${text(o, 'spec', 'scaleTargetRef', 'kind')}/${text(o, 'spec', 'scaleTargetRef', 'name')}`),
  column('Targets', (o) => targets(list<MetricSpec>(o, 'spec', 'metrics'), list<MetricStatus>(o, 'status', 'currentMetrics'))),
  column('MinPods', (o) => String((at(o, 'spec', 'minReplicas') as number | undefined) ?? '<unset>')),
  column('MaxPods', (o) => number(o, 'spec', 'maxReplicas')),
  column('Replicas', (o) => number(o, 'status', 'currentReplicas')),
  ageColumn,
]

const MaxShown = 2

function targets(metrics: readonly MetricSpec[], current: readonly MetricStatus[]): string {
  if (metrics.length === 0) return '<none>'
  const listed = metrics.slice(0, MaxShown).map((metric, index) => target(metric, current[index]))
  const hiddenCount = metrics.length - MaxShown
  return `${listed.join(', ')}${hiddenCount > 0 ? ` + ${hiddenCount} more...` : ''}`
}

type Amount = string | number | undefined

const valueOrUnknown = (value: Amount): string => (value === undefined ? '<unknown>' : String(value))
const percent = (value: number | undefined): Amount => (value === undefined ? undefined : `${value}%`)

function target(
  { type, external, object, pods, resource, containerResource }: MetricSpec,
  status: MetricStatus | undefined,
): string {
  if ((type === 'External' && external) || (type === 'Object' && object)) {
    const metricTarget = (type === 'External' ? external! : object!).target
    const measured = (type === 'External' ? status?.external : status?.object)?.current
    if (metricTarget.averageValue !== undefined)
      return `${valueOrUnknown(measured?.averageValue)}/${metricTarget.averageValue} (avg)`
    return `${valueOrUnknown(measured?.value)}/${metricTarget.value ?? ''}`
  }
  if (type === 'Pods' && pods) return `${valueOrUnknown(status?.pods?.current.averageValue)}/${pods.target.averageValue ?? ''}`
  const source = type === 'Resource' ? resource : type === 'ContainerResource' ? containerResource : undefined
  if (!source) return '<unknown type>'
  const measured = (type === 'Resource' ? status?.resource : status?.containerResource)?.current
  const { averageValue, averageUtilization } = source.target
  if (averageValue !== undefined) return `${source.name}: ${valueOrUnknown(measured?.averageValue)}/${averageValue}`
  return `${source.name}: ${valueOrUnknown(percent(measured?.averageUtilization))}/${percent(averageUtilization) ?? '<auto>'}`
}
