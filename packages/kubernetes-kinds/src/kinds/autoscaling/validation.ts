/** Validates the specs of HorizontalPodAutoscalers. Upstream: pkg/apis/autoscaling/validation, v1.36. */
import {
  appendAll,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  parseApiVersion,
  parseQuantity,
  pathSegmentProblems,
  quantityText,
  required,
} from '@capstan/kube'
import { dnsLabel, problems } from '../checks.ts'
import { containerResourceName } from '../pod/resources.ts'
import type {
  AutoscalingV2CrossVersionObjectReference as Reference,
  AutoscalingV2HorizontalPodAutoscalerSpec as Spec,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from '../schemas/types.ts'

const MaxWindow = 3600
const MaxPeriod = 1800

export function specErrors(
  { minReplicas, maxReplicas, scaleTargetRef, metrics = [], behavior }: Spec,
  old: Spec | undefined,
): FieldError[] {
  const path = 'spec.maxReplicas'
  const canScaleToZero = metrics.some(({ type }) => type === 'Object' || type === 'External')
  const problem = 'must specify at least one Object or External metric to support scaling to zero replicas'
  return [
    ...(minReplicas !== undefined && minReplicas < 1
      ? [invalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1')]
      : []),
    ...(maxReplicas === 0 ? [required(path, 'must be set and greater than 0')] : []),
    ...(maxReplicas < 0 ? [invalid(path, maxReplicas, 'must be greater than or equal to 1')] : []),
    ...(minReplicas !== undefined && maxReplicas < minReplicas
      ? [invalid(path, maxReplicas, 'must be greater than or equal to `minReplicas`')]
      : []),
    ...referenceErrors('spec.scaleTargetRef', scaleTargetRef, targetVersion(scaleTargetRef, old?.scaleTargetRef)),
    ...metrics.flatMap((metric, index) => metricErrors(`spec.metrics[${index}]`, metric)),
    ...(minReplicas === 0 && !canScaleToZero ? [forbidden('spec.metrics', problem)] : []),
    ...(behavior?.scaleUp ? scalingErrors('spec.behavior.scaleUp', behavior.scaleUp) : []),
    ...(behavior?.scaleDown ? scalingErrors('spec.behavior.scaleDown', behavior.scaleDown) : []),
  ]
}

/** Allowed API versions of a reference. `any` allows any text; `group` does not allow the core group. */
type AllowedVersion = 'any' | 'group or core' | 'group'

/**
 * Returns the allowed API versions of the scale target. An update that changes neither kind nor apiVersion may keep an invalid apiVersion. As
 * in upstream, the core group is allowed only for the kind ReplicationController.
 */
function targetVersion(target: Reference, old: Reference | undefined): AllowedVersion {
  if (old && old.kind === target.kind && old.apiVersion === target.apiVersion) return 'any'
  return target.kind === 'ReplicationController' ? 'group or core' : 'group'
}

function referenceErrors(path: string, { kind, name, apiVersion = '' }: Reference, allowed: AllowedVersion): FieldError[] {
  const segment = (field: string, value: string): FieldError[] =>
    value === '' ? [required(`${path}.${field}`)] : problems(`${path}.${field}`, value, pathSegmentProblems(value))
  return [...segment('kind', kind), ...segment('name', name), ...versionErrors(`${path}.apiVersion`, apiVersion, allowed)]
}

function versionErrors(path: string, apiVersion: string, allowed: AllowedVersion): FieldError[] {
  if (allowed === 'any') return []
  if (apiVersion.split('/').length > 2) {
    return [invalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)]
  }
  return allowed === 'group or core' || parseApiVersion(apiVersion).group !== ''
    ? []
    : [invalid(path, apiVersion, 'apiVersion must specify API group')]
}

const sources = ['object', 'external', 'pods', 'resource', 'containerResource'] as const
const types = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
} as const

function metricErrors(path: string, metric: MetricSpec): FieldError[] {
  const { type } = metric
  const errors: FieldError[] = []
  if (!type) errors.push(required(`${path}.type`, 'must specify a metric source type'))
  const expected = Object.hasOwn(types, type) ? types[type as keyof typeof types] : undefined
  const unknown = notSupported(`${path}.type`, type, Object.keys(types))
  if (!expected) errors.push(unknown)
  const present = sources.filter((source) => metric[source] !== undefined)
  if (present[0]) appendAll(errors, sourceErrors(`${path}.${present[0]}`, metric, present[0]))
  if (expected) {
    if (!metric[expected]) errors.push(required(`${path}.${expected}`, 'must populate information for the given metric source'))
  } else errors.push(unknown) // Upstream reports an unknown type twice.
  if (present.length === 1) return errors
  for (const source of present) {
    if (source !== expected) errors.push(forbidden(`${path}.${source}`, 'must populate the given metric source only'))
  }
  return errors
}

