/**
 * Computes the desired MachineSets of a MachineDeployment. Pure, except that `machineSetName` takes random numbers. Upstream:
 * machinedeployment_rollout_planner.go and mdutil, v1.14.
 */
import {
  ClusterNameLabel,
  ConversionDataAnnotation,
  DesiredReplicasAnnotation,
  DisableMachineCreateAnnotation,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineDeploymentTopologyFinalizer,
  MachineDeploymentUniqueLabel,
  MachineSet,
  MachineSetFinalizer,
  MachineSetTopologyFinalizer,
  type MachineSpec,
  MaxReplicasAnnotation,
  RevisionAnnotation,
  RevisionHistoryAnnotation,
  fnv32a,
} from '@capstan/api'
import {
  applyMergePatch,
  controllerReference,
  diffMerge,
  draft,
  hasFinalizer,
  isDeleting,
  type Input,
  type Json,
  keyOf,
  keyText,
  largest,
  parseGoInteger,
  type Random,
  typeMeta,
  withErrorContext,
} from '@capstan/kube'
import { metadataPatch } from '../managed-metadata.ts'
import { simpleName } from '../naming/generated-name.ts'
import { fenceposts } from './fenceposts.ts'
import type { MoveAnnotations } from './in-place-moves.ts'
import { MachineDeploymentManager } from './scope.ts'

/** Role of a set in its deployment in this reconcile. */
export interface SetRole {
  readonly isCurrent: boolean
  readonly replicas: number
  readonly revision: Revision
  /** Annotations about Machines that move between sets. */
  readonly moves?: MoveAnnotations
}

/** The texts of the revision annotations of a set. */
export interface Revision {
  readonly current?: string
  /** Earlier revisions of the set, separated by commas. */
  readonly history?: string
}

/**
 * Returns the revision of the current set, which need not exist yet: the greatest revision of the old sets plus one, or the revision that
 * the current set has, if that is greater. When its revision changes, the previous one is added to its history. Old sets whose revision is
 * not an integer do not count.
 * @throws Error when the revision of the current set is not an integer
 */
export function currentRevision(
  current: MachineSet | undefined,
  old: readonly MachineSet[],
): Revision & { readonly current: string } {
  const next = Math.max(0, largest(old.map(numberOfOld))) + 1
  const revision = current ? revisionOf(current) : {}
  const before = revision.current
  if (before === undefined) return { ...revision, current: String(next) }
  const problem = `failed to parse current revision on MachineSet ${keyText(keyOf(current!))}`
  const number = withErrorContext(problem, () => parseGoInteger(before))
  if (number > next || before === String(next)) return { ...revision, current: before }
  // As upstream, a history whose first revision is empty is replaced.
  const { history = '' } = revision
  return { current: String(next), history: history === '' || history.startsWith(',') ? before : `${history},${before}` }
}

function numberOfOld(set: MachineSet): number {
  try {
    return parseGoInteger(revisionOf(set).current ?? '0')
  } catch {
    return 0
  }
}

export const revisionOf = ({ metadata: { annotations = {} } }: MachineSet): Revision => ({
  ...(RevisionAnnotation in annotations ? { current: annotations[RevisionAnnotation] } : {}),
  ...(RevisionHistoryAnnotation in annotations ? { history: annotations[RevisionHistoryAnnotation] } : {}),
})

/** Returns the name of a new set. */
export const machineSetName = ({ metadata }: MachineDeployment, random: Random): string => simpleName(`${metadata.name}-`, random)

/** Returns a set to create. Its name and the hash in its labels end in the same random characters. */
export function newMachineSet(deployment: MachineDeployment, name: string, role: SetRole): Input<MachineSet> {
  const { metadata, spec } = deployment
  const hash = `${fnv32a(JSON.stringify(spec.template))}-${name.slice(-5)}`
  // `draft` drops undefined members, as the type requires.
  return draft({
    metadata: {
      name,
      namespace: metadata.namespace!,
      ...wantedMetadata(deployment, hash, role),
      ownerReferences: [controllerReference(deployment, MachineDeployment)],
      // Without the topology controllers, which add their finalizer to the deployment, no controller would remove theirs from the set.
      finalizers: hasFinalizer(deployment, MachineDeploymentTopologyFinalizer)
        ? [MachineSetFinalizer, MachineSetTopologyFinalizer]
        : [MachineSetFinalizer],
    },
    spec: {
      clusterName: spec.clusterName,
      ...inPlaceFields(deployment, spec.template.spec, hash, role.replicas),
    },
  }) as Input<MachineSet>
}

/** Returns the desired set: the existing set with its patch applied, or a new set with the given name. */
export function desiredMachineSet(
  deployment: MachineDeployment,
  set: MachineSet | undefined,
  name: string,
  role: SetRole,
): MachineSet {
  if (!set) {
    const { apiVersion, kind } = typeMeta(MachineSet)
    return { apiVersion, kind, ...newMachineSet(deployment, name, role) } as MachineSet
  }
  const patch = machineSetPatch(deployment, set, role)
  return patch ? (applyMergePatch(set as unknown as Json, patch as Json) as unknown as MachineSet) : set
}

