/**
 * Converts HorizontalPodAutoscalers between v2, the storage version, and v1. Fields that v1 does not have become annotations.
 * Upstream: pkg/apis/autoscaling/v1/conversion.go, v1.36.
 */
import { isRecord, type UnknownObject } from '@capstan/kube'
import type { MetricSpec } from '../schemas/types.ts'

const prefix = 'autoscaling.alpha.kubernetes.io/'
const annotationNames = {
  metrics: `${prefix}metrics`,
  current: `${prefix}current-metrics`,
  conditions: `${prefix}conditions`,
  behavior: `${prefix}behavior`,
}

type Fields = { [name: string]: any }

/** Returns a metric for CPU utilization; without an argument, the default metric of an autoscaler. */
export const defaultMetric = (averageUtilization = 80): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
})

/** Converts a draft of v2 to v1. */
export function toV1(autoscaler: UnknownObject): void {
  const { metrics = [], behavior, ...spec } = autoscaler.spec as Fields
  const { currentMetrics = [], conditions = [], ...status } = (autoscaler.status ?? {}) as Fields
  const isCPU = ({ type, resource }: Fields) =>
    type === 'Resource' && resource?.name === 'cpu' && resource.target.averageUtilization !== undefined
  const cpu = metrics.find(isCPU)
  const otherMetrics = metrics.filter((metric: Fields) => !isCPU(metric))
  const current = (currentMetrics ?? []).findLast(
    ({ type, resource }: Fields) =>
      type === 'Resource' && resource?.name === 'cpu' && resource.current.averageUtilization !== undefined,
  )
  autoscaler.spec = { ...spec, ...(cpu ? { targetCPUUtilizationPercentage: cpu.resource.target.averageUtilization } : {}) }
  autoscaler.status = {
    currentReplicas: 0,
    ...status,
    ...(current ? { currentCPUUtilizationPercentage: current.resource.current.averageUtilization } : {}),
  }
  const annotations = withoutV1Annotations(autoscaler)
  if (otherMetrics.length > 0)
    annotations[annotationNames.metrics] = JSON.stringify(otherMetrics.map((metric: Fields) => specToV1(metric)))
  if (currentMetrics?.length > 0) annotations[annotationNames.current] = JSON.stringify(currentMetrics.map(statusToV1))
  if (conditions.length > 0) annotations[annotationNames.conditions] = JSON.stringify(conditions)
  if (behavior) annotations[annotationNames.behavior] = JSON.stringify(behaviorToGo(behavior))
  setAnnotations(autoscaler, annotations)
}

/** Converts a draft of v1 to v2. */
export function toV2(autoscaler: UnknownObject): void {
  const { targetCPUUtilizationPercentage: target, ...spec } = autoscaler.spec as Fields
  const { currentCPUUtilizationPercentage: currentCPU, ...status } = (autoscaler.status ?? {}) as Fields
  const { annotations = {} } = autoscaler.metadata
  const metrics = [
    ...(parseAnnotation(annotations[annotationNames.metrics], listOf(specToV2)) ?? []),
    ...(target === undefined ? [] : [defaultMetric(target)]),
  ]
  const behavior = parseAnnotation(annotations[annotationNames.behavior], behaviorFromGo)
  const current = parseAnnotation(annotations[annotationNames.current], listOf(statusToV2))
  const conditions = parseAnnotation(annotations[annotationNames.conditions], listOf(conditionOf))
  autoscaler.spec = {
    ...spec,
    metrics: metrics.length > 0 ? metrics : [defaultMetric()],
    ...(behavior ? { behavior } : {}),
  }
  const cpuStatus = { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: currentCPU } } }
  const currentMetrics = current ?? (currentCPU === undefined ? undefined : [cpuStatus])
  autoscaler.status = {
    ...status,
    ...(currentMetrics ? { currentMetrics } : {}),
    ...(conditions ? { conditions } : {}),
  }
  // Go's encoder omits a currentReplicas of 0 in v2, but not in v1.
  if ((autoscaler.status as Fields).currentReplicas === 0) delete (autoscaler.status as Fields).currentReplicas
  setAnnotations(autoscaler, withoutV1Annotations(autoscaler))
}

function withoutV1Annotations({ metadata }: UnknownObject): { [key: string]: string } {
  const names = new Set(Object.values(annotationNames))
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !names.has(key)))
}

function setAnnotations({ metadata }: UnknownObject, annotations: { [key: string]: string }): void {
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations
  else delete metadata.annotations
}

/** Parses an annotation; returns `undefined` for an absent or malformed annotation. */
function parseAnnotation<T>(text: string | undefined, read: (value: Fields) => T): T | undefined {
  try {
    return text === undefined ? undefined : read(JSON.parse(text) as Fields)
  } catch {
    return undefined
  }
}

const listOf =
  (read: (fields: Fields) => Fields) =>
  (list: Fields): Fields[] => {
    if (!Array.isArray(list)) throw new TypeError('expected a list')
    return list.map(read)
  }

function conditionOf(condition: Fields): Fields {
  if (!isRecord(condition)) throw new TypeError('expected a condition')
  return condition
}

/** Drops undefined members, as JSON does. */
const withoutUndefined = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** Returns the fields of a reference in Go's order. */
const referenceOf = ({ kind, name, apiVersion }: Fields): Fields => withoutUndefined({ kind, name, apiVersion })

/** Functions that convert each metric source; `containerResource` is converted like `resource`. */
type Sources = { readonly [source in 'object' | 'pods' | 'resource' | 'external']: (fields: Fields) => Fields }

