/**
 * Computes the labels, annotations and taints to copy from a Machine to its Node. Pure. Annotations of the Node record what was
 * copied, so that only copied metadata and taints are removed when the Machine no longer has them. Upstream:
 * core/reconcilers/machine/machine_controller_noderef.go, v1.14.
 */
import {
  AnnotationsFromMachineAnnotation,
  ClusterNameAnnotation,
  ClusterNamespaceAnnotation,
  InterruptibleLabel,
  LabelsFromMachineAnnotation,
  MachineAnnotation,
  ManagedNodeLabelDomain,
  NodeOutdatedRevisionTaint,
  NodeRestrictionLabelDomain,
  NodeRoleLabelPrefix,
  NodeUninitializedTaint,
  OwnerKindAnnotation,
  OwnerNameAnnotation,
  RevisionAnnotation,
  TaintsFromMachineAnnotation,
} from '@capstan/api'
import { controllerOf, equal, type Node, parseGoInteger, withErrorContext } from '@capstan/kube'
import type { MachineScope, MachineSettings } from './scope.ts'

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number]
type Texts = Readonly<Record<string, string>>

export interface NodePatchInput extends Pick<MachineScope, 'machine' | 'cluster' | 'machineSet' | 'machineDeployment'> {
  readonly isInterruptible: boolean
  readonly settings: Pick<MachineSettings, 'syncLabels' | 'syncAnnotations'>
}

export interface NodePatch {
  readonly body: { metadata: Record<string, unknown>; spec?: { taints: Taint[] | null } }
  readonly becomesInterruptible: boolean
}

/** Returns the merge patch for the Node; `undefined` when there is no difference. @throws Error when a revision is not a number */
export function nodePatch(node: Node, input: NodePatchInput): NodePatch | undefined {
  const { labels: nodeLabels = {}, annotations: nodeAnnotations = {} } = node.metadata
  const labels = wantedLabels(input)
  const copied = copiedAnnotations(input)
  const taints = wantedTaints(node, input)

  const labelChanges = changes(nodeLabels, labels, namesIn(nodeAnnotations[LabelsFromMachineAnnotation]))
  const annotations: Texts = {
    ...copied,
    ...identityAnnotations(input),
    [LabelsFromMachineAnnotation]: Object.keys(labels).sort().join(','),
    [AnnotationsFromMachineAnnotation]: Object.keys(copied).sort().join(','),
    [TaintsFromMachineAnnotation]: taints.tracked.join(','),
  }
  const earlier = [...namesIn(nodeAnnotations[AnnotationsFromMachineAnnotation]), OwnerKindAnnotation, OwnerNameAnnotation]
  const annotationChanges = changes(nodeAnnotations, annotations, earlier)
  const metadata = {
    ...(isEmpty(labelChanges) ? {} : { labels: labelChanges }),
    ...(isEmpty(annotationChanges) ? {} : { annotations: annotationChanges }),
  }
  const taintsChange = !equal(node.spec?.taints ?? [], taints.taints)
  if (isEmpty(metadata) && !taintsChange) return undefined
  return {
    body: { metadata, ...(taintsChange ? { spec: { taints: taints.taints.length > 0 ? taints.taints : null } } : {}) },
    becomesInterruptible: labelChanges[InterruptibleLabel] === '',
  }
}

function wantedLabels({ machine, isInterruptible, settings }: NodePatchInput): Texts {
  const domains = [NodeRestrictionLabelDomain, ManagedNodeLabelDomain]
  return {
    ...pick(machine.metadata.labels, (key) => {
      const domain = domainOf(key)
      return (
        domain === NodeRoleLabelPrefix || isWithin(domain, domains) || settings.syncLabels.some((pattern) => pattern.test(key))
      )
    }),
    ...(isInterruptible ? { [InterruptibleLabel]: '' } : {}),
  }
}

const copiedAnnotations = ({ machine, settings }: NodePatchInput): Texts =>
  pick(
    machine.metadata.annotations,
    (key) => isWithin(domainOf(key), [ManagedNodeLabelDomain]) || settings.syncAnnotations.some((pattern) => pattern.test(key)),
  )

