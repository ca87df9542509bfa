/**
 * Computes the versions of control plane and workers on the way to the topology's version. Upstream:
 * exp/topology/desiredstate/upgrade_plan.go, v1.14.
 */
import { compareVersions, compareWithBuild, parseVersion, sameVersion, versionText } from '@capstan/api'

export interface UpgradePlan {
  /** Versions to which the control plane is upgraded, next step first. */
  readonly controlPlane: readonly string[]
  /** Versions to which the workers are upgraded, next step first. Workers may take fewer and larger steps than the control plane. */
  readonly workers: readonly string[]
}

export interface UpgradePlanInput {
  /** `spec.topology.version`. */
  readonly desired: string
  /** `spec.version` of the control plane; absent while there is no control plane, and then no upgrade is needed. */
  readonly controlPlane: string | undefined
  /** Versions of the existing MachineDeployments and MachinePools of the topology; those without a version are left out. */
  readonly workers: readonly string[]
  /** `spec.kubernetesVersions` of the ClusterClass. If it is empty and `extensionPlan` is absent, an upgrade is limited to one minor version. */
  readonly known: readonly string[]
  /** The plan of an extension, if one is called. */
  readonly extensionPlan?: UpgradePlan
}

/** Input of an upgrade that is needed: the control plane exists. */
export interface UpgradeDue extends UpgradePlanInput {
  readonly controlPlane: string
}

/** Returns the steps to the topology's version. @throws Error when a version is invalid or cannot be reached, or the plan of the extension is invalid */
export function upgradePlan({ desired, controlPlane, workers, known, extensionPlan }: UpgradePlanInput): UpgradePlan {
  if (controlPlane === undefined) return { controlPlane: [], workers: [] }
  checkVersions(desired, controlPlane)
  const lowest = lowestVersion(workers, controlPlane)
  const steps =
    extensionPlan?.controlPlane ??
    (known.length > 0 ? knownSteps(controlPlane, desired, known) : singleStep(controlPlane, desired))
  checkControlPlaneSteps(steps, controlPlane, desired)
  const isPlanned = extensionPlan !== undefined && extensionPlan.workers.length > 0
  if (lowest === undefined || sameVersion(lowest, desired)) {
    if (isPlanned) throw new Error('invalid worker upgrade plan; there are no workers or workers already at the desired version')
    return { controlPlane: steps, workers: [] }
  }
  if (isPlanned) checkAreControlPlaneSteps(extensionPlan.workers, steps, controlPlane)
  const stepsOfWorkers = isPlanned ? extensionPlan.workers : workerSteps(steps, controlPlane, lowest, desired)
  if (stepsOfWorkers.length === 0) return { controlPlane: steps, workers: [] }
  checkWorkerSteps(stepsOfWorkers, [controlPlane, ...steps], lowest, desired)
  return { controlPlane: steps, workers: stepsOfWorkers }
}

/** Whether an upgrade is needed. An extension is called only in this case. */
export function isUpgradeDue(versions: UpgradePlanInput): versions is UpgradeDue {
  const { desired, controlPlane, workers } = versions
  if (controlPlane === undefined) return false
  checkVersions(desired, controlPlane)
  const lowest = lowestVersion(workers, controlPlane)
  return !sameVersion(controlPlane, desired) || (lowest !== undefined && !sameVersion(lowest, desired))
}

function checkVersions(desired: string, controlPlane: string): void {
  parseVersion(desired, `failed to parse Cluster version ${desired}`)
  parseVersion(controlPlane, `failed to parse ControlPlane version ${controlPlane}`)
}

/**
 * Returns the lowest version of the workers; `undefined` when there are none. Some versions that differ only in build metadata, such as
 * v1.34.0+a and v1.34.0+b, have no order: of two such versions, the one that differs from the control plane's version counts as lower.
 */
export function lowestVersion(workers: readonly string[], controlPlane: string): string | undefined {
  let lowest: string | undefined
  for (const version of workers) {
    const order = lowest === undefined ? -1 : compareWithBuild(version, lowest)
    if (order === -1 || (order === 'differ' && !sameVersion(version, controlPlane))) lowest = version
  }
  return lowest === undefined ? undefined : versionText(parseVersion(lowest))
}

function singleStep(from: string, to: string): string[] {
  if (sameVersion(from, to)) return []
  if (parseVersion(to).minor > parseVersion(from).minor + 1)
    throw new Error(`cannot compute an upgrade plan from ${from} to ${to}`)
  return [to]
}

/**
 * Returns the last known version of each minor version above that of `from`, up to `to`. If `from` and `to` have the same minor version,
 * returns only the last known version above `from`, up to `to`.
 */
