/** What comes of new labels of a namespace. Upstream: ValidateNamespace of k8s.io/pod-security-admission/admission, v0.36. */
import { equal, type FieldError, type Labels } from '@capstan/kube'
import { isStricter, policyOf, type Standard } from './policy.ts'

export type NamespaceVerdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] }
  /** The namespace's pods are to be held against what it now asks for. */
  | { readonly kind: 'tightened'; readonly enforce: Standard }

const fine: NamespaceVerdict = { kind: 'fine' }

/** @param old labels of before; `undefined` for a namespace that is new */
export function judgeLabels(
  labels: Labels | undefined,
  old: { readonly labels: Labels | undefined } | undefined,
): NamespaceVerdict {
  const { policy, errors } = policyOf(labels)
  const before = old && policyOf(old.labels)
  // What is wrong may stay as it is.
  if (errors.length > 0 && !(before && equal(errors, before.errors))) return { kind: 'invalid', errors }
  if (!before) return fine
  const [now, then] = [policy.enforce, before.policy.enforce]
  if (now.level === 'privileged') return fine
  if (now.version === then.version && !isStricter(now.level, then.level)) return fine
  return { kind: 'tightened', enforce: now }
}