function identityAnnotations({ machine }: NodePatchInput): Texts {
  const controller = controllerOf(machine)
  return {
    [ClusterNameAnnotation]: machine.spec.clusterName,
    [ClusterNamespaceAnnotation]: machine.metadata.namespace!,
    [MachineAnnotation]: machine.metadata.name,
    ...(controller ? { [OwnerKindAnnotation]: controller.kind, [OwnerNameAnnotation]: controller.name } : {}),
  }
}

/**
 * Returns the desired taints: the remaining taints of the Node in their order, then new ones. `tracked` are the taints of the Machine with
 * propagation Always; they are removed from the Node when the Machine no longer has them.
 */
function wantedTaints(node: Node, input: NodePatchInput): { taints: Taint[]; tracked: string[] } {
  const annotation = node.metadata.annotations?.[TaintsFromMachineAnnotation]
  const specified = input.machine.spec.taints ?? []
  const always = specified.filter(({ propagation }) => propagation === 'Always')
  // As upstream, the annotation marks the Node as initialized, even when it names no taint.
  const isInitialized = annotation !== undefined
  const stillSpecified = new Set(specified.map(taintText))
  const removed = new Set(namesIn(annotation).filter((text) => !stillSpecified.has(text)))

  const machineIsOutdated = isOutdated(node, input)
  const taints = (node.spec?.taints ?? []).filter(
    (taint) =>
      !removed.has(taintText(taint)) &&
      !sameTaint(taint, NodeUninitializedTaint) &&
      (machineIsOutdated || !sameTaint(taint, NodeOutdatedRevisionTaint)),
  )
  for (const { key, effect, value } of isInitialized ? always : specified) {
    const index = taints.findIndex((taint) => sameTaint(taint, { key, effect }))
    const desired: Taint = { key, effect, ...(value === undefined ? {} : { value }) }
    if (index < 0) taints.push(desired)
    else if (taints[index]!.value !== value) taints[index] = desired
  }
  const isMarked = taints.some((taint) => sameTaint(taint, NodeOutdatedRevisionTaint))
  if (machineIsOutdated && !isMarked) taints.push({ ...NodeOutdatedRevisionTaint })
  return { taints, tracked: always.map(taintText).sort() }
}

/**
 * Whether the Machine is outdated: its MachineSet has an older revision than its MachineDeployment. An object without annotation,
 * such as an adopted MachineSet, has revision 0. With an empty revision, which a paused MachineDeployment may have, returns false; upstream
 * returns an error.
 * @throws Error when a revision is not a number
 */
function isOutdated(node: Node, { machineSet, machineDeployment }: NodePatchInput): boolean {
  if (!machineSet || !machineDeployment) return false
  const [own, newest] = [machineSet, machineDeployment].map(({ metadata }) => metadata.annotations?.[RevisionAnnotation] ?? '0')
  if (own === '' || newest === '') return false
  return withErrorContext(
    `failed to check if Node ${node.metadata.name} is outdated`,
    () => parseGoInteger(own!) < parseGoInteger(newest!),
  )
}

/** Returns the changes from `current` to `desired`; `null` removes a key that was copied earlier and is no longer desired. */
function changes(current: Texts, desired: Texts, earlier: readonly string[]): Record<string, string | null> {
  const changed: Record<string, string | null> = {}
  for (const [key, value] of Object.entries(desired)) if (current[key] !== value) changed[key] = value
  for (const key of earlier) if (current[key] !== undefined && desired[key] === undefined) changed[key] = null
  return changed
}

const namesIn = (annotation: string | undefined): string[] => (annotation ? annotation.split(',') : [])
const taintText = ({ key, effect }: { key: string; effect: string }): string => `${key}:${effect}`
const sameTaint = (a: Pick<Taint, 'key' | 'effect'>, b: Pick<Taint, 'key' | 'effect'>): boolean => taintText(a) === taintText(b)
/** Returns the part before the slash. As upstream, a key without slash counts as a domain. */
const domainOf = (key: string): string => key.split('/', 1)[0]!
const isWithin = (domain: string, domains: readonly string[]): boolean =>
  domains.some((parent) => domain === parent || domain.endsWith(`.${parent}`))
const isEmpty = (object: object): boolean => Object.keys(object).length === 0
const pick = (texts: Texts | undefined, isCopied: (key: string) => boolean): Texts =>
  Object.fromEntries(Object.entries(texts ?? {}).filter(([key]) => isCopied(key)))
