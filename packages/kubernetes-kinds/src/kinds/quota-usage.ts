/** Usage of ResourceQuotas by the objects of a namespace. Upstream: pkg/quota/v1/evaluator/core, v1.36. */
import { addQuantities, type KubeObject, parseQuantity, type Quantity, quantityText, type UnknownObject } from '@capstan/kube'
import type { PendingWrites, Store } from '@capstan/apiserver/kinds'
import { podResources, qosClass } from './pod/resources.ts'
import type { PersistentVolumeClaim, Pod, ResourceQuota, Service } from './schemas/types.ts'

/** Amounts by the names that a ResourceQuota uses in `spec.hard`, such as `pods` or `requests.cpu`. */
export type Amounts = { readonly [name: string]: string | number }

/** Returns `a + factor * b`. */
export function addAmounts(a: string | number, b: string | number, factor: 1 | -1 = 1): string {
  const second = parseQuantity(String(b))
  return quantityText(addQuantities(parseQuantity(String(a)), { ...second, nano: second.nano * BigInt(factor) }))
}

/** Resources that quotas count under their plain name as well as under `count/NAME`. */
const countedByName = new Set([
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
])

/** Returns the usage of one object. `storage` is its resource, such as `pods` or `deployments.apps`. */
export function usageOf(storage: string, object: KubeObject): Amounts {
  const usage: { [name: string]: string } = { [`count/${storage}`]: '1' }
  if (storage === 'pods') return { ...usage, ...podUsage(object as unknown as Pod) }
  if (countedByName.has(storage)) usage[storage] = '1'
  if (storage === 'services') {
    const { spec } = object as unknown as Service
    const needsNodePorts =
      spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false)
    if (needsNodePorts) usage['services.nodeports'] = String(spec.ports?.length ?? 0)
    if (spec.type === 'LoadBalancer') usage['services.loadbalancers'] = '1'
  }
  if (storage === 'persistentvolumeclaims') {
    const { spec } = object as unknown as PersistentVolumeClaim
    const size = spec.resources.requests?.storage
    const classPrefix = `${spec.storageClassName ?? ''}.storageclass.storage.k8s.io`
    if (spec.storageClassName) usage[`${classPrefix}/persistentvolumeclaims`] = '1'
    if (size !== undefined) {
      usage['requests.storage'] = String(size)
      if (spec.storageClassName) usage[`${classPrefix}/requests.storage`] = String(size)
    }
  }
  return usage
}

/** Returns the usage of a pod, without `count/pods`; empty for a finished pod. */
function podUsage(pod: Pod): Amounts {
  const { phase } = pod.status
  if (phase === 'Failed' || phase === 'Succeeded') return {}
  const usage: { [name: string]: string | number } = { pods: '1' }
  const { requests, limits } = podResources(pod.spec)
  for (const [name, amount] of Object.entries(requests)) {
    if (!name.includes('/') && !name.startsWith('hugepages-')) usage[name] = amount
    usage[`requests.${name}`] = amount
  }
  for (const [name, amount] of Object.entries(limits)) usage[`limits.${name}`] = amount
  return usage
}

/**
 * Reports whether all scopes of a quota include an object. A quota without scopes includes every object. The scope VolumeAttributesClass
 * includes only PersistentVolumeClaims; every other scope includes only pods.
 */
export function inScope({ spec: { scopes = [], scopeSelector } }: ResourceQuota, storage: string, object: KubeObject): boolean {
  const requirements = [
    ...scopes.map((scopeName) => ({ scopeName, operator: 'Exists', values: [] as string[] })),
    ...(scopeSelector?.matchExpressions ?? []),
  ]
  if (requirements.length === 0) return true
  if (storage === 'persistentvolumeclaims') {
    const classes = attributesClassesOf(object as unknown as PersistentVolumeClaim)
    return requirements.every((scope) => scope.scopeName === 'VolumeAttributesClass' && hasClass(classes, scope))
  }
  if (storage !== 'pods') return false
  const pod = object as unknown as Pod
  return requirements.every((scope) => {
    switch (scope.scopeName) {
      case 'Terminating':
        return (pod.spec.activeDeadlineSeconds ?? -1) >= 0
      case 'NotTerminating':
        return (pod.spec.activeDeadlineSeconds ?? -1) < 0
      case 'BestEffort':
        return qosClass(pod) === 'BestEffort'
      case 'NotBestEffort':
        return qosClass(pod) !== 'BestEffort'
      case 'PriorityClass':
        return hasClass([pod.spec.priorityClassName ?? ''], scope)
      case 'CrossNamespacePodAffinity':
        return affinityTerms(pod).some((term) => (term.namespaces ?? []).length > 0 || term.namespaceSelector)
      default:
        return false
    }
  })
}