function knownSteps(from: string, to: string, known: readonly string[]): string[] {
  if (sameVersion(from, to)) return []
  const fromMinor = parseVersion(from).minor
  const ahead: string[] = []
  for (const version of known) {
    if (compareVersions(version, from) <= 0) continue
    if (compareWithBuild(version, to) === 1) break
    ahead.push(version)
    // `known` may list builds after `to` that have no order with `to`. They do not belong to the plan.
    if (sameVersion(version, to)) break
  }
  if (fromMinor === parseVersion(to).minor) return ahead.slice(-1)
  const lastOfMinor = new Map<number, string>()
  for (const version of ahead) lastOfMinor.set(parseVersion(version).minor, version)
  lastOfMinor.delete(fromMinor)
  return [...lastOfMinor.values()]
}

function checkControlPlaneSteps(steps: readonly string[], from: string, to: string): void {
  const plan = 'invalid ControlPlane upgrade plan'
  if (sameVersion(from, to)) {
    if (steps.length > 0) throw new Error(`${plan}: control plane is already at the desired version`)
    return
  }
  let current = parseVersion(from)
  for (const [index, step] of steps.entries()) {
    const next = parseVersion(step, `${plan}: item ${index}; failed to parse version ${step}`)
    const order = compareWithBuild(step, versionText(current))
    if (order === -1 || order === 0)
      throw new Error(`${plan}: item ${index}; version ${step} must be greater than ${versionText(current)}`)
    if (next.minor !== current.minor && next.minor !== current.minor + 1) {
      const expected = `expecting a version with minor ${current.minor} or ${current.minor + 1}, found version ${step}`
      throw new Error(`${plan}: item ${index}; ${expected}`)
    }
    current = next
  }
  if (!sameVersion(versionText(current), to)) {
    throw new Error(`${plan}: control plane upgrade plan must end with version ${to}, ends with ${versionText(current)} instead`)
  }
}

const InvalidWorkerSteps = 'invalid workers upgrade plan'

function checkAreControlPlaneSteps(steps: readonly string[], controlPlaneSteps: readonly string[], controlPlane: string): void {
  const unmatched = steps.filter((step) => step !== controlPlane && !controlPlaneSteps.includes(step))
  if (controlPlaneSteps.length === 0 || unmatched.length === 0) return
  const expectedVersions = 'any versions in the control plane upgrade plan nor the control plane version'
  throw new Error(`${InvalidWorkerSteps}: versions ${unmatched.join(',')} doesn't match ${expectedVersions}`)
}

function checkWorkerSteps(steps: readonly string[], controlPlaneVersions: readonly string[], lowest: string, to: string): void {
  let current = parseVersion(lowest)
  for (const [index, step] of steps.entries()) {
    const item = `${InvalidWorkerSteps}, item ${index};`
    const from = versionText(current)
    const next = parseVersion(step, `${item} failed to parse version ${step}`)
    const compared = compareWithBuild(step, from)
    if (compared === -1 || compared === 0) throw new Error(`${item} version ${step} must be greater than ${from}`)
    // Builds that have no order must have the order of the control plane's steps.
    if (
      compared === 'differ' &&
      controlPlaneVersions.includes(from) &&
      controlPlaneVersions.indexOf(step) < controlPlaneVersions.indexOf(from)
    ) {
      throw new Error(`${item} version ${step} must be before ${from}`)
    }
    if (next.minor - current.minor > 3) {
      const skew = 'an intermediate step is required to comply with Kubernetes version skew rules'
      throw new Error(`${item} workers cannot go from minor ${current.minor} (${from}) to minor ${next.minor} (${step}), ${skew}`)
    }
    current = next
  }
  if (!sameVersion(versionText(current), to)) {
    throw new Error(
      `${InvalidWorkerSteps}; workers upgrade plan must end with version ${to}, ends with ${versionText(current)} instead`,
    )
  }
}

/**
 * Returns the fewest steps that keep workers within three minor versions of the control plane. Returns none if the workers have a higher
 * minor version than the topology, or if the version of a step is not known: upstream drops its error in these cases.
 */
function workerSteps(controlPlaneSteps: readonly string[], controlPlane: string, lowest: string, to: string): string[] {
  const versionOfMinor = new Map<number, string>()
  for (const version of [controlPlane, ...controlPlaneSteps]) versionOfMinor.set(parseVersion(version).minor, version)

  const first = parseVersion(lowest).minor
  const last = parseVersion(to).minor
  if (first > last) return []
  const steps: string[] = []
  for (let minor = first + 3; minor < last; minor += 3) {
    const version = versionOfMinor.get(minor)
    if (version === undefined) return []
    steps.push(version)
  }
  return [...steps, to]
}