function sourceErrors(path: string, metric: MetricSpec, source: (typeof sources)[number]): FieldError[] {
  const average = `${path}.target.averageValue`
  switch (source) {
    case 'object': {
      const { describedObject, metric: identifier, target } = metric.object!
      return [
        ...referenceErrors(`${path}.describedObject`, describedObject, 'group or core'),
        ...identifierErrors(`${path}.metric`, identifier),
        ...targetErrors(`${path}.target`, target),
        ...(target.value === undefined && target.averageValue === undefined
          ? [required(average, 'must set either a target value or averageValue')]
          : []),
      ]
    }
    case 'external': {
      const { metric: identifier, target } = metric.external!
      const hasBothValues = target.value !== undefined && target.averageValue !== undefined
      return [
        ...identifierErrors(`${path}.metric`, identifier),
        ...targetErrors(`${path}.target`, target),
        ...(target.value === undefined && target.averageValue === undefined
          ? [required(average, 'must set either a target value for metric or a per-pod target')]
          : []),
        ...(hasBothValues
          ? [forbidden(`${path}.target.value`, 'may not set both a target value for metric and a per-pod target')]
          : []),
      ]
    }
    case 'pods': {
      const { metric: identifier, target } = metric.pods!
      return [
        ...identifierErrors(`${path}.metric`, identifier),
        ...targetErrors(`${path}.target`, target),
        ...(target.averageValue === undefined ? [required(average, 'must specify a positive target averageValue')] : []),
      ]
    }
    case 'resource': {
      const { name, target } = metric.resource!
      const nameErrors = name === '' ? [required(`${path}.name`, 'must specify a resource name')] : []
      return [...nameErrors, ...resourceTargetErrors(`${path}.target`, target)]
    }
    case 'containerResource': {
      const { name, container, target } = metric.containerResource!
      return [
        ...(name === ''
          ? [required(`${path}.name`, 'must specify a resource name')]
          : containerResourceName(`${path}.name`, name)),
        ...(container === ''
          ? [required(`${path}.container`, 'must specify a container')]
          : dnsLabel(`${path}.container`, container)),
        ...resourceTargetErrors(`${path}.target`, target),
      ]
    }
  }
}

const identifierErrors = (path: string, { name }: MetricIdentifier): FieldError[] =>
  name === ''
    ? [required(`${path}.name`, 'must specify a metric name')]
    : problems(`${path}.name`, name, pathSegmentProblems(name))

function resourceTargetErrors(path: string, target: MetricTarget): FieldError[] {
  const { averageUtilization, averageValue } = target
  const neither = 'must set either a target raw value or a target utilization'
  const both = 'may not set both a target raw value and a target utilization'
  return [
    ...targetErrors(path, target),
    ...(averageUtilization === undefined && averageValue === undefined ? [required(`${path}.averageUtilization`, neither)] : []),
    ...(averageUtilization !== undefined && averageValue !== undefined ? [forbidden(`${path}.averageValue`, both)] : []),
  ]
}

function targetErrors(path: string, { type, value, averageValue, averageUtilization }: MetricTarget): FieldError[] {
  const positive = (field: string, amount: string | number | undefined): FieldError[] => {
    if (amount === undefined) return []
    const quantity = parseQuantity(String(amount))
    return quantity.nano > 0n ? [] : [invalid(`${path}.${field}`, quantityText(quantity), 'must be positive')]
  }
  return [
    ...(type ? [] : [required(`${path}.type`, 'must specify a metric target type')]),
    ...(['Utilization', 'Value', 'AverageValue'].includes(type)
      ? []
      : [invalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue')]),
    ...positive('value', value),
    ...positive('averageValue', averageValue),
    ...(averageUtilization !== undefined && averageUtilization < 1
      ? [invalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0')]
      : []),
  ]
}

function scalingErrors(path: string, rules: HPAScalingRules): FieldError[] {
  const { stabilizationWindowSeconds: window = 0, selectPolicy, policies = [], tolerance } = rules
  const wrongWindow = (text: string) => [invalid(`${path}.stabilizationWindowSeconds`, window, text)]
  return [
    ...(window < 0 ? wrongWindow('must be greater than or equal to zero') : []),
    ...(window > MaxWindow ? wrongWindow(`must be less than or equal to ${MaxWindow}`) : []),
    ...(selectPolicy === undefined || ['Disabled', 'Max', 'Min'].includes(selectPolicy)
      ? []
      : [notSupported(`${path}.selectPolicy`, selectPolicy, ['Disabled', 'Max', 'Min'])]),
    ...(policies.length === 0 ? [required(`${path}.policies`, 'must specify at least one Policy')] : []),
    ...policies.flatMap(({ type, value, periodSeconds: period }, index) => {
      const policyPath = `${path}.policies[${index}]`
      return [
        ...(['Pods', 'Percent'].includes(type) ? [] : [notSupported(`${policyPath}.type`, type, ['Percent', 'Pods'])]),
        ...(value > 0 ? [] : [invalid(`${policyPath}.value`, value, 'must be greater than zero')]),
        ...(period > 0 ? [] : [invalid(`${policyPath}.periodSeconds`, period, 'must be greater than zero')]),
        ...(period > MaxPeriod
          ? [invalid(`${policyPath}.periodSeconds`, period, `must be less than or equal to ${MaxPeriod}`)]
          : []),
      ]
    }),
    ...(tolerance !== undefined && parseQuantity(String(tolerance)).nano < 0n
      ? [invalid(`${path}.tolerance`, tolerance, 'must be greater than or equal to 0')]
      : []),
  ]
}
