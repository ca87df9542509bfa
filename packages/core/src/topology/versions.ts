/** Decides the versions of a reconcile, and calls the hooks on which the decision depends. */
import {
  AfterClusterUpgrade,
  AfterControlPlaneUpgrade,
  AfterWorkersUpgrade,
  BeforeClusterUpgrade,
  BeforeControlPlaneUpgrade,
  BeforeWorkersUpgrade,
  type Cluster,
  ClusterTopologyDeferUpgradeAnnotation,
  ClusterTopologyHoldUpgradeSequenceAnnotation,
  ClusterTopologyUpgradeConcurrencyAnnotation,
  ClusterTopologyUpgradeStepAnnotation,
  ControlPlaneContract,
  isProvisioning,
  isUpgrading,
  type MachineDeploymentTopology,
  type MachinePoolTopology,
  readField,
  pendingHooks,
} from '@capstan/api'
import { TerminalError, withErrorContext, withTerminalErrors } from '@capstan/kube'
import type { Blueprint } from './blueprint.ts'
import type { CurrentState } from './current-state.ts'
import { blockedByAnnotation, type HookResult } from './hooks/lifecycle-hooks.ts'
import type { TopologyScope } from './scope.ts'
import {
  controlPlaneVersion,
  type ControlPlaneVersion,
  type UpgradeFacts,
  type UpgradeHook,
  stepHooks,
  type WorkerTopology,
  type WorkerVersion,
  workerVersions,
} from './upgrade/upgrade.ts'
import { isUpgradeDue, lowestVersion, type UpgradePlan, upgradePlan } from './upgrade/upgrade-plan.ts'

/** Versions of control plane and workers after this reconcile, with the facts and the plan on which they are based. */
export interface VersionDecision {
  readonly facts: UpgradeFacts
  readonly plan: UpgradePlan
  readonly controlPlane: ControlPlaneVersion
  readonly workers: readonly WorkerVersion[]
  readonly pools: readonly WorkerVersion[]
}

/** Decides the versions of control plane and workers after this reconcile, and calls the hooks on which the decision depends. */
export async function decideVersions(
  scope: TopologyScope,
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
): Promise<VersionDecision> {
  const plan = await planOf(scope, cluster, blueprint, current)
  scope.plan = plan
  const responses = new Map<UpgradeHook, 'proceed' | 'blocked'>()
  for (;;) {
    const facts = upgradeFacts(scope.cluster, cluster, current, plan, responses)
    const controlPlane = await withErrorContext(ErrorPrefix, async () => withTerminalErrors(() => controlPlaneVersion(facts)))
    if (controlPlane.kind === 'version') {
      const concurrency = upgradeConcurrency(cluster)
      const { machineDeployments = [], machinePools = [] } = blueprint.topology.workers ?? {}
      const workers = withTerminalErrors(() =>
        workerVersions(facts, controlPlane, workerTopologies(machineDeployments, current.machineDeployments), { concurrency }),
      )
      const pools = withTerminalErrors(() =>
        workerVersions(facts, controlPlane, workerTopologies(machinePools, current.machinePools), {
          concurrency,
          kind: 'MachinePool',
        }),
      )
      scope.upgrade = {
        controlPlaneKind: (current.controlPlane?.kind ?? blueprint.controlPlane.template.kind).kind,
        controlPlane,
        plan,
        workers: withObjectNames(workers, current.machineDeployments),
        pools: withObjectNames(pools, current.machinePools),
      }
      return { facts, plan, controlPlane, workers, pools }
    }
    const { hook } = controlPlane
    const result = await withErrorContext(ErrorPrefix, () => callUpgradeHook(scope, hook, facts))
    // The upgrade has begun once a handler of BeforeClusterUpgrade has allowed it or, without such a handler, once BeforeControlPlaneUpgrade
    // blocks or fails. The pending hook AfterClusterUpgrade records this, so that BeforeClusterUpgrade is not called again. If no hook call
    // has recorded it, `reconcile.ts` adds the pending hook before it writes the next version of the control plane.
    const hasBegun =
      (hook === 'BeforeClusterUpgrade' && result.kind === 'proceed' && result.called) ||
      (hook === 'BeforeControlPlaneUpgrade' && result.kind !== 'proceed')
    if (hasBegun) await scope.change({ add: ['AfterClusterUpgrade'] })
    const proceeds = await withErrorContext(ErrorPrefix, async () => scope.recordResult(result))
    responses.set(hook, proceeds ? 'proceed' : 'blocked')
    if (proceeds && isStepHook(hook)) await scope.change({ remove: [hook] })
  }
}

