/**
 * Checks before Machines are created or remediated, so that no Machine joins an incompatible control plane. Upstream:
 * machineset_preflight.go, v1.14.
 */
import {
  type Cluster,
  ClusterNameLabel,
  ClusterTopologyUpgradeStepAnnotation,
  ControlPlaneContract,
  isProvisioning,
  isUpgrading,
  MachineSetSkipPreflightChecksAnnotation,
  type MachineSet,
  parseVersion,
  versionText,
} from '@capstan/api'
import type { MapFunction } from '@capstan/controller'
import { keyOf, keyText, TerminalError, withErrorContext } from '@capstan/kube'
import type { External } from '../external/get.ts'
import type { FeatureGates } from '../feature-gates.ts'
import { observeExternal } from '../external/observe.ts'
import { externalOf, read } from '../external/observed.ts'
import { MachineSetsByClusterName } from '../indexes.ts'
import { missingText, unusableText } from './templates.ts'
import type { MachineSetIO, MachineSetScope, PreflightCheck } from './scope.ts'

/**
 * Returns the texts of the failed checks, because of which no Machine should be created or remediated now. Empty when all checks pass,
 * when all are disabled or skipped, when the Cluster refers to no control plane, and when the control plane has no version.
 */
export async function preflight(
  scope: MachineSetScope,
  action: 'Scale up' | 'Machine remediation',
  io: MachineSetIO,
): Promise<string[]> {
  const { cluster, machineSet } = scope
  if (io.settings.preflightChecks.length === 0) return []
  const checks = io.settings.preflightChecks.filter(isNotSkipped(scope))
  const ref = cluster.spec.controlPlaneRef
  if (checks.length === 0 || !ref) return []
  const { namespace } = cluster.metadata
  return withErrorContext(`failed to perform "${action}": failed to perform preflight checks`, async () => {
    const failure = `failed to get ControlPlane ${namespace}/${ref.name}`
    const controlPlane = await withErrorContext(failure, () => observeExternal(io, ref, namespace!, machineSetsOfControlPlane))
    if (!controlPlane) throw new Error(`${failure}: ${missingText(machineSet, ref)}`)
    return preflightProblems({ checks, cluster, machineSet, controlPlane, gates: io.settings.gates })
  })
}

/** Maps a control plane to all MachineSets of its cluster, because a failed check affects each of them. */
const machineSetsOfControlPlane: MapFunction = ({ metadata }, cache) => {
  const clusterName = metadata.labels?.[ClusterNameLabel]
  return clusterName === undefined
    ? []
    : cache.byIndex(MachineSetsByClusterName, `${metadata.namespace}/${clusterName}`).map(keyOf)
}

/**
 * Returns a predicate that accepts the checks to run. Users skip checks with an annotation on the set, or else on the bootstrap template.
 * @throws TerminalError when the set has no such annotation or an empty one, and the bootstrap template does not exist or could not be read
 */
function isNotSkipped({ machineSet, bootstrapTemplate }: MachineSetScope): (check: PreflightCheck) => boolean {
  const annotation = MachineSetSkipPreflightChecksAnnotation
  const skippedOnSet = machineSet.metadata.annotations?.[annotation]
  const { configRef } = machineSet.spec.template.spec.bootstrap
  const problem = configRef && unusableText(machineSet, configRef, bootstrapTemplate)
  if (!skippedOnSet && problem !== undefined) throw new TerminalError(`failed to read ${annotation} annotation: ${problem}`)
  const skipped = skippedOnSet || (externalOf(bootstrapTemplate)?.object.metadata.annotations?.[annotation] ?? '')
  const names = skipped.split(',').map((name) => name.trim())
  return (check) => !names.includes('All') && !names.includes(check)
}

export interface PreflightFacts {
  readonly checks: readonly PreflightCheck[]
  readonly cluster: Cluster
  readonly machineSet: MachineSet
  readonly controlPlane: External
  readonly gates: FeatureGates
}

