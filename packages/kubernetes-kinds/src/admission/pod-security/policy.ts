/** Pod security policy of a namespace, from its labels. Upstream: k8s.io/pod-security-admission/api, v0.36. */
import { type FieldError, invalid, type Labels } from '@capstan/kube'

/** Levels, the least strict first. */
const levels = ['privileged', 'baseline', 'restricted'] as const
export type Level = (typeof levels)[number]

/** A level as a version of Kubernetes defines it. */
export interface Standard {
  readonly level: Level
  /** `latest`, or a minor version such as `v1.25`. */
  readonly version: string
}

export interface Policy {
  /** Standard whose violations are rejected. */
  readonly enforce: Standard
  /** Standard whose violations cause warnings. */
  readonly warn: Standard
}

const prefix = 'pod-security.kubernetes.io/'
const latest = 'latest'
const noRestrictions: Standard = { level: 'privileged', version: latest }
const unrestrictedPolicy: Policy = { enforce: noRestrictions, warn: noRestrictions }

/** Formats a standard: `restricted:latest`. */
export const standardText = ({ level, version }: Standard): string => `${level}:${version}`

export const isStricter = (level: Level, other: Level): boolean => levels.indexOf(level) > levels.indexOf(other)

/**
 * Returns the policy of a namespace with these labels, even if they have errors: an unknown `enforce` level counts as `restricted`, an unknown `warn` level as
 * `privileged`, an unknown version as `latest`. The `audit` labels are only validated.
 */
export function policyOf(labels: Labels | undefined): { readonly policy: Policy; readonly errors: readonly FieldError[] } {
  if (!labels || !Object.keys(labels).some((name) => name.startsWith(prefix))) return { policy: unrestrictedPolicy, errors: [] }
  const errors: FieldError[] = []
  const read = <T extends string>(label: string, { isKnown, expected }: Values<T>): { isSet: boolean; value: T | undefined } => {
    const text = labels[`${prefix}${label}`]
    if (text === undefined) return { isSet: false, value: undefined }
    if (isKnown(text)) return { isSet: true, value: text }
    errors.push(invalid(`metadata.labels[${prefix}${label}]`, text, expected))
    return { isSet: true, value: undefined }
  }
  const [enforceLevel, enforceVersion] = [read('enforce', levelValues), read('enforce-version', versionValues)]
  read('audit', levelValues)
  read('audit-version', versionValues)
  const [warnLevel, warnVersion] = [read('warn', levelValues), read('warn-version', versionValues)]

  const enforce: Standard = {
    level: enforceLevel.value ?? (enforceLevel.isSet ? 'restricted' : 'privileged'),
    version: enforceVersion.value ?? latest,
  }
  const warn: Standard = { level: warnLevel.value ?? 'privileged', version: warnVersion.value ?? latest }
  // As upstream: without the label `warn`, the enforced level also causes warnings. Only Pods are rejected: for an object with
  // a Pod template, the warning is the only notice.
  const warnsAsEnforced = !warnLevel.isSet && enforceLevel.value !== undefined && enforce.level !== 'privileged'
  if (!warnsAsEnforced) return { policy: { enforce, warn }, errors }
  return {
    policy: { enforce, warn: { level: enforce.level, version: warnVersion.isSet ? warn.version : enforce.version } },
    errors,
  }
}

interface Values<T extends string> {
  readonly isKnown: (text: string) => text is T
  readonly expected: string
}

const levelValues: Values<Level> = {
  isKnown: (text): text is Level => (levels as readonly string[]).includes(text),
  expected: `must be one of ${levels.join(', ')}`,
}

const versionValues: Values<string> = {
  isKnown: (text): text is string => text === latest || (/^v1\.(0|[1-9]\d*)$/.test(text) && BigInt(text.slice(3)) < 2n ** 63n),
  expected: 'must be "latest" or "v1.x"',
}
