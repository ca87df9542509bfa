/** Aggregates the rules of ClusterRoles into ClusterRoles that select them by label. Upstream: pkg/controller/clusterroleaggregation. */
import { ClusterRole, equal, isReason, valueKey, labelSelector, type PolicyRule } from '@capstan/kube'
import { type ControllerOptions, WorkQueue } from '@capstan/apiserver/kinds'

const fieldManager = 'clusterrole-aggregation-controller'
const resource = 'clusterroles.rbac.authorization.k8s.io'

/** Runs the controller. Returns a function that stops it. */
export function runClusterRoles({ store, clock, log, client }: Omit<ControllerOptions, 'registry'>): () => void {
  const queue = new WorkQueue({ name: 'clusterroles', clock, log, run: aggregateInto })
  const roles = () => store.list(resource) as readonly ClusterRole[]
  // Any change of a role, including its deletion or a removed label, can affect every role with an aggregation rule.
  const aggregateAll = () => {
    for (const { metadata, aggregationRule } of roles()) if (aggregationRule) queue.add(metadata.name)
  }
  const stop = store.subscribe(resource, aggregateAll)
  aggregateAll()
  return () => {
    stop()
    queue.close()
  }

  async function aggregateInto(name: string): Promise<void> {
    const role = store.get({ resource, namespace: '', name }) as ClusterRole | undefined
    if (!role?.aggregationRule) return
    const rules: PolicyRule[] = []
    const ruleKeys = new Set<unknown>()
    for (const selector of role.aggregationRule.clusterRoleSelectors ?? []) {
      const { matches } = labelSelector(selector)
      for (const selectedRole of roles()) {
        if (selectedRole.metadata.name === name || !matches(selectedRole.metadata.labels)) continue
        for (const rule of selectedRole.rules ?? []) {
          const key = valueKey(rule)
          if (!ruleKeys.has(key)) rules.push(rule)
          ruleKeys.add(key)
        }
      }
    }
    if (equal(rules, role.rules ?? [])) return
    try {
      const { uid } = role.metadata
      await client.apply(ClusterRole, { metadata: { name, uid }, rules }, { fieldManager, force: true })
    } catch (err) {
      // The uid keeps the apply from recreating a role that was deleted meanwhile: such an apply fails with Conflict. If
      // another client has created the role again, the apply fails with Invalid, and that creation triggers another run.
      if (!isReason(err, 'Conflict', 'Invalid')) throw err
    }
  }
}
