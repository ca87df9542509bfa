/** ResourceQuota and LimitRange. */
import {
  appendAll,
  duplicate,
  equal,
  type FieldError,
  forbidden,
  invalid,
  qualifiedNameProblems,
  randomUUID,
  required,
  type UnknownObject,
} from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { compareAmounts, problems } from '../checks.ts'
import { ageColumn, at, column, nameColumn } from '../columns.ts'
import { nullIfNone } from '../go-nulls.ts'
import { canOvercommit, containerResourceName, resourceAmount, resourceName } from '../pod/resources.ts'
import type { LimitRange, LimitRangeItem, ResourceQuota } from '../schemas/types.ts'

type Amounts = { readonly [name: string]: string | number }

const Scopes = [
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'PriorityClass',
  'CrossNamespacePodAffinity',
  'VolumeAttributesClass',
]

export const resourcequotas: BuiltinKind<ResourceQuota> = {
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Request', (o) => usage(o, (name) => !name.startsWith('limits.'))),
    column('Limit', (o) => usage(o, (name) => name.startsWith('limits.'))),
    ageColumn,
  ],
  prepare(quota, old) {
    if (!old) quota.status = {}
  },
  validate(quota, old, { subresource }) {
    const { spec, status } = quota
    if (subresource === 'status')
      return [...quotaAmounts('status.hard', status.hard), ...quotaAmounts('status.used', status.used)]
    const errors = quotaAmounts('spec.hard', spec.hard)
    const scopes = spec.scopes ?? []
    const quotableNames = Object.keys(spec.hard ?? {}).filter(isQuotable)
    for (const scope of scopes) {
      // Limits the work, because `hard` can contain any number of `hugepages-` names. A response contains at most 10,000 errors.
      if (errors.length > 20_000) break
      if (!Scopes.includes(scope)) errors.push(invalid('spec.scopes', scopes, 'unsupported scope'))
      for (const name of quotableNames)
        if (!scopeApplies(scope, name)) errors.push(invalid('spec.scopes', scopes, 'unsupported scope applied to resource'))
    }
    for (const [scope, other] of [
      ['BestEffort', 'NotBestEffort'],
      ['Terminating', 'NotTerminating'],
    ]) {
      if (scopes.includes(scope!) && scopes.includes(other!)) errors.push(invalid('spec.scopes', scopes, 'conflicting scopes'))
    }
    for (const { scopeName, operator, values = [] } of spec.scopeSelector?.matchExpressions ?? []) {
      const field = 'spec.scopeSelector.matchExpressions'
      if (!Scopes.includes(scopeName)) errors.push(invalid(`${field}.scopeName`, scopeName, 'unsupported scope'))
      if (operator === 'In' || operator === 'NotIn') {
        const text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        if (values.length === 0) errors.push(required(`${field}.values`, text))
      } else if (operator === 'Exists' || operator === 'DoesNotExist') {
        const text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        if (values.length > 0) errors.push(invalid(`${field}.values`, values, text))
      } else errors.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'))
    }
    if (old && !equal([...scopes].sort(), [...(old.spec.scopes ?? [])].sort())) {
      errors.push(invalid('spec.scopes', scopes, 'field is immutable'))
    }
    return errors
  },
}

const podQuotas = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']
const claimQuotas = ['persistentvolumeclaims', 'requests.storage']
const Quotable = new Set([
  ...podQuotas,
  ...claimQuotas,
  'ephemeral-storage',
  'requests.ephemeral-storage',
  'limits.ephemeral-storage',
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
])

/** Upstream: IsStandardQuotaResourceName. */
const isQuotable = (name: string): boolean =>
  Quotable.has(name) || name.startsWith('hugepages-') || name.startsWith('requests.hugepages-')

/** Upstream: IsResourceQuotaScopeValidForResource. */
function scopeApplies(scope: string, name: string): boolean {
  if (scope === 'BestEffort') return name === 'pods'
  if (scope === 'VolumeAttributesClass') return claimQuotas.includes(name)
  return !Scopes.includes(scope) || name === 'pods' || podQuotas.includes(name)
}

function quotaAmounts(field: string, amounts: Amounts = {}): FieldError[] {
  return Object.entries(amounts).flatMap(([name, amount]) => {
    const amountPath = `${field}[${name}]`
    const errors = resourceName(amountPath, name)
    if (!name.includes('/') && !isQuotable(name)) {
      errors.push(invalid(amountPath, name, 'must be a standard resource for quota'))
    }
    return [...errors, ...resourceAmount(amountPath, name, amount)]
  })
}

/** Formats the used and the allowed amounts of the resources whose names `includes` accepts. Upstream: printResourceQuota. */
function usage(quota: UnknownObject, includes: (name: string) => boolean): string {
  const hard = (at(quota, 'status', 'hard') ?? {}) as Amounts
  const used = (at(quota, 'status', 'used') ?? {}) as Amounts
  return Object.keys(hard)
    .filter(includes)
    .sort()
    .map((name) => `${name}: ${used[name] ?? 0}/${hard[name]!}`)
    .join(', ')
}