/**
 * Reports whether a scope includes an object with the given priority classes or VolumeAttributesClasses. One matching class suffices. Empty
 * names are ignored.
 */
function hasClass(names: readonly string[], { operator, values = [] }: { operator: string; values?: string[] }): boolean {
  const classes = names.filter((name) => name !== '')
  if (operator === 'Exists') return classes.length > 0
  if (classes.length === 0) return operator !== 'In'
  return operator !== 'DoesNotExist' && classes.some((name) => values.includes(name) === (operator === 'In'))
}

const attributesClassesOf = ({ spec, status }: PersistentVolumeClaim): string[] => [
  spec.volumeAttributesClassName ?? '',
  status?.currentVolumeAttributesClassName ?? '',
  status?.modifyVolumeStatus?.targetVolumeAttributesClassName ?? '',
]

const affinityTerms = ({ spec: { affinity } }: Pod) =>
  [affinity?.podAffinity, affinity?.podAntiAffinity].flatMap((rules) => [
    ...(rules?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(rules?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ])

/** The written object for which a quota is checked, with the store and all writes that are not stored yet. */
interface QuotaWrite {
  readonly store: Store
  readonly pending: PendingWrites
  readonly object: UnknownObject
}

/** Returns, for each name in `spec.hard` of a quota, the usage by the stored objects and by pending writes, except the given write. */
export function usageIn(quota: ResourceQuota, { store, pending, object: write }: QuotaWrite): Amounts {
  const names = Object.keys(quota.spec.hard ?? {})
  const storages = new Set(names.flatMap(storagesOf))
  const totals = new Map<string, Quantity>()
  for (const storage of storages) {
    const count = (object: KubeObject, factor: 1 | -1): void => {
      if (!inScope(quota, storage, object)) return
      const usage = quantitiesOf(storage, object)
      for (const name of names) {
        const amount = usage.get(name)
        if (!amount) continue
        const { nano, format } = amount
        totals.set(name, addQuantities(totals.get(name) ?? { nano: 0n, format }, { nano: nano * BigInt(factor), format }))
      }
    }
    for (const object of store.list(storage, quota.metadata.namespace)) count(object, 1)
    for (const { object, old } of pending.of(storage, write)) {
      if (object.metadata.namespace !== quota.metadata.namespace) continue
      count(object, 1)
      if (old) count(old, -1)
    }
  }
  return Object.fromEntries(names.map((name) => [name, totals.has(name) ? quantityText(totals.get(name)!) : '0']))
}

/** Cache by stored object, because stored objects are frozen and counted often. */
const quantitiesByObject = new WeakMap<object, ReadonlyMap<string, Quantity>>()

function quantitiesOf(storage: string, object: KubeObject): ReadonlyMap<string, Quantity> {
  const cachedUsage = quantitiesByObject.get(object)
  if (cachedUsage) return cachedUsage
  const usage = usageOf(storage, object)
  const quantities = new Map(Object.entries(usage).map(([name, amount]) => [name, parseQuantity(String(amount))]))
  if (Object.isFrozen(object)) quantitiesByObject.set(object, quantities)
  return quantities
}

/** Returns the resources whose objects count towards a name in a quota. */
function storagesOf(name: string): string[] {
  if (name.startsWith('count/')) return [name.slice('count/'.length)]
  if (name.startsWith('services.')) return ['services']
  if (name === 'requests.storage' || name.includes('.storageclass.storage.k8s.io/')) return ['persistentvolumeclaims']
  return countedByName.has(name) ? [name] : ['pods']
}