/** Adds the names of the objects, for messages. */
const withObjectNames = (versions: readonly WorkerVersion[], objects: CurrentWorkers) =>
  versions.map((version) => ({ ...version, objectName: objects.get(version.name)?.object.metadata.name ?? version.name }))

type CurrentWorkers = CurrentState['machineDeployments'] | CurrentState['machinePools']

/**
 * Upstream's error prefix: upstream calls the hooks of an upgrade, except AfterClusterUpgrade, while it computes the version of the control
 * plane.
 */
const ErrorPrefix = 'failed to compute ControlPlane: failed to compute version of ControlPlane'

/**
 * Calls a hook of an upgrade. Annotations of the Cluster can block BeforeClusterUpgrade without a call; as upstream, only if there is a
 * runtime client.
 */
export async function callUpgradeHook(
  scope: TopologyScope,
  hook: UpgradeHook,
  { controlPlane, lowestWorker, desired, plan }: UpgradeFacts,
): Promise<HookResult> {
  const { hooks, runtime } = scope.memory
  // This copy of the Cluster includes the pending hooks that this reconcile has written.
  const { context, cluster } = scope
  const version = controlPlane?.version ?? desired
  const steps = {
    ...(plan.controlPlane.length > 0 ? { controlPlaneUpgrades: plan.controlPlane.map((step) => ({ version: step })) } : {}),
    ...(plan.workers.length > 0 ? { workersUpgrades: plan.workers.map((step) => ({ version: step })) } : {}),
  }
  switch (hook) {
    case 'BeforeClusterUpgrade': {
      const blockingAnnotation = runtime && blockedByAnnotation(cluster)
      if (blockingAnnotation) return { kind: 'blocked', ...blockingAnnotation }
      const versions = { fromKubernetesVersion: version, toKubernetesVersion: desired }
      return hooks.call(BeforeClusterUpgrade, cluster, { ...versions, ...steps }, context)
    }
    case 'BeforeControlPlaneUpgrade': {
      const versions = { fromKubernetesVersion: version, toKubernetesVersion: plan.controlPlane[0] ?? desired }
      return hooks.call(BeforeControlPlaneUpgrade, cluster, { ...versions, ...steps }, context)
    }
    case 'BeforeWorkersUpgrade': {
      const versions = { fromKubernetesVersion: lowestWorker ?? '', toKubernetesVersion: version }
      return hooks.call(BeforeWorkersUpgrade, cluster, { ...versions, ...steps }, context)
    }
    case 'AfterWorkersUpgrade':
      return hooks.call(AfterWorkersUpgrade, cluster, { kubernetesVersion: version, ...steps }, context)
    case 'AfterControlPlaneUpgrade':
      return hooks.call(AfterControlPlaneUpgrade, cluster, { kubernetesVersion: version, ...steps }, context)
    case 'AfterClusterUpgrade':
      return hooks.call(AfterClusterUpgrade, cluster, { kubernetesVersion: desired }, context)
  }
}

const isStepHook = (hook: UpgradeHook): boolean => (stepHooks as readonly string[]).includes(hook)

/**
 * Returns the steps of the upgrade. If the class refers to an extension for this, the extension plans the steps; it is called only when an
 * upgrade is due.
 */
