/** Types of a check, and how checks report which parts of a pod violate them. */
import type { PodSpec, PodSecurityContext, SecurityContext } from '../../kinds/schemas/types.ts'
import { containersOf } from '../../kinds/pod/defaults.ts'

/** A pod, or what pods are made from. */
export interface PodLike {
  readonly metadata?: { readonly annotations?: { readonly [name: string]: string } }
  readonly spec: PodSpec
}

/** Why a pod is not let through: in a word, and with names and values. */
export interface Finding {
  readonly reason: string
  readonly detail: string
}

export type Rule = (pod: PodLike) => Finding | undefined

export interface Check {
  /** Upstream's name for it, by which checks are ordered. */
  readonly id: string
  readonly level: 'baseline' | 'restricted'
  /** Oldest first; each holds from its minor version of Kubernetes until that of the next. */
  readonly rules: readonly { readonly since: number; readonly rule: Rule }[]
  /** The check of the baseline that it makes superfluous. */
  readonly replaces?: string
}

export const quoted = (texts: readonly string[]): string => texts.map((text) => `"${text}"`).join(', ')

export const plural = (word: string, { length }: readonly unknown[]): string => (length === 1 ? word : `${word}s`)

/** `container "a"`, `containers "a", "b"` */
export const containerList = (names: readonly string[]): string => `${plural('container', names)} ${quoted(names)}`

/** Each once, in order. */
export const sorted = (texts: Iterable<string>): string[] => [...new Set(texts)].sort()

/** What pod and containers set in their security contexts that they may not, or fail to set. */
export interface Settings<T> {
  /** `pod`, `container "a"` or `containers "a", "b"`, or both. */
  readonly setters: readonly string[]
  readonly values: readonly T[]
  /** Names of the containers that say nothing, when the pod says nothing good for them either. */
  readonly silent: readonly string[]
}

export function settings<T>(
  spec: PodSpec,
  read: (context: PodSecurityContext & SecurityContext) => T | undefined,
  isGood: (value: T) => boolean,
): Settings<T> {
  const ofPod = spec.securityContext && read(spec.securityContext)
  const podIsBad = ofPod !== undefined && !isGood(ofPod)
  const podIsGood = ofPod !== undefined && !podIsBad
  const values: T[] = podIsBad ? [ofPod] : []
  const [bad, silent]: [string[], string[]] = [[], []]
  for (const { name, securityContext } of containersOf(spec)) {
    const value = securityContext && read(securityContext)
    if (value === undefined) {
      if (!podIsGood) silent.push(name)
    } else if (!isGood(value)) {
      bad.push(name)
      values.push(value)
    }
  }
  return { setters: [...(podIsBad ? ['pod'] : []), ...(bad.length > 0 ? [containerList(bad)] : [])], values, silent }
}

/** Windows knows nothing of what the rule is about, and validation sees to it that its pods say nothing of it. */
export const unlessWindows =
  (rule: Rule): Rule =>
  (pod) =>
    pod.spec.os?.name === 'windows' ? undefined : rule(pod)

/** Root in a user namespace has no privileges outside of it. */
export const unlessUserNamespace =
  (rule: Rule): Rule =>
  (pod) =>
    pod.spec.hostUsers === false ? undefined : rule(pod)
