/** Validates names, amounts and requirements of resources, and computes the resources and quality-of-service class of a pod. */
import {
  addQuantities,
  appendAll,
  compareQuantities,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  parseQuantity,
  qualifiedNameProblems,
  quantityText,
  required,
} from '@capstan/kube'
import { compareAmounts, dnsLabel, missing, problems } from '../checks.ts'
import type { Pod, ResourceRequirements } from '../schemas/types.ts'

type Amounts = { readonly [resource: string]: string | number }

const ContainerResources = new Set(['cpu', 'memory', 'ephemeral-storage'])
const StandardResources = new Set([
  ...ContainerResources,
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
  'requests.storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'storage',
  'services.nodeports',
  'services.loadbalancers',
])

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')
const isQuotaOfHugePages = (name: string): boolean => name.startsWith('requests.hugepages-')

/** Validates the name of a resource. Upstream: validateResourceName. */
export function resourceName(field: string, name: string): FieldError[] {
  const errors = problems(field, name, qualifiedNameProblems(name))
  if (errors.length > 0 || name.includes('/')) return errors
  if (StandardResources.has(name) || isHugePages(name) || isQuotaOfHugePages(name)) return []
  return [invalid(field, name, 'must be a standard resource type or fully qualified')]
}

/** Reports whether a resource name belongs to Kubernetes itself. */
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/** Reports whether a name is that of an extended resource, such as `example.com/gpu`. */
export const isExtendedResource = (name: string): boolean =>
  !isNative(name) && !name.startsWith('requests.') && qualifiedNameProblems(`requests.${name}`).length === 0

/** Validates the name of a resource in the limits or requests of a container. Upstream: validateContainerResourceName. */
export function containerResourceName(field: string, name: string): FieldError[] {
  const errors = resourceName(field, name)
  if (!name.includes('/')) {
    if (!ContainerResources.has(name) && !isHugePages(name)) {
      errors.push(invalid(field, name, 'must be a standard resource for containers'))
    }
  } else if (!isNative(name) && !isExtendedResource(name)) {
    errors.push(invalid(field, name, "doesn't follow extended resource name standard"))
  }
  return errors
}

/** Validates the amount of the resource `name`. Upstream: ValidateResourceQuantityValue. */
export function resourceAmount(field: string, name: string, amount: string | number): FieldError[] {
  const errors: FieldError[] = []
  if (compareAmounts(amount, 0) < 0) errors.push(invalid(field, String(amount), 'must be greater than or equal to 0'))
  if (isIntegerResource(name) && parseQuantity(String(amount)).nano % 1_000_000_000n !== 0n) {
    errors.push(invalid(field, String(amount), 'must be an integer'))
  }
  return errors
}

const WholeResources = new Set([
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
])
const isIntegerResource = (name: string): boolean => WholeResources.has(name) || isExtendedResource(name)

/** Reports whether the limit of a resource may exceed its request. */
export const canOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name)

/**
 * Validates limits, requests and claims. `podClaims` has the names in `spec.resourceClaims` of the pod.
 * Upstream: ValidateContainerResourceRequirements.
 */