/** Returns the texts of the failed checks. Pure. @throws Error when a version cannot be parsed, or `status.versions` of the control plane is invalid */
export function preflightProblems({ checks, cluster, machineSet, controlPlane, gates }: PreflightFacts): string[] {
  const { object } = controlPlane
  const version = read(controlPlane, ControlPlaneContract.version)
  // As upstream, nothing is checked without the version of the control plane.
  if (version === undefined) return []
  const parsedControlPlaneVersion = parseVersion(
    version,
    `failed to parse version "${version}" of ControlPlane ${keyText(keyOf(object))}`,
  )
  const runs = (check: PreflightCheck): boolean => checks.includes(check)
  const topology = gates.ClusterTopology === false ? undefined : cluster.spec.topology
  const name = `${object.kind} ${keyText(keyOf(object))}`
  const problems: string[] = []

  if (runs('ControlPlaneIsStable')) {
    const step = cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation]
    const instability = instabilityOf(controlPlane, version, { desiredVersion: topology?.version, step })
    if (instability) problems.push(problemText(`${name} ${instability}`, 'ControlPlaneIsStable'))
  }

  const setVersion = machineSet.spec.template.spec.version
  if (!setVersion) return problems
  const parsedSetVersion = parseVersion(
    setVersion,
    `failed to parse version "${setVersion}" of MachineSet ${keyText(keyOf(machineSet))}`,
  )
  const versions = `MachineSet version (${withoutV(parsedSetVersion)}) and ControlPlane version (${withoutV(parsedControlPlaneVersion)})`
  if (runs('KubernetesVersionSkew')) {
    const skew = skewOf(parsedSetVersion.minor, parsedControlPlaneVersion.minor)
    if (skew) {
      const text = `${versions} do not conform to the kubernetes version skew policy as ${skew}`
      problems.push(problemText(text, 'KubernetesVersionSkew'))
    }
  }
  const { configRef } = machineSet.spec.template.spec.bootstrap
  const usesKubeadm = configRef?.kind === 'KubeadmConfigTemplate' && configRef.apiGroup === 'bootstrap.cluster.x-k8s.io'
  if (runs('KubeadmVersionSkew') && usesKubeadm && parsedSetVersion.minor !== parsedControlPlaneVersion.minor) {
    const text = `${versions} do not conform to kubeadm version skew policy as kubeadm only supports joining with the same major+minor version as the control plane`
    problems.push(problemText(text, 'KubeadmVersionSkew'))
  }
  if (runs('ControlPlaneVersionSkew') && topology && setVersion !== version) {
    const text = `MachineSet version (${setVersion}) is not yet the same as the ControlPlane version (${version}), waiting for version to be propagated to the MachineSet`
    problems.push(problemText(text, 'ControlPlaneVersionSkew'))
  }
  return problems
}

/** Returns why the control plane is not stable; `undefined` when it is stable. */
function instabilityOf(
  { object, contract }: External,
  version: string,
  { desiredVersion, step }: { readonly desiredVersion: string | undefined; readonly step: string | undefined },
): string | undefined {
  const hasPendingUpgrade = desiredVersion !== undefined && desiredVersion !== version && step !== version
  if (hasPendingUpgrade) return `has a pending version upgrade to ${step || desiredVersion}`
  if (isProvisioning(object, contract)) return 'is provisioning'
  if (isUpgrading(object, contract)) return 'is upgrading'
  return undefined
}

/** Returns how the minor version of the set violates the version skew policy; `undefined` when it conforms. */
function skewOf(minorOfSet: number, minorOfControlPlane: number): string | undefined {
  if (minorOfSet > minorOfControlPlane) return 'MachineSet version is higher than ControlPlane version'
  if (minorOfSet < minorOfControlPlane - 3)
    return 'MachineSet version is more than 3 minor versions older than the ControlPlane version'
  return undefined
}

/** Formats a version without `v`, as upstream prints it in the texts of KubernetesVersionSkew and KubeadmVersionSkew. */
const withoutV = (version: ReturnType<typeof parseVersion>): string => versionText(version).slice(1)

const problemText = (text: string, check: PreflightCheck): string => `${text} ("${check}" preflight check failed)`
