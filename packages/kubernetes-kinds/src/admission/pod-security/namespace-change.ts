/** Evaluates new labels of a namespace. Upstream: ValidateNamespace of k8s.io/pod-security-admission/admission, v0.36. */
import { equal, type FieldError, type Labels } from '@capstan/kube'
import { isStricter, policyOf, type Standard } from './policy.ts'

/** Result of the evaluation of a namespace's labels. */
export type NamespaceEvaluation =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] }
  /**
   * The enforced level is not `privileged`, and is stricter than before or has another version: existing pods must be checked against
   * `enforce`.
   */
  | { readonly kind: 'tightened'; readonly enforce: Standard }

const accepted: NamespaceEvaluation = { kind: 'accepted' }

/**
 * Evaluates the pod security labels of a namespace that is created or updated.
 *
 * @param old labels before the change; `undefined` for a new namespace
 */
export function evaluateLabels(
  labels: Labels | undefined,
  old: { readonly labels: Labels | undefined } | undefined,
): NamespaceEvaluation {
  const { policy, errors } = policyOf(labels)
  const before = old && policyOf(old.labels)
  // An update is not rejected if the old labels have exactly the same errors; an update that corrects only some of them is rejected.
  if (errors.length > 0 && !(before && equal(errors, before.errors))) return { kind: 'invalid', errors }
  if (!before) return accepted
  const [now, then] = [policy.enforce, before.policy.enforce]
  if (now.level === 'privileged') return accepted
  if (now.version === then.version && !isStricter(now.level, then.level)) return accepted
  return { kind: 'tightened', enforce: now }
}