export function resourceRequirements(
  field: string,
  { limits = {}, requests = {}, claims = [] }: ResourceRequirements,
  podClaims: ReadonlySet<string>,
): FieldError[] {
  const errors: FieldError[] = []
  for (const [name, amount] of sorted(limits)) {
    const valuePath = `${field}.limits[${name}]`
    appendAll(errors, containerResourceName(valuePath, name), resourceAmount(valuePath, name, amount))
  }
  for (const [name, amount] of sorted(requests)) {
    const valuePath = `${field}.requests[${name}]`
    appendAll(errors, containerResourceName(valuePath, name), resourceAmount(valuePath, name, amount))
    const limit = limits[name]
    if (limit === undefined) {
      if (!canOvercommit(name)) errors.push(required(`${field}.limits`, 'Limit must be set for non overcommitable resources'))
    } else if (compareAmounts(amount, limit) !== 0 && !canOvercommit(name)) {
      errors.push(invalid(`${field}.requests`, String(amount), `must be equal to ${name} limit of ${limit}`))
    } else if (compareAmounts(amount, limit) > 0) {
      errors.push(invalid(`${field}.requests`, String(amount), `must be less than or equal to ${name} limit of ${limit}`))
    }
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory')) {
    errors.push(forbidden(field, 'HugePages require cpu or memory'))
  }
  const seenClaims = new Set<string>()
  for (const [index, { name, request }] of claims.entries()) {
    const valuePath = `${field}.claims[${index}]`
    if (name === '') {
      errors.push(required(valuePath))
      continue
    }
    const key = request === undefined ? name : `${name}/${request}`
    if (request !== undefined) appendAll(errors, dnsLabel(`${valuePath}.request`, request))
    if (seenClaims.has(name) || seenClaims.has(key)) errors.push(duplicate(valuePath, seenClaims.has(name) ? name : key))
    seenClaims.add(key)
    if (!podClaims.has(name)) {
      const knownClaims = podClaims.size === 0 ? ' which is empty' : `: ${[...podClaims].sort().join(', ')}`
      errors.push(missing(valuePath, name, `must be one of the names in pod.spec.resourceClaims${knownClaims}`))
    }
  }
  return errors
}

const sorted = (amounts: Amounts): [string, string | number][] => Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : 1))

/** Returns the quality-of-service class of a pod. Upstream: pkg/apis/core/helper/qos, ComputePodQOS. */
export function qosClass({ spec }: Pod): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const requirements = spec.resources
    ? [spec.resources]
    : [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources }) => resources)
  const amounts = (allAmounts: Amounts = {}) =>
    Object.entries(allAmounts).filter(
      ([name, amount]) => (name === 'cpu' || name === 'memory') && compareQuantities(parseQuantity(String(amount)), Zero) !== 0,
    )
  if (requirements.every(({ limits, requests }) => amounts(limits).length + amounts(requests).length === 0)) return 'BestEffort'
  const guaranteed = requirements.every(({ limits = {}, requests = {} }) => {
    const requested = amounts(requests)
    return (
      amounts(limits).length === 2 &&
      requested.every(([name, amount]) => limits[name] !== undefined && compareAmounts(amount, limits[name]) === 0)
    )
  })
  return guaranteed ? 'Guaranteed' : 'Burstable'
}
const Zero = parseQuantity('0')

/**
 * Returns the limits and requests of a pod, from those of its containers; pod-level resources (`spec.resources`) are ignored. The amount of
 * each resource is the sum over the containers and sidecars, or the largest amount of an init container if that exceeds the sum. The
 * requests include the overhead.
 */
export function podResources({
  containers,
  initContainers = [],
  overhead = {},
}: Pod['spec']): Required<Pick<ResourceRequirements, 'limits' | 'requests'>> {
  const total = (member: 'limits' | 'requests'): { [name: string]: string } => {
    const sums: { [name: string]: string } = {}
    const add = (amounts: Amounts = {}) => {
      for (const [name, amount] of Object.entries(amounts)) {
        sums[name] = quantityText(addQuantities(parseQuantity(sums[name] ?? '0'), parseQuantity(String(amount))))
      }
    }
    for (const { resources } of containers ?? []) add(resources[member])
    for (const { resources, restartPolicy } of initContainers) if (restartPolicy === 'Always') add(resources[member])
    for (const { resources } of initContainers) {
      for (const [name, amount] of Object.entries(resources[member] ?? {})) {
        if (compareAmounts(amount, sums[name] ?? '0') > 0) sums[name] = String(amount)
      }
    }
    if (member === 'requests') add(overhead)
    return sums
  }
  return { limits: total('limits'), requests: total('requests') }
}
