import { MachineDeployment } from '@capstan/api'
import { type Index, type MapFunction, proceed, type ReconcileContext } from '@capstan/controller'
import { keyOf } from '@capstan/kube'
import type { ContractRef } from '../external/get.ts'
import { referredText } from '../external/reference.ts'
import { observeTemplate, templatesOf } from '../machineset/templates.ts'
import type { MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'

/** Reads the templates. A missing template is reported, and prevents only the creation of new sets and in-place updates. */
export const templates: MachineDeploymentPhase = async (scope, io) => {
  const { bootstrap, infrastructureRef } = scope.machineDeployment.spec.template.spec
  scope.infrastructureTemplate = await readTemplate(scope, io, infrastructureRef)
  scope.bootstrapTemplate = await readTemplate(scope, io, bootstrap.configRef)
  return proceed()
}

const readTemplate = (
  { machineDeployment, cluster }: MachineDeploymentScope,
  io: ReconcileContext,
  ref: ContractRef | undefined,
) => observeTemplate(io, { ref, cluster, namespace: machineDeployment.metadata.namespace!, map: machineDeploymentsOfTemplate })

const byTemplate: Index<MachineDeployment> = {
  name: 'MachineDeployment by template',
  kind: MachineDeployment,
  values: templatesOf,
}

const machineDeploymentsOfTemplate: MapFunction = (object, cache) => cache.byIndex(byTemplate, referredText(object)).map(keyOf)
