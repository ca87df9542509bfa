/** Selects the MachineDrainRules of a Machine and its Pods. Pure. Upstream: core/reconcilers/machine/drain/drain.go, filters.go, v1.14. */
import { type Cluster, type Machine, type MachineDrainRule, machineDrainRuleSelectorErrors } from '@capstan/api'
import { compareText, type KubeObject, labelSelector, type LabelSelector, type Labels, type Pod } from '@capstan/kube'
import { aggregateText } from '../../aggregate-errors.ts'

/**
 * Returns the rules of the namespace that apply to the Machine, sorted by name: the first rule that selects a Pod applies to it.
 * @throws Error when any rule of the namespace has an invalid selector, even a rule for other Machines
 */
export function rulesForMachine(rules: readonly MachineDrainRule[], machine: Machine, cluster: Cluster): MachineDrainRule[] {
  const problems = rules.flatMap((rule) => {
    const errors = machineDrainRuleSelectorErrors(rule).map(({ field, text }) => `${field}: ${text}`)
    return errors.length === 0 ? [] : [`invalid selectors in MachineDrainRule ${rule.metadata.name}: ${aggregateText(errors)}`]
  })
  if (problems.length > 0) throw new Error(`failed to get matching MachineDrainRules: ${aggregateText(problems)}`)
  return rules
    .filter(({ spec: { machines } }) => {
      if (!machines || machines.length === 0) return true
      return machines.some(
        ({ selector, clusterSelector }) => matches(selector, labelsOf(machine)) && matches(clusterSelector, labelsOf(cluster)),
      )
    })
    .sort((a, b) => compareText(a.metadata.name, b.metadata.name))
}

/** Returns the first rule that selects the Pod. */
export const ruleForPod = (rules: readonly MachineDrainRule[], pod: Pod, namespaceLabels: Labels): MachineDrainRule | undefined =>
  rules.find(({ spec: { pods } }) => {
    if (!pods || pods.length === 0) return true
    return pods.some(
      ({ selector, namespaceSelector }) => matches(selector, labelsOf(pod)) && matches(namespaceSelector, namespaceLabels),
    )
  })

/** Reports whether the selector matches the labels. As upstream, an absent selector matches all labels, like an empty selector. */
const matches = (selector: LabelSelector | undefined, labels: Labels): boolean =>
  selector === undefined || labelSelector(selector).matches(labels)

const labelsOf = ({ metadata }: Pick<KubeObject, 'metadata'>): Labels => metadata.labels ?? {}
