/**
 * The kind MachineDrainRule, which defines how Pods are drained when their Machine is deleted.
 * Upstream: api/core/v1beta2/machinedrainrules_types.go, v1.14.
 */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { machineDrainRuleErrors } from './admission/machine-drain-rule.ts'
import { ageColumn } from './shared/columns.ts'
import { coreLabels } from './shared/core-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { nonEmpty } from './shared/limits.ts'

const uniqueEntries = 'self.all(x, self.exists_one(y, x == y))'

const drain = s
  .object({
    behavior: s
      .enum('Drain', 'Skip', 'WaitCompleted')
      .doc('Drain evicts the Pods, Skip ignores them, WaitCompleted waits until they complete by themselves.'),
    order: s
      .int32()
      .optional()
      .doc('Pods with a higher order are drained after all Pods with a lower one; 0 when absent. Only for behavior Drain.'),
  })
  .doc('Whether and how the Pods are drained.')

const machineSelectors = s
  .list(
    s
      .object(
        {
          selector: labelSelector.optional().doc('Labels of the Machines; all Machines when absent or empty.'),
          clusterSelector: labelSelector
            .optional()
            .doc('Labels of the Clusters of the Machines; Machines of all Clusters when absent or empty.'),
        },
        nonEmpty,
      )
      .doc('Selects Machines. Both selectors must match.'),
    { minItems: 1, maxItems: 32 },
  )
  .atomic()
  .rule(uniqueEntries, 'entries in machines must be unique')
  .doc(
    'The rule applies to Machines of its namespace that at least one entry selects; to all Machines of its namespace when absent.',
  )
export type MachineDrainRuleMachineSelector = Infer<typeof machineSelectors>[number]

const podSelectors = s
  .list(
    s
      .object(
        {
          selector: labelSelector.optional().doc('Labels of the Pods; all Pods when absent or empty.'),
          namespaceSelector: labelSelector
            .optional()
            .doc('Labels of the namespaces of the Pods; Pods of all namespaces when absent or empty.'),
        },
        nonEmpty,
      )
      .doc('Selects Pods. Both selectors must match.'),
    { minItems: 1, maxItems: 32 },
  )
  .atomic()
  .rule(uniqueEntries, 'entries in pods must be unique')
  .doc('The rule applies to Pods that at least one entry selects; to all Pods when absent.')
export type MachineDrainRulePodSelector = Infer<typeof podSelectors>[number]

const machineDrainRuleSpec = s.object({
  drain,
  machines: machineSelectors.optional(),
  pods: podSelectors.optional(),
})
export interface MachineDrainRuleSpec extends Infer<typeof machineDrainRuleSpec> {}

export const MachineDrainRule = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachineDrainRule',
  plural: 'machinedrainrules',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Defines how Pods are drained from the Nodes of Machines that are being deleted. If several rules select a Pod, the first by name applies.',
  spec: machineDrainRuleSpec,
  requiresMetadata: true,
  columns: [
    column('Behavior', '.spec.drain.behavior', { description: 'Drain behavior' }),
    column('Order', '.spec.drain.order', { description: 'Drain order' }),
    ageColumn,
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'MachineDrainRule'),
  validate: machineDrainRuleErrors,
})
export interface MachineDrainRule extends ObjectOf<typeof MachineDrainRule> {
  spec: MachineDrainRuleSpec
}
