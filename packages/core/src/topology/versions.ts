/** Decides the versions of a pass, and asks the hooks that have a say in it. */
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
  readField,
  pendingHooks,
} from '@capstan/api'
import type { Blueprint } from './blueprint.ts'
import type { CurrentState } from './current-state.ts'
import { decided, within } from './decided.ts'
import { heldByAnnotation, type HookAnswer } from './lifecycle-hooks.ts'
import type { Pass } from './pass.ts'
import {
  controlPlaneVersion,
  type ControlPlaneVersion,
  type UpgradeFacts,
  type UpgradeHook,
  stepHooks,
  type WorkerVersion,
  workerVersions,
} from './upgrade.ts'
import { isUpgradeDue, lowestVersion, type UpgradePlan, upgradePlan } from './upgrade-plan.ts'

/** Who has which version after this pass. */
export interface VersionDecision {
  readonly facts: UpgradeFacts
  readonly plan: UpgradePlan
  readonly controlPlane: ControlPlaneVersion
  readonly workers: readonly WorkerVersion[]
}

/** Decides who has which version after this pass, and asks the hooks that have a say in it. */
export async function decideVersions(
  pass: Pass,
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
): Promise<VersionDecision> {
  const plan = await planOf(pass, cluster, blueprint, current)
  const answers = new Map<UpgradeHook, 'go' | 'blocked'>()
  for (;;) {
    const facts = upgradeFacts(pass.cluster, cluster, current, plan, answers)
    const controlPlane = await within(computing, async () => decided(() => controlPlaneVersion(facts)))
    if (controlPlane.kind === 'version') {
      const workers = decided(() =>
        workerVersions(facts, controlPlane, workerTopologies(blueprint, current), upgradeConcurrency(cluster)),
      )
      pass.upgrade = {
        controlPlaneKind: (current.controlPlane?.kind ?? blueprint.controlPlane.template.kind).kind,
        controlPlane,
        plan,
        workers: workers.map((worker) => {
          const object = current.machineDeployments.get(worker.name)?.object
          return { ...worker, objectName: object?.metadata.name ?? worker.name }
        }),
      }
      return { facts, plan, controlPlane, workers }
    }
    const { hook } = controlPlane
    const { goes, called } = await within(computing, async () => {
      const answer = await askUpgradeHook(pass, cluster, hook, facts)
      return { goes: pass.passes(answer), called: answer.called }
    })
    answers.set(hook, goes ? 'go' : 'blocked')
    // That the upgrade has begun is also the memory that it was let go, should the next hook hold it up.
    if (hook === 'BeforeClusterUpgrade' && goes && called) await pass.change({ add: ['AfterClusterUpgrade'] })
    if (goes && isStepHook(hook)) await pass.change({ remove: [hook] })
  }
}

/** Hooks of an upgrade are asked where upstream computes the version of the control plane: so do failures say. */
const computing = 'failed to compute ControlPlane: failed to compute version of ControlPlane'

export async function askUpgradeHook(
  pass: Pass,
  cluster: Cluster,
  hook: UpgradeHook,
  { controlPlane, lowestWorker, desired, plan }: UpgradeFacts,
): Promise<HookAnswer> {
  const { hooks } = pass.memory
  const { signal } = pass.context
  const version = controlPlane?.version ?? desired
  const steps = {
    ...(plan.controlPlane.length > 0 ? { controlPlaneUpgrades: plan.controlPlane.map((step) => ({ version: step })) } : {}),
    ...(plan.workers.length > 0 ? { workersUpgrades: plan.workers.map((step) => ({ version: step })) } : {}),
  }
  switch (hook) {
    case 'BeforeClusterUpgrade': {
      const held = heldByAnnotation(cluster)
      if (held) return { kind: 'blocked', ...held }
      const versions = { fromKubernetesVersion: version, toKubernetesVersion: desired }
      return hooks.call(BeforeClusterUpgrade, cluster, { ...versions, ...steps }, signal)
    }
    case 'BeforeControlPlaneUpgrade': {
      const versions = { fromKubernetesVersion: version, toKubernetesVersion: plan.controlPlane[0] ?? desired }
      return hooks.call(BeforeControlPlaneUpgrade, cluster, { ...versions, ...steps }, signal)
    }
    case 'BeforeWorkersUpgrade': {
      const versions = { fromKubernetesVersion: lowestWorker ?? version, toKubernetesVersion: version }
      return hooks.call(BeforeWorkersUpgrade, cluster, { ...versions, ...steps }, signal)
    }
    case 'AfterWorkersUpgrade':
      return hooks.call(AfterWorkersUpgrade, cluster, { kubernetesVersion: version, ...steps }, signal)
    case 'AfterControlPlaneUpgrade':
      return hooks.call(AfterControlPlaneUpgrade, cluster, { kubernetesVersion: version, ...steps }, signal)
    case 'AfterClusterUpgrade':
      return hooks.call(AfterClusterUpgrade, cluster, { kubernetesVersion: desired }, signal)
  }
}

