/** Enforces the ResourceQuotas of a namespace. Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota, v1.36. */
import { addTo } from '@capstan/kube'
import { compareAmounts } from '../kinds/checks.ts'
import type { Pod, ResourceQuota } from '../kinds/schemas/types.ts'
import { addAmounts, type Amounts, inScope, usageIn, usageOf } from '../kinds/quota-usage.ts'
import { forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

export const resourceQuota: Plugin = {
  name: 'ResourceQuota',
  appliesTo: ({ namespaced }) => namespaced,
  validate(write) {
    const { operation, subresource, store, pending, namespace, info, object, old } = write
    if (operation === 'DELETE' || namespace === undefined) return
    if (subresource !== undefined && subresource !== 'resize') return
    if (info.storage === 'resourcequotas' && operation === 'UPDATE') return
    const quotas = store.list('resourcequotas', namespace) as unknown as readonly ResourceQuota[]
    if (quotas.length === 0) return
    const requested = usageOf(info.storage, object)
    const usageBefore = old ? usageOf(info.storage, old) : {}
    for (const quota of quotas) {
      if (!inScope(quota, info.storage, object)) continue
      const oldUsage = old && inScope(quota, info.storage, old) ? usageBefore : {}
      const hard = quota.spec.hard ?? {}
      if (info.storage === 'pods' && operation === 'CREATE') requireAmounts(write, quota)
      const increases: { [name: string]: string } = {}
      for (const name of Object.keys(hard)) {
        const delta = addAmounts(requested[name] ?? '0', oldUsage[name] ?? '0', -1)
        if (compareAmounts(delta, 0) > 0) increases[name] = delta
      }
      if (Object.keys(increases).length === 0) continue
      const used = usageIn(quota, write)
      const exceeded = Object.keys(increases)
        .filter((name) => compareAmounts(addAmounts(used[name] ?? '0', increases[name]!), hard[name]!) > 0)
        .sort()
      if (exceeded.length === 0) continue
      const list = (amounts: Amounts) => exceeded.map((name) => `${name}=${amounts[name] ?? 0}`).join(',')
      const text = `requested: ${list(increases)}, used: ${list(used)}, limited: ${list(hard)}`
      throw forbidden(write, `exceeded quota: ${quota.metadata.name}, ${text}`)
    }
    // Until this write is stored or has failed, `usageIn` counts it for concurrent writes.
    pending.add(info.storage, object, old)
  },
}

/** Requires that every container specifies each CPU and memory amount that the quota limits. @throws StatusError Forbidden */
function requireAmounts(write: PluginWrite, { metadata, spec: { hard = {} } }: ResourceQuota): void {
  const { spec } = write.object as unknown as Pod
  const missing = new Map<string, string[]>()
  for (const { name, resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    for (const quotaName of Object.keys(hard)) {
      const [, member = '', resource = ''] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(quotaName) ?? []
      if (resource === '') continue
      const amounts = member === 'limits' ? resources.limits : resources.requests
      if (amounts?.[resource] === undefined) addTo(missing, quotaName, name)
    }
  }
  if (missing.size === 0) return
  const texts = [...missing]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, containers]) => `${name} for: ${containers.join(',')}`)
  throw forbidden(write, `failed quota: ${metadata.name}: must specify ${texts.join('; ')}`)
}
