/** Validates MachineDrainRules beyond their schema. Upstream: core/webhooks/admission/machinedrainrules.go, v1.14. */
import type { FieldError, KubeObject } from '@capstan/kube'
import { invalid } from '@capstan/kube'
import type { MachineDrainRuleSpec } from '../machine-drain-rule.ts'
import { selectorSyntaxErrors } from './selector.ts'

type MachineDrainRuleLike = KubeObject & { spec: MachineDrainRuleSpec }

/** Returns the validation errors of a MachineDrainRule. */
export const machineDrainRuleErrors = (rule: MachineDrainRuleLike): FieldError[] => {
  const { behavior, order } = rule.spec.drain
  return [
    ...(behavior !== 'Drain' && order !== undefined
      ? [invalid('spec.drain.order', order, 'order must not be set if drain behavior is "Skip" or "WaitCompleted"')]
      : []),
    ...machineDrainRuleSelectorErrors(rule),
  ]
}

/**
 * Returns errors for invalid selectors of a rule. Core calls this function again before a drain, because the rule may have been stored
 * without admission.
 */
export const machineDrainRuleSelectorErrors = ({ spec: { machines = [], pods = [] } }: MachineDrainRuleLike): FieldError[] => [
  ...machines.flatMap(({ selector, clusterSelector }, index) => [
    ...selectorSyntaxErrors(`spec.machines[${index}].selector`, selector),
    ...selectorSyntaxErrors(`spec.machines[${index}].clusterSelector`, clusterSelector),
  ]),
  ...pods.flatMap(({ selector, namespaceSelector }, index) => [
    ...selectorSyntaxErrors(`spec.pods[${index}].selector`, selector),
    ...selectorSyntaxErrors(`spec.pods[${index}].namespaceSelector`, namespaceSelector),
  ]),
]