async function planOf(
  scope: TopologyScope,
  cluster: Cluster,
  { class: clusterClass }: Blueprint,
  current: CurrentState,
): Promise<UpgradePlan> {
  const currentVersions = { ...topologyVersions(cluster, current), known: clusterClass.spec.kubernetesVersions ?? [] }
  const handler = clusterClass.spec.upgrade?.external?.generateUpgradePlanExtension
  if (!handler || !isUpgradeDue(currentVersions)) return withTerminalErrors(() => upgradePlan(currentVersions))
  if (!scope.memory.runtime)
    throw new TerminalError(
      `can not use GenerateUpgradePlan extension ${JSON.stringify(handler)} if RuntimeSDK feature flag is disabled`,
    )
  const extensionPlan = await withErrorContext('failed to get upgrade plan from extension', async () => {
    const result = await scope.memory.hooks.upgradePlan(cluster, handler, currentVersions, scope.context)
    return result.kind === 'proceed' ? result.plan : scope.recordFailure(result)
  })
  return withTerminalErrors(() => upgradePlan({ ...currentVersions, extensionPlan }))
}

const topologyVersions = (cluster: Cluster, { controlPlane, machineDeployments, machinePools }: CurrentState) => ({
  desired: cluster.spec.topology!.version,
  controlPlane: controlPlane && versionOf(controlPlane),
  workers: [...machineDeployments.values(), ...machinePools.values()].flatMap(
    ({ object }) => object.spec.template.spec.version ?? [],
  ),
})

/** Returns the version in the spec of the control plane. @throws TerminalError when it is missing, for example after a user has removed it */
function versionOf({ object, contract }: NonNullable<CurrentState['controlPlane']>): string {
  const version = readField(object, ControlPlaneContract.version, contract)
  if (version !== undefined) return version
  const path = ControlPlaneContract.version.paths[contract]
  throw new TerminalError(`failed to get the version from control plane spec: path .${path}: field not found`)
}

function upgradeFacts(
  latestCluster: Cluster,
  cluster: Cluster,
  current: CurrentState,
  plan: UpgradePlan,
  responses: UpgradeFacts['responses'],
): UpgradeFacts {
  const { controlPlane, machineDeployments, machinePools } = current
  const { desired, controlPlane: version = '', workers } = topologyVersions(cluster, current)
  return {
    desired,
    plan,
    controlPlane: controlPlane && {
      version,
      provisioning: isProvisioning(controlPlane.object, controlPlane.contract),
      upgrading: isUpgrading(controlPlane.object, controlPlane.contract),
    },
    lowestWorker: lowestVersion(workers, version),
    anyWorkerUpgrading: [...machineDeployments.values(), ...machinePools.values()].some(({ upgrading }) => upgrading),
    pending: pendingHooks(latestCluster),
    step: latestCluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
    responses,
  }
}

/** Returns the workers of the topology, then those that were removed from it during their upgrade. */
const workerTopologies = (
  topologies: readonly (MachineDeploymentTopology | MachinePoolTopology)[],
  objects: CurrentWorkers,
): WorkerTopology[] => [
  ...topologies.map(({ name, metadata }) => {
    const current = objects.get(name)
    return {
      name,
      current: current?.object.spec.template.spec.version,
      upgrading: current?.upgrading ?? false,
      defer: metadata?.annotations?.[ClusterTopologyDeferUpgradeAnnotation] !== undefined,
      hold: metadata?.annotations?.[ClusterTopologyHoldUpgradeSequenceAnnotation] !== undefined,
    }
  }),
  ...[...objects]
    .filter(([name, { upgrading }]) => upgrading && !topologies.some((topology) => topology.name === name))
    .map(([name, { object }]) => ({
      name,
      current: object.spec.template.spec.version,
      upgrading: true,
      removed: true,
    })),
]

/**
 * Returns how many MachineDeployments, and how many MachinePools, may upgrade concurrently. Returns 1 without the annotation, and for a value
 * that is not a positive integer. Admission rejects such values.
 */
function upgradeConcurrency({ metadata }: Cluster): number {
  const concurrency = Number(metadata.annotations?.[ClusterTopologyUpgradeConcurrencyAnnotation] ?? 1)
  return Number.isInteger(concurrency) && concurrency >= 1 ? concurrency : 1
}
