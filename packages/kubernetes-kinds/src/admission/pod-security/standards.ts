/** Checks of each level and version, and their findings. Upstream: k8s.io/pod-security-admission/policy, v0.36. */
import { largest } from '@capstan/kube'
import type { Check, Finding, PodLike, Rule } from './check.ts'
import { appArmor } from './checks/app-armor.ts'
import { capabilitiesBaseline, capabilitiesRestricted } from './checks/capabilities.ts'
import { hostNamespaces } from './checks/host-namespaces.ts'
import { hostPorts } from './checks/host-ports.ts'
import { privileged } from './checks/privileged.ts'
import { privilegeEscalation } from './checks/privilege-escalation.ts'
import { probeHosts } from './checks/probe-hosts.ts'
import { procMount, procMountRestricted } from './checks/proc-mount.ts'
import { runAsNonRoot, runAsUser } from './checks/run-as.ts'
import { seLinux } from './checks/se-linux.ts'
import { seccompBaseline, seccompRestricted } from './checks/seccomp.ts'
import { sysctls } from './checks/sysctls.ts'
import { hostPathVolumes, restrictedVolumes } from './checks/volumes.ts'
import { windowsHostProcess } from './checks/windows-host-process.ts'
import type { Level, Standard } from './policy.ts'

/** All checks, in the order of their findings: baseline first, each level sorted by `id`. */
export const checks: readonly Check[] = [
  appArmor,
  capabilitiesBaseline,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  probeHosts,
  privileged,
  procMount,
  seLinux,
  seccompBaseline,
  sysctls,
  windowsHostProcess,
  privilegeEscalation,
  capabilitiesRestricted,
  procMountRestricted,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  seccompRestricted,
]

/** Returns the violations of a standard by a pod; empty when the pod complies. */
export const findings = (pod: PodLike, { level, version }: Standard): Finding[] =>
  rulesOf(level, version).flatMap((rule) => rule(pod) ?? [])

/** Joins the reasons of violations: `host namespaces, privileged`. */
export const reasonsOf = (violations: readonly Finding[]): string => violations.map(({ reason }) => reason).join(', ')

/** Joins the reasons and details of violations: `host namespaces (hostPID=true), privileged (container "a" must not …)`. */
export const detailsOf = (violations: readonly Finding[]): string =>
  violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ')

/** The latest minor version in which a rule changed. */
const newest = largest(checks.flatMap(({ rules }) => rules.map(({ since }) => since)))

const byVersion: readonly { readonly [L in Level]: readonly Rule[] }[] = Array.from({ length: newest + 1 }, (_, minor) => {
  const inForce = checks.flatMap((check) => {
    const rule = check.rules.findLast(({ since }) => since <= minor)?.rule
    return rule ? [{ ...check, rule }] : []
  })
  const replaced = new Set(inForce.map(({ replaces }) => replaces))
  return {
    privileged: [],
    baseline: inForce.filter(({ level }) => level === 'baseline').map(({ rule }) => rule),
    restricted: inForce.filter(({ id }) => !replaced.has(id)).map(({ rule }) => rule),
  }
})

const rulesOf = (level: Level, version: string): readonly Rule[] =>
  byVersion[version === 'latest' ? newest : Math.min(Number(version.slice('v1.'.length)), newest)]![level]