const isStepHook = (hook: UpgradeHook): boolean => (stepHooks as readonly string[]).includes(hook)

/** The steps that the class or its extension gives; an extension is asked only when there is something to upgrade. */
async function planOf(
  pass: Pass,
  cluster: Cluster,
  { class: clusterClass }: Blueprint,
  current: CurrentState,
): Promise<UpgradePlan> {
  const now = { ...versionsNow(cluster, current), known: clusterClass.spec.kubernetesVersions ?? [] }
  const handler = clusterClass.spec.upgrade?.external?.generateUpgradePlanExtension
  if (!handler || !isUpgradeDue(now)) return decided(() => upgradePlan(now))
  const given = await within('failed to get upgrade plan from extension', async () => {
    const answer = await pass.memory.hooks.upgradePlan(cluster, handler, now, pass.context.signal)
    return answer.kind === 'go' ? answer.plan : pass.fails(answer)
  })
  return decided(() => upgradePlan({ ...now, given }))
}

const versionsNow = (cluster: Cluster, { controlPlane, machineDeployments }: CurrentState) => ({
  desired: cluster.spec.topology!.version,
  controlPlane: controlPlane && readField(controlPlane.object, ControlPlaneContract.version, controlPlane.contract),
  workers: [...machineDeployments.values()].flatMap(({ object }) => object.spec.template.spec.version ?? []),
})

function upgradeFacts(
  marked: Cluster,
  cluster: Cluster,
  current: CurrentState,
  plan: UpgradePlan,
  answers: UpgradeFacts['answers'],
): UpgradeFacts {
  const { controlPlane, machineDeployments } = current
  const { desired, controlPlane: version = '', workers } = versionsNow(cluster, current)
  return {
    desired,
    plan,
    controlPlane: controlPlane && {
      version,
      provisioning: isProvisioning(controlPlane.object, controlPlane.contract),
      upgrading: isUpgrading(controlPlane.object, controlPlane.contract),
    },
    lowestWorker: lowestVersion(workers, version),
    anyWorkerUpgrading: [...machineDeployments.values()].some(({ upgrading }) => upgrading),
    pending: pendingHooks(marked),
    step: marked.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
    answers,
  }
}

const workerTopologies = ({ topology }: Blueprint, { machineDeployments }: CurrentState) =>
  (topology.workers?.machineDeployments ?? []).map(({ name, metadata }) => {
    const current = machineDeployments.get(name)
    return {
      name,
      current: current?.object.spec.template.spec.version,
      upgrading: current?.upgrading ?? false,
      defer: metadata?.annotations?.[ClusterTopologyDeferUpgradeAnnotation] !== undefined,
      hold: metadata?.annotations?.[ClusterTopologyHoldUpgradeSequenceAnnotation] !== undefined,
    }
  })

/** How many MachineDeployments may upgrade at once. Admission has refused what is no number. */
function upgradeConcurrency({ metadata }: Cluster): number {
  const given = Number(metadata.annotations?.[ClusterTopologyUpgradeConcurrencyAnnotation] ?? 1)
  return Number.isInteger(given) && given >= 1 ? given : 1
}
