/** Evaluates new labels of a namespace. Upstream: ValidateNamespace of k8s.io/pod-security-admission/admission, v0.36. */
import { equal, type FieldError, type Labels } from '@capstan/kube'
import { isStricter, policyOf, type Standard } from './policy.ts'

export type NamespaceVerdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] }
  /** The enforced level is stricter than before: existing pods must be checked against it. */
  | { readonly kind: 'tightened'; readonly enforce: Standard }

const fine: NamespaceVerdict = { kind: 'fine' }

/** @param old labels before the change; `undefined` for a new namespace */
export function evaluateLabels(
  labels: Labels | undefined,
  old: { readonly labels: Labels | undefined } | undefined,
): NamespaceVerdict {
  const { policy, errors } = policyOf(labels)
  const before = old && policyOf(old.labels)
  // Existing errors do not prevent an update.
  if (errors.length > 0 && !(before && equal(errors, before.errors))) return { kind: 'invalid', errors }
  if (!before) return fine
  const [now, then] = [policy.enforce, before.policy.enforce]
  if (now.level === 'privileged') return fine
  if (now.version === then.version && !isStricter(now.level, then.level)) return fine
  return { kind: 'tightened', enforce: now }
}
