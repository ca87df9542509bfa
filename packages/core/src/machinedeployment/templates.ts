import { MachineDeployment } from '@capstan/api'
import { type Index, type MapFunction, proceed, type ReconcileContext } from '@capstan/controller'
import { keyOf, ownerOfKind } from '@capstan/kube'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { type Observed, toObserved } from '../external/observed.ts'
import { referredText } from '../external/reference.ts'
import { ensureTemplateOwner, isTemplate, MachineSetsByTemplate, templatesOf } from '../machineset/templates.ts'
import type { MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'

/**
 * Reads the templates, and makes the Cluster their owner. A missing template is reported in the status, and prevents only in-place updates
 * and the creation of MachineSets.
 */
export const templates: MachineDeploymentPhase = async (scope, io) => {
  const { bootstrap, infrastructureRef } = scope.machineDeployment.spec.template.spec
  scope.infrastructureTemplate = await readTemplate(scope, io, infrastructureRef)
  scope.bootstrapTemplate = await readTemplate(scope, io, bootstrap.configRef)
  return proceed()
}

async function readTemplate(
  { machineDeployment, cluster }: MachineDeploymentScope,
  io: ReconcileContext,
  ref: ContractRef | undefined,
): Promise<Observed> {
  if (!ref || !isTemplate(ref)) return { state: 'none' }
  const { namespace } = machineDeployment.metadata
  const template = toObserved(await observeExternal(io, ref, namespace!, machineDeploymentsOfTemplate))
  await ensureTemplateOwner(template, cluster, io)
  return template
}

const byTemplate: Index<MachineDeployment> = {
  name: 'MachineDeployment by template',
  kind: MachineDeployment,
  values: templatesOf,
}

/**
 * Maps a template to the MachineDeployments that refer to it, and to those with a MachineSet that refers to it, because a missing template
 * of an old MachineSet blocks an in-place update. One function returns both, because `watch` of a `ReconcileContext` uses only the first map
 * function for a kind.
 */
export const machineDeploymentsOfTemplate: MapFunction = (object, cache) => {
  const template = referredText(object)
  const ofSets = cache.byIndex(MachineSetsByTemplate, template).flatMap((set) => {
    const owner = ownerOfKind(set, MachineDeployment)
    return owner ? [{ namespace: set.metadata.namespace!, name: owner.name }] : []
  })
  return [...cache.byIndex(byTemplate, template).map(keyOf), ...ofSets]
}