/** Returns a function that converts a metric with `sources`. */
const metricConverter =
  (sources: Sources) =>
  ({ type, object, pods, resource, containerResource, external }: Fields): Fields =>
    withoutUndefined({
      type,
      object: object && withoutUndefined(sources.object(object)),
      pods: pods && withoutUndefined(sources.pods(pods)),
      resource: resource && withoutUndefined(sources.resource(resource)),
      containerResource: containerResource && withoutUndefined(sources.resource(containerResource)),
      external: external && withoutUndefined(sources.external(external)),
    })

const specToV1 = metricConverter({
  object: ({ describedObject, metric, target }) => ({
    target: referenceOf(describedObject),
    metricName: metric.name,
    targetValue: target.value ?? '0',
    selector: metric.selector,
    averageValue: target.averageValue,
  }),
  pods: ({ metric, target }) => ({
    metricName: metric.name,
    targetAverageValue: target.averageValue ?? '0',
    selector: metric.selector,
  }),
  resource: ({ name, container, target }) => ({
    name,
    targetAverageUtilization: target.averageUtilization,
    targetAverageValue: target.averageValue,
    container,
  }),
  external: ({ metric, target }) => ({
    metricName: metric.name,
    metricSelector: metric.selector,
    targetValue: target.value,
    targetAverageValue: target.averageValue,
  }),
})

const statusToV1 = metricConverter({
  object: ({ describedObject, metric, current }) => ({
    target: referenceOf(describedObject),
    metricName: metric.name,
    currentValue: current.value ?? '0',
    selector: metric.selector,
    averageValue: current.averageValue,
  }),
  pods: ({ metric, current }) => ({
    metricName: metric.name,
    currentAverageValue: current.averageValue ?? '0',
    selector: metric.selector,
  }),
  resource: ({ name, container, current }) => ({
    name,
    currentAverageUtilization: current.averageUtilization,
    currentAverageValue: current.averageValue ?? '0',
    container,
  }),
  external: ({ metric, current }) => ({
    metricName: metric.name,
    metricSelector: metric.selector,
    currentValue: current.value ?? '0',
    currentAverageValue: current.averageValue,
  }),
})

const identifier = (name: string, selector: unknown): Fields => withoutUndefined({ name, selector: selector ?? undefined })

const specToV2 = metricConverter({
  object: ({ target, metricName, selector, targetValue, averageValue }) => ({
    describedObject: target,
    target: withoutUndefined({
      type: averageValue === undefined ? 'Value' : 'AverageValue',
      // `specToV1` writes the value 0 for a metric that has only an average value.
      value: averageValue !== undefined && String(targetValue).startsWith('0') ? undefined : targetValue,
      averageValue,
    }),
    metric: identifier(metricName, selector),
  }),
  pods: ({ metricName, selector, targetAverageValue: averageValue }) => ({
    metric: identifier(metricName, selector),
    target: { type: 'AverageValue', averageValue },
  }),
  resource: ({ name, container, targetAverageUtilization: averageUtilization, targetAverageValue: averageValue }) => ({
    name,
    target: withoutUndefined({
      type: averageUtilization === undefined ? 'AverageValue' : 'Utilization',
      averageValue,
      averageUtilization,
    }),
    container,
  }),
  external: ({ metricName, metricSelector, targetValue: value, targetAverageValue: averageValue }) => ({
    metric: identifier(metricName, metricSelector),
    target: withoutUndefined({ type: value === undefined ? 'AverageValue' : 'Value', value, averageValue }),
  }),
})

const statusToV2 = metricConverter({
  object: ({ target, metricName, selector, currentValue: value, averageValue }) => ({
    describedObject: target,
    metric: identifier(metricName, selector),
    current: withoutUndefined({ value, averageValue }),
  }),
  pods: ({ metricName, selector, currentAverageValue: averageValue }) => ({
    metric: identifier(metricName, selector),
    current: withoutUndefined({ averageValue }),
  }),
  resource: ({ name, container, currentAverageUtilization: averageUtilization, currentAverageValue: averageValue }) => ({
    name,
    current: withoutUndefined({ averageValue, averageUtilization }),
    container,
  }),
  external: ({ metricName, metricSelector, currentValue: value, currentAverageValue: averageValue }) => ({
    metric: identifier(metricName, metricSelector),
    current: withoutUndefined({ value, averageValue }),
  }),
})

/** Converts `behavior` for its annotation, in which upstream writes the field names of its Go structs. */
function behaviorToGo(behavior: Fields): Fields {
  const rules = (scalingRules: Fields | undefined): Fields | null =>
    scalingRules
      ? {
          StabilizationWindowSeconds: scalingRules.stabilizationWindowSeconds ?? null,
          SelectPolicy: scalingRules.selectPolicy ?? null,
          Policies: scalingRules.policies?.map((policy: Fields) => ({
            Type: policy.type,
            Value: policy.value,
            PeriodSeconds: policy.periodSeconds,
          })),
          Tolerance: scalingRules.tolerance ?? null,
        }
      : null
  return { ScaleUp: rules(behavior.scaleUp), ScaleDown: rules(behavior.scaleDown) }
}

function behaviorFromGo(behavior: Fields): Fields {
  if (behavior === null || typeof behavior !== 'object') throw new TypeError('expected rules')
  const rules = (scalingRules: Fields | null | undefined): Fields | undefined =>
    scalingRules
      ? withoutUndefined({
          stabilizationWindowSeconds: scalingRules.StabilizationWindowSeconds ?? undefined,
          selectPolicy: scalingRules.SelectPolicy ?? undefined,
          policies: scalingRules.Policies?.map((policy: Fields) => ({
            type: policy.Type,
            value: policy.Value,
            periodSeconds: policy.PeriodSeconds,
          })),
          tolerance: scalingRules.Tolerance ?? undefined,
        })
      : undefined
  return withoutUndefined({ scaleUp: rules(behavior.ScaleUp), scaleDown: rules(behavior.ScaleDown) })
}
