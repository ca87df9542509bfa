/**
 * An autoscaler of version v2, in which it is stored, as v1 shows it, and back. What v1 has no fields for goes into annotations.
 * Upstream: pkg/apis/autoscaling/v1/conversion.go, v1.36.
 */
import { isRecord, type UnknownObject } from '@capstan/kube'
import type { MetricSpec } from '../schemas/types.ts'

const prefix = 'autoscaling.alpha.kubernetes.io/'
const kept = {
  metrics: `${prefix}metrics`,
  current: `${prefix}current-metrics`,
  conditions: `${prefix}conditions`,
  behavior: `${prefix}behavior`,
}

type Fields = { [name: string]: any }

/** What an autoscaler looks at when nobody says. */
export const defaultMetric = (averageUtilization = 80): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
})

/** Brings a draft of v2 into the form of v1. */
export function toV1(autoscaler: UnknownObject): void {
  const { metrics = [], behavior, ...spec } = autoscaler.spec as Fields
  const { currentMetrics = [], conditions = [], ...status } = (autoscaler.status ?? {}) as Fields
  const isCPU = ({ type, resource }: Fields) =>
    type === 'Resource' && resource?.name === 'cpu' && resource.target.averageUtilization !== undefined
  const cpu = metrics.find(isCPU)
  const others = metrics.filter((metric: Fields) => !isCPU(metric))
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
  const annotations = withoutKept(autoscaler)
  if (others.length > 0) annotations[kept.metrics] = JSON.stringify(others.map((one: Fields) => specToV1(one)))
  if (currentMetrics?.length > 0) annotations[kept.current] = JSON.stringify(currentMetrics.map(statusToV1))
  if (conditions.length > 0) annotations[kept.conditions] = JSON.stringify(conditions)
  if (behavior) annotations[kept.behavior] = JSON.stringify(behaviorToGo(behavior))
  setAnnotations(autoscaler, annotations)
}

/** Brings a draft of v1 into the form of v2. */
export function toV2(autoscaler: UnknownObject): void {
  const { targetCPUUtilizationPercentage: target, ...spec } = autoscaler.spec as Fields
  const { currentCPUUtilizationPercentage: now, ...status } = (autoscaler.status ?? {}) as Fields
  const { annotations = {} } = autoscaler.metadata
  const metrics = [
    ...(understood(annotations[kept.metrics], listOf(specToV2)) ?? []),
    ...(target === undefined ? [] : [defaultMetric(target)]),
  ]
  const behavior = understood(annotations[kept.behavior], behaviorFromGo)
  const current = understood(annotations[kept.current], listOf(statusToV2))
  const conditions = understood(annotations[kept.conditions], listOf(conditionOf))
  autoscaler.spec = {
    ...spec,
    metrics: metrics.length > 0 ? metrics : [defaultMetric()],
    ...(behavior ? { behavior } : {}),
  }
  const ofNow = { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: now } } }
  autoscaler.status = {
    ...status,
    ...(current ? { currentMetrics: current } : now === undefined ? {} : { currentMetrics: [ofNow] }),
    ...(conditions ? { conditions } : {}),
  }
  if ((autoscaler.status as Fields).currentReplicas === 0) delete (autoscaler.status as Fields).currentReplicas
  setAnnotations(autoscaler, withoutKept(autoscaler))
}

function withoutKept({ metadata }: UnknownObject): { [key: string]: string } {
  const names = new Set(Object.values(kept))
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !names.has(key)))
}

function setAnnotations({ metadata }: UnknownObject, annotations: { [key: string]: string }): void {
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations
  else delete metadata.annotations
}

/** What an annotation holds; `undefined` where it is somebody else's: as if it were not there. */
function understood<T>(text: string | undefined, read: (value: Fields) => T): T | undefined {
  try {
    return text === undefined ? undefined : read(JSON.parse(text) as Fields)
  } catch {
    return undefined
  }
}

const listOf =
  (read: (one: Fields) => Fields) =>
  (list: Fields): Fields[] => {
    if (!Array.isArray(list)) throw new TypeError('expected a list')
    return list.map(read)
  }

function conditionOf(one: Fields): Fields {
  if (!isRecord(one)) throw new TypeError('expected a condition')
  return one
}

/** Without what is not there, as JSON leaves it out. */
const some = (fields: Fields): Fields => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** In the order in which Go writes its fields. */
const referenceOf = ({ kind, name, apiVersion }: Fields): Fields => some({ kind, name, apiVersion })

function specToV1({ type, ...sources }: Fields): Fields {
  const { resource, containerResource, pods, object, external } = sources
  const ofResource = ({ name, container, target }: Fields) => ({
    name,
    targetAverageUtilization: target.averageUtilization,
    targetAverageValue: target.averageValue,
    container,
  })
  return some({
    type,
    object:
      object &&
      some({
        target: referenceOf(object.describedObject),
        metricName: object.metric.name,
        targetValue: object.target.value ?? '0',
        selector: object.metric.selector,
        averageValue: object.target.averageValue,
      }),
    pods:
      pods &&
      some({ metricName: pods.metric.name, targetAverageValue: pods.target.averageValue ?? '0', selector: pods.metric.selector }),
    resource: resource && some(ofResource(resource)),
    containerResource: containerResource && some(ofResource(containerResource)),
    external:
      external &&
      some({
        metricName: external.metric.name,
        metricSelector: external.metric.selector,
        targetValue: external.target.value,
        targetAverageValue: external.target.averageValue,
      }),
  })
}

