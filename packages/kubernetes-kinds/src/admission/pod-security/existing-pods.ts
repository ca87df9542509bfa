/**
 * Warnings about existing pods of a namespace that violate its new enforced standard. Upstream:
 * EvaluatePodsInNamespace of k8s.io/pod-security-admission/admission, v0.36.
 */
import { controllerOf } from '@capstan/kube'
import type { Pod } from '../../kinds/schemas/types.ts'
import { type Standard, standardText } from './policy.ts'
import { findings, reasonsOf } from './standards.ts'

const maxCheckedPods = 3000

/**
 * Checks at most 3000 pods and returns warnings. Pods that violate the same checks share one warning.
 * @param isTimeOver called after each pod; returns true when the time for the check is over
 */
export function existingPodWarnings(
  namespace: string,
  pods: readonly Pod[],
  enforce: Standard,
  isTimeOver: () => boolean,
): string[] {
  const violators = new Map<string, string[]>()
  let checked = 0
  for (const pod of differingFirst(pods).slice(0, maxCheckedPods)) {
    const reasons = reasonsOf(findings(pod, enforce))
    const names = violators.get(reasons)
    if (names) names.push(pod.metadata.name)
    else if (reasons !== '') violators.set(reasons, [pod.metadata.name])
    checked++
    if (isTimeOver()) break
  }
  const warnings: string[] = []
  if (checked < pods.length) {
    warnings.push(`new PodSecurity enforce level only checked against the first ${checked} of ${pods.length} existing pods`)
  }
  if (violators.size > 0) {
    const standard = standardText(enforce)
    warnings.push(`existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${standard}"`)
  }
  return [...warnings, ...[...violators].map(([reasons, names]) => `${describePods(names)}: ${reasons}`).sort()]
}

/**
 * Sorts pods: first the pods without a controller and one pod of each controller, then the other pods, because pods of one controller are
 * alike.
 */
function differingFirst(pods: readonly Pod[]): Pod[] {
  const seenControllers = new Set<string>()
  const [first, others]: [Pod[], Pod[]] = [[], []]
  for (const pod of pods) {
    const uid = controllerOf(pod as never)?.uid
    if (uid === undefined || !seenControllers.has(uid)) first.push(pod)
    else others.push(pod)
    if (uid !== undefined) seenControllers.add(uid)
  }
  return [...first, ...others]
}

/** Describes a list of pods by the first name in alphabetical order and the number of other pods. */
function describePods(names: readonly string[]): string {
  const name = names.reduce((first, next) => (next < first ? next : first))
  const otherPods = names.length - 1
  return otherPods === 0 ? name : `${name} (and ${otherPods} other ${otherPods === 1 ? 'pod' : 'pods'})`
}