export const limitranges: BuiltinKind<LimitRange> = {
  createsOnUpdate: true,
  default({ spec }) {
    nullIfNone(spec, 'limits')
    for (const limit of spec.limits ?? []) if (limit.type === 'Container') defaultContainerLimits(limit)
  },
  prepare({ metadata }, old, { server }) {
    // As upstream, a LimitRange without a name gets a random name, unlike objects of other kinds.
    if (!old && !metadata.name) metadata.name = randomUUID(server.random)
  },
  validate({ spec }) {
    const seenTypes = new Set<string>()
    return (spec.limits ?? []).flatMap((limit, index) => {
      const field = `spec.limits[${index}]`
      const errors = problems(`${field}.type`, limit.type, qualifiedNameProblems(limit.type))
      if (
        errors.length === 0 &&
        !limit.type.includes('/') &&
        !['Container', 'PersistentVolumeClaim', 'Pod'].includes(limit.type)
      ) {
        errors.push(invalid(`${field}.type`, limit.type, 'must be a standard limit type or fully qualified'))
      }
      if (seenTypes.has(limit.type)) errors.push(duplicate(`${field}.type`, limit.type))
      seenTypes.add(limit.type)
      return [...errors, ...limitErrors(field, limit)]
    })
  },
}

/** Sets missing default limits to the maximum, and missing default requests to the default limit, or else to the minimum. */
function defaultContainerLimits(limit: LimitRangeItem): void {
  const limits = { ...limit.max, ...limit.default }
  const requests = { ...limit.min, ...limits, ...limit.defaultRequest }
  if (Object.keys(limits).length > 0) limit.default = limits
  if (Object.keys(requests).length > 0) limit.defaultRequest = requests
}

function limitErrors(field: string, limit: LimitRangeItem): FieldError[] {
  const {
    type,
    min = {},
    max = {},
    default: limits = {},
    defaultRequest: requests = {},
    maxLimitRequestRatio: ratios = {},
  } = limit
  const errors: FieldError[] = []
  const isPod = type === 'Pod'
  for (const [member, amounts] of Object.entries({
    max,
    min,
    default: limits,
    defaultRequest: requests,
    maxLimitRequestRatio: ratios,
  })) {
    if (isPod && (member === 'default' || member === 'defaultRequest')) {
      if (Object.keys(amounts).length > 0)
        errors.push(forbidden(`${field}.${member}`, "may not be specified when `type` is 'Pod'"))
      continue
    }
    const check = isPod || type === 'Container' ? containerResourceName : resourceName
    for (const name of Object.keys(amounts).sort()) appendAll(errors, check(`${field}.${member}[${name}]`, name))
  }
  if (type === 'PersistentVolumeClaim' && min.storage === undefined && max.storage === undefined) {
    const text = 'either minimum or maximum storage value is required, but neither was provided'
    errors.push(required(`${field}.limits`, text))
  }
  const names = new Set([max, min, limits, requests, ratios].flatMap((amounts) => Object.keys(amounts)))
  for (const name of [...names].sort()) {
    /** Adds an error if `low` is greater than `high`. */
    const requireOrder = (member: string, value: unknown, low: unknown, high: unknown, text: string) => {
      if (low === undefined || high === undefined || compareAmounts(low as string, high as string) <= 0) return
      errors.push(invalid(`${field}.${member}[${name}]`, String(value as string), text))
    }
    const [minimum, maximum, ratio] = [min[name], max[name], ratios[name]]
    // For the type Pod, the loop above has already rejected all defaults.
    const [defaultLimit, defaultRequest] = isPod ? [] : [limits[name], requests[name]]
    requireOrder('min', minimum, minimum, maximum, `min value ${minimum} is greater than max value ${maximum}`)
    requireOrder(
      'defaultRequest',
      defaultRequest,
      minimum,
      defaultRequest,
      `min value ${minimum} is greater than default request value ${defaultRequest}`,
    )
    requireOrder(
      'defaultRequest',
      defaultRequest,
      defaultRequest,
      maximum,
      `default request value ${defaultRequest} is greater than max value ${maximum}`,
    )
    requireOrder(
      'defaultRequest',
      defaultRequest,
      defaultRequest,
      defaultLimit,
      `default request value ${defaultRequest} is greater than default limit value ${defaultLimit}`,
    )
    requireOrder('default', minimum, minimum, defaultLimit, `min value ${minimum} is greater than default value ${defaultLimit}`)
    requireOrder('default', maximum, defaultLimit, maximum, `default value ${defaultLimit} is greater than max value ${maximum}`)
    if (ratio !== undefined && compareAmounts(ratio, 1) < 0) {
      errors.push(invalid(`${field}.maxLimitRequestRatio[${name}]`, String(ratio), `ratio ${ratio} is less than 1`))
    }
    if (
      !canOvercommit(name) &&
      defaultLimit !== undefined &&
      defaultRequest !== undefined &&
      compareAmounts(defaultLimit, defaultRequest) !== 0
    ) {
      const text = `default value ${defaultLimit} must equal to defaultRequest value ${defaultRequest} in ${name}`
      errors.push(invalid(`${field}.defaultRequest[${name}]`, String(defaultRequest), text))
    }
  }
  return errors
}