/**
 * Returns the fields that the deployment sets on an existing set by server-side apply.
 * @throws Error when the set lacks the label with its hash
 */
export function machineSetIntent(deployment: MachineDeployment, set: MachineSet, role: SetRole): Input<MachineSet> {
  const hash = hashOf(set)
  const { namespace, name, finalizers = [] } = set.metadata
  return draft({
    metadata: {
      name,
      namespace: namespace!,
      ...wantedMetadata(deployment, hash, role),
      ownerReferences: [controllerReference(deployment, MachineDeployment)],
      // As upstream, keeps all existing finalizers, also those of other writers.
      finalizers: finalizers.includes(MachineSetFinalizer) || isDeleting(set) ? finalizers : [...finalizers, MachineSetFinalizer],
    },
    spec: {
      clusterName: set.spec.clusterName,
      ...inPlaceFields(deployment, set.spec.template.spec, hash, role.replicas),
    },
  }) as Input<MachineSet>
}

/**
 * Returns the hash that distinguishes Machines of the set from those of other sets.
 * @throws Error when the set lacks the label with its hash
 */
export function hashOf({ metadata }: MachineSet): string {
  const { namespace, name, labels } = metadata
  const hash = labels?.[MachineDeploymentUniqueLabel]
  if (hash === undefined) {
    throw new Error(`failed to compute desired MachineSet ${namespace}/${name}: label ${MachineDeploymentUniqueLabel} is missing`)
  }
  return hash
}

/**
 * Returns the merge patch for an existing set; `undefined` when there is no difference.
 * @throws Error when the set lacks the label with its hash
 */
function machineSetPatch(deployment: MachineDeployment, set: MachineSet, role: SetRole): object | undefined {
  const hash = hashOf(set)
  const metadata = metadataPatch(set, MachineDeploymentManager, wantedMetadata(deployment, hash, role))
  const spec = diffMerge(set.spec, { ...set.spec, ...inPlaceFields(deployment, set.spec.template.spec, hash, role.replicas) })
  if (!metadata && !spec) return undefined
  return { ...(metadata ? { metadata } : {}), ...(spec ? { spec } : {}) }
}

function wantedMetadata(deployment: MachineDeployment, hash: string, { isCurrent, revision, moves }: SetRole) {
  const { metadata, spec } = deployment
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !OwnAnnotations.has(key))
  const createsNoMachines = !isCurrent && spec.rollout?.strategy?.type === 'OnDelete'
  return {
    labels: {
      ...machineLabels(deployment, hash),
      [MachineDeploymentNameLabel]: metadata.name,
    },
    annotations: {
      ...Object.fromEntries(annotations),
      ...scaleAnnotations(deployment),
      ...(revision.current === undefined ? {} : { [RevisionAnnotation]: revision.current }),
      ...(revision.history === undefined ? {} : { [RevisionHistoryAnnotation]: revision.history }),
      [DisableMachineCreateAnnotation]: createsNoMachines ? 'true' : 'false',
      ...moves,
    },
  }
}

/** Returns annotations with the replica counts for which the sets are scaled. Proportional scaling uses them. */
function scaleAnnotations(deployment: MachineDeployment): { [key: string]: string } {
  const { replicas = 0 } = deployment.spec
  return {
    [DesiredReplicasAnnotation]: String(replicas),
    [MaxReplicasAnnotation]: String(replicas + fenceposts(deployment).maxSurge),
  }
}

/** Annotations of the deployment that are not copied to its sets. */
const OwnAnnotations: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  RevisionAnnotation,
  RevisionHistoryAnnotation,
  DesiredReplicasAnnotation,
  MaxReplicasAnnotation,
  ConversionDataAnnotation,
])

const machineLabels = ({ spec }: MachineDeployment, hash: string) => ({
  ...spec.template.metadata?.labels,
  [ClusterNameLabel]: spec.clusterName,
  [MachineDeploymentUniqueLabel]: hash,
})

/**
 * Returns the replicas of a set, the fields that all sets take from the deployment, and the other fields of the Machine spec unchanged from
 * `createdSpec`: version, references and failure domain of a set never change.
 */
function inPlaceFields(deployment: MachineDeployment, createdSpec: MachineSpec, hash: string, replicas: number) {
  const { clusterName, deletion, machineNaming, selector, template } = deployment.spec
  const { minReadySeconds, readinessGates, taints, deletion: nodeDeletion } = template.spec
  const labels = machineLabels(deployment, hash)
  const { annotations = {} } = template.metadata ?? {}
  return {
    replicas,
    selector: {
      ...selector,
      matchLabels: { ...selector.matchLabels, [ClusterNameLabel]: clusterName, [MachineDeploymentUniqueLabel]: hash },
    },
    deletion: deletion?.order === undefined ? undefined : { order: deletion.order },
    machineNaming,
    template: {
      // Upstream leaves out an empty map, by `omitempty` of its Go type.
      metadata: { labels, annotations: isEmpty(annotations) ? undefined : annotations },
      spec: { ...createdSpec, minReadySeconds, readinessGates, taints, deletion: nodeDeletion },
    },
  }
}

const isEmpty = (map: object): boolean => Object.keys(map).length === 0
