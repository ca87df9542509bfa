import { Cluster, type MachineDeployment, MachineSet, RevisionAnnotation, TemplateSuffix } from '@capstan/api'
import type { Index, MapFunction, Outcome, ReconcileContext } from '@capstan/controller'
import { ensureOwner, proceed } from '@capstan/controller'
import { isDeleting, keyOf, ownerReference, TerminalError } from '@capstan/kube'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { type Observed, toObserved } from '../external/observed.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { MachineSetPhase, MachineSetScope } from './scope.ts'

/** Reads the template of bootstrap configs. */
export const bootstrapTemplate: MachineSetPhase = async (scope, io) => {
  scope.bootstrapTemplate = await readTemplate(scope, io, scope.machineSet.spec.template.spec.bootstrap.configRef)
  return outcome(scope, scope.bootstrapTemplate, scope.machineSet.spec.template.spec.bootstrap.configRef)
}

/** Reads the template of infrastructure machines. */
export const infrastructureTemplate: MachineSetPhase = async (scope, io) => {
  scope.infrastructureTemplate = await readTemplate(scope, io, scope.machineSet.spec.template.spec.infrastructureRef)
  return outcome(scope, scope.infrastructureTemplate, scope.machineSet.spec.template.spec.infrastructureRef)
}

async function readTemplate({ machineSet, cluster }: MachineSetScope, io: ReconcileContext, ref: ContractRef | undefined) {
  const namespace = machineSet.metadata.namespace!
  // Objects whose kind is not a template are copied too, but the Cluster does not become their owner.
  if (ref && !isTemplate(ref)) return toObserved(await observeExternal(io, ref, namespace, machineSetsOfTemplate))
  return observeTemplate(io, { ref, cluster, namespace, map: machineSetsOfTemplate })
}

function outcome(scope: MachineSetScope, template: Observed, ref: ContractRef | undefined): Outcome {
  if (template.state !== 'missing' || !ref || !isTemplate(ref)) return proceed()
  if (isDeleting(scope.machineSet) || isOldRevision(scope)) return proceed()
  throw new TerminalError(missingText(scope.machineSet, ref))
}

/** The error for a template that does not exist. Its watch triggers the next reconcile. */
export const missingText = ({ metadata }: MachineSet, { apiGroup, kind, name }: ContractRef): string =>
  `failed to retrieve ${kind} ${metadata.namespace}/${name}: ${kind}.${apiGroup} ${JSON.stringify(name)} not found`

/** Whether the set has another revision than its MachineDeployment. A missing template of such an old set is no error. */
export function isOldRevision({
  machineSet,
  machineDeployment,
}: Pick<MachineSetScope, 'machineSet' | 'machineDeployment'>): boolean {
  const revision = machineSet.metadata.annotations?.[RevisionAnnotation]
  return machineDeployment !== undefined && revision !== machineDeployment.metadata.annotations?.[RevisionAnnotation]
}

/** Reads a template and makes the Cluster its owner, so that both are moved and deleted together. */
export async function observeTemplate(
  io: ReconcileContext,
  options: { ref: ContractRef | undefined; cluster: Cluster; namespace: string; map: MapFunction },
): Promise<Observed> {
  const { ref, cluster, namespace, map } = options
  if (!ref || !isTemplate(ref)) return { state: 'none' }
  const external = await observeExternal(io, ref, namespace, map)
  // Also while the Cluster is being deleted: the garbage collector then deletes the template.
  if (external) await ensureOwner(io, external.kind, external.object, ownerReference(cluster, Cluster))
  return toObserved(external)
}

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
