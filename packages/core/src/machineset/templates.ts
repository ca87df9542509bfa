import { Cluster, type MachineDeployment, MachineSet, RevisionAnnotation, TemplateSuffix } from '@capstan/api'
import type { Index, MapFunction, Outcome, ReconcileContext } from '@capstan/controller'
import { ensureOwner, proceed } from '@capstan/controller'
import { isDeleting, keyOf, messageOf, ownerReference, TerminalError } from '@capstan/kube'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { externalOf, type Observed, toObserved } from '../external/observed.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { MachineSetPhase, MachineSetScope } from './scope.ts'

/** Reads the template of bootstrap configs. */
export const bootstrapTemplate: MachineSetPhase = (scope, io) =>
  readTemplate(scope, io, scope.machineSet.spec.template.spec.bootstrap.configRef, (observed) => {
    scope.bootstrapTemplate = observed
  })

/** Reads the template of infrastructure machines. */
export const infrastructureTemplate: MachineSetPhase = (scope, io) =>
  readTemplate(scope, io, scope.machineSet.spec.template.spec.infrastructureRef, (observed) => {
    scope.infrastructureTemplate = observed
  })

/**
 * Reads a template, and makes the Cluster its owner. Records the template first: as upstream, Machines are created even if the owner
 * reference cannot be written.
 */
async function readTemplate(
  scope: MachineSetScope,
  io: ReconcileContext,
  ref: ContractRef | undefined,
  record: (observed: Observed) => void,
): Promise<Outcome> {
  const { machineSet, cluster } = scope
  let template: Observed = { state: 'none' }
  try {
    if (ref) template = toObserved(await observeExternal(io, ref, machineSet.metadata.namespace!, machineSetsOfTemplate))
    record(template)
  } catch (error) {
    record({ state: 'unread', error })
    throw error
  }
  // Objects whose kind is not a template are copied too, but the Cluster does not become their owner.
  if (ref && isTemplate(ref)) await ensureTemplateOwner(template, cluster, io)
  return outcome(scope, template, ref)
}

function outcome(scope: MachineSetScope, template: Observed, ref: ContractRef | undefined): Outcome {
  if (template.state !== 'missing' || !ref || !isTemplate(ref)) return proceed()
  if (isDeleting(scope.machineSet) || isOldRevision(scope)) return proceed()
  throw new TerminalError(missingText(scope.machineSet, ref))
}

/** Error text for a template or control plane that does not exist. When it is created, the watch on its kind triggers a reconcile. */
export const missingText = ({ metadata }: MachineSet, { apiGroup, kind, name }: ContractRef): string =>
  `failed to retrieve ${kind} ${metadata.namespace}/${name}: ${kind}.${apiGroup} ${JSON.stringify(name)} not found`

/** Returns why a template cannot be copied; `undefined` when it was read, or when there is no reference. */
export function unusableText(machineSet: MachineSet, ref: ContractRef, template: Observed): string | undefined {
  if (template.state === 'unread') return messageOf(template.error)
  return template.state === 'missing' ? missingText(machineSet, ref) : undefined
}

/** Whether the set has another revision than its MachineDeployment. A missing template of such an old set is no error. */
export function isOldRevision({
  machineSet,
  machineDeployment,
}: Pick<MachineSetScope, 'machineSet' | 'machineDeployment'>): boolean {
  const revision = machineSet.metadata.annotations?.[RevisionAnnotation]
  return machineDeployment !== undefined && revision !== machineDeployment.metadata.annotations?.[RevisionAnnotation]
}

/**
 * Makes the Cluster an owner of a template, so that both are moved and deleted together. Does so also while the Cluster is being deleted:
 * the garbage collector then deletes the template.
 */
export async function ensureTemplateOwner(template: Observed, cluster: Cluster, io: ReconcileContext): Promise<void> {
  const external = externalOf(template)
  if (external) await ensureOwner(io, external.kind, external.object, ownerReference(cluster, Cluster))
}

/** Whether the kind of the referenced object is a template, by the suffix of its name. */
export const isTemplate = ({ kind }: ContractRef): boolean => kind.endsWith(TemplateSuffix)

/** Returns index values for the templates that a set or deployment refers to. */
export function templatesOf({ metadata, spec }: MachineSet | MachineDeployment): string[] {
  const { infrastructureRef, bootstrap } = spec.template.spec
  return [infrastructureRef, bootstrap.configRef].flatMap((ref) => (ref ? referenceText(ref, metadata.namespace) : []))
}

/** MachineSets by the templates that they refer to. */
export const MachineSetsByTemplate: Index<MachineSet> = { name: 'MachineSet by template', kind: MachineSet, values: templatesOf }

const machineSetsOfTemplate: MapFunction = (object, cache) =>
  cache.byIndex(MachineSetsByTemplate, referredText(object)).map(keyOf)
