/** Types of checks, and functions that checks share: to find and format the parts of a pod that violate a rule, and to skip rules. */
import type { PodSpec, PodSecurityContext, SecurityContext } from '../../kinds/schemas/types.ts'
import { containersOf } from '../../kinds/pod/defaults.ts'

/** A pod or a pod template. */
export interface PodLike {
  readonly metadata?: { readonly annotations?: { readonly [name: string]: string } }
  readonly spec: PodSpec
}

/** A violation: a short reason, and details with names and values. */
export interface Finding {
  readonly reason: string
  readonly detail: string
}

/** Returns the violation of a rule by a pod; `undefined` when the pod complies. */
export type Rule = (pod: PodLike) => Finding | undefined

export interface Check {
  /** Upstream's name of the check, which determines the order of checks. */
  readonly id: string
  readonly level: 'baseline' | 'restricted'
  /** Rules, the oldest first. Each rule applies from its minor version of Kubernetes until the version of the next rule. */
  readonly rules: readonly { readonly since: number; readonly rule: Rule }[]
  /** Id of the baseline check that this check includes. Where a rule of this check applies, `restricted` omits that baseline check. */
  readonly replaces?: string
}

export const quoted = (texts: readonly string[]): string => texts.map((text) => `"${text}"`).join(', ')

export const plural = (word: string, { length }: readonly unknown[]): string => (length === 1 ? word : `${word}s`)

/** Formats names of containers: `container "a"` or `containers "a", "b"`. */
export const containerList = (names: readonly string[]): string => `${plural('container', names)} ${quoted(names)}`

/** Returns the texts, sorted and without duplicates. */
export const sorted = (texts: Iterable<string>): string[] => [...new Set(texts)].sort()

/** Values in the security contexts of a pod and its containers that violate a rule, and containers without a value. */
export interface Settings<T> {
  /** Parts of the pod with invalid values: `pod`, then one text for all containers, such as `containers "a", "b"`. */
  readonly violators: readonly string[]
  /** The invalid values, that of the pod first. */
  readonly values: readonly T[]
  /** Names of the containers without a value; empty if the pod has a valid value. */
  readonly unset: readonly string[]
}

/** Reads a value from the security contexts of a pod and its containers, and returns which of them violate a rule. */
export function settings<T>(
  spec: PodSpec,
  read: (context: PodSecurityContext & SecurityContext) => T | undefined,
  isValid: (value: T) => boolean,
): Settings<T> {
  const podValue = spec.securityContext && read(spec.securityContext)
  const podViolates = podValue !== undefined && !isValid(podValue)
  const podComplies = podValue !== undefined && !podViolates
  const values: T[] = podViolates ? [podValue] : []
  const [containers, unset]: [string[], string[]] = [[], []]
  for (const { name, securityContext } of containersOf(spec)) {
    const value = securityContext && read(securityContext)
    if (value === undefined) {
      if (!podComplies) unset.push(name)
    } else if (!isValid(value)) {
      containers.push(name)
      values.push(value)
    }
  }
  return {
    violators: [...(podViolates ? ['pod'] : []), ...(containers.length > 0 ? [containerList(containers)] : [])],
    values,
    unset,
  }
}

/** Skips a rule for Windows pods. The rule does not apply to Windows, and validation rejects the fields that it checks. */
export const unlessWindows =
  (rule: Rule): Rule =>
  (pod) =>
    pod.spec.os?.name === 'windows' ? undefined : rule(pod)

/** Skips a rule for pods in a user namespace, where root has no privileges on the host. */
export const unlessUserNamespace =
  (rule: Rule): Rule =>
  (pod) =>
    pod.spec.hostUsers === false ? undefined : rule(pod)