function specToV2({ type, ...sources }: Fields): Fields {
  const { resource, containerResource, pods, object, external } = sources
  const ofResource = ({ name, container, targetAverageUtilization, targetAverageValue }: Fields) =>
    some({
      name,
      target: some({
        type: targetAverageUtilization === undefined ? 'AverageValue' : 'Utilization',
        averageValue: targetAverageValue,
        averageUtilization: targetAverageUtilization,
      }),
      container,
    })
  const metric = ({ metricName: name, selector, metricSelector }: Fields) => some({ name, selector: selector ?? metricSelector })
  const valueOf = ({ targetValue, averageValue }: Fields) =>
    averageValue !== undefined && String(targetValue).startsWith('0') ? undefined : targetValue
  return some({
    type,
    object:
      object &&
      some({
        describedObject: object.target,
        target: some({
          type: object.averageValue === undefined ? 'Value' : 'AverageValue',
          value: valueOf(object),
          averageValue: object.averageValue,
        }),
        metric: metric(object),
      }),
    pods: pods && { metric: metric(pods), target: { type: 'AverageValue', averageValue: pods.targetAverageValue } },
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external: external && {
      metric: metric(external),
      target: some({
        type: external.targetValue === undefined ? 'AverageValue' : 'Value',
        value: external.targetValue,
        averageValue: external.targetAverageValue,
      }),
    },
  })
}

function statusToV1({ type, ...sources }: Fields): Fields {
  const { resource, containerResource, pods, object, external } = sources
  const ofResource = ({ name, container, current }: Fields) =>
    some({
      name,
      currentAverageUtilization: current.averageUtilization,
      currentAverageValue: current.averageValue ?? '0',
      container,
    })
  return some({
    type,
    object:
      object &&
      some({
        target: referenceOf(object.describedObject),
        metricName: object.metric.name,
        currentValue: object.current.value ?? '0',
        selector: object.metric.selector,
        averageValue: object.current.averageValue,
      }),
    pods:
      pods &&
      some({
        metricName: pods.metric.name,
        currentAverageValue: pods.current.averageValue ?? '0',
        selector: pods.metric.selector,
      }),
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external:
      external &&
      some({
        metricName: external.metric.name,
        metricSelector: external.metric.selector,
        currentValue: external.current.value ?? '0',
        currentAverageValue: external.current.averageValue,
      }),
  })
}

function statusToV2({ type, ...sources }: Fields): Fields {
  const { resource, containerResource, pods, object, external } = sources
  const ofResource = ({ name, container, currentAverageUtilization, currentAverageValue }: Fields) =>
    some({
      name,
      current: some({ averageValue: currentAverageValue, averageUtilization: currentAverageUtilization }),
      container,
    })
  const metric = ({ metricName: name, selector, metricSelector }: Fields) => some({ name, selector: selector ?? metricSelector })
  return some({
    type,
    object: object && {
      describedObject: object.target,
      metric: metric(object),
      current: some({ value: object.currentValue, averageValue: object.averageValue }),
    },
    pods: pods && { metric: metric(pods), current: some({ averageValue: pods.currentAverageValue }) },
    resource: resource && ofResource(resource),
    containerResource: containerResource && ofResource(containerResource),
    external: external && {
      metric: metric(external),
      current: some({ value: external.currentValue, averageValue: external.currentAverageValue }),
    },
  })
}

/** Upstream writes this annotation in the form of its own structs. */
function behaviorToGo(behavior: Fields): Fields {
  const rules = (one: Fields | undefined): Fields | null =>
    one
      ? {
          StabilizationWindowSeconds: one.stabilizationWindowSeconds ?? null,
          SelectPolicy: one.selectPolicy ?? null,
          Policies: one.policies?.map((policy: Fields) => ({
            Type: policy.type,
            Value: policy.value,
            PeriodSeconds: policy.periodSeconds,
          })),
          Tolerance: one.tolerance ?? null,
        }
      : null
  return { ScaleUp: rules(behavior.scaleUp), ScaleDown: rules(behavior.scaleDown) }
}

function behaviorFromGo(behavior: Fields): Fields {
  if (behavior === null || typeof behavior !== 'object') throw new TypeError('expected rules')
  const rules = (one: Fields | null | undefined): Fields | undefined =>
    one
      ? some({
          stabilizationWindowSeconds: one.StabilizationWindowSeconds ?? undefined,
          selectPolicy: one.SelectPolicy ?? undefined,
          policies: one.Policies?.map((policy: Fields) => ({
            type: policy.Type,
            value: policy.Value,
            periodSeconds: policy.PeriodSeconds,
          })),
          tolerance: one.Tolerance ?? undefined,
        })
      : undefined
  return some({ scaleUp: rules(behavior.ScaleUp), scaleDown: rules(behavior.ScaleDown) })
}
