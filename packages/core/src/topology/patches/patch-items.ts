/** The templates of a topology to which the patches of the class are applied. Pure. Upstream: core/reconcilers/topology/cluster/patches/template.go, v1.14. */
import type { ContractVersion, HolderReference, VariableOverrides } from '@capstan/api'
import {
  Cluster,
  ControlPlaneContract,
  InfraMachineTemplateContract,
  MachineDeployment,
  MachinePool,
  readField,
  writeField,
} from '@capstan/api'
import { apiVersionOf, draft, type JsonObject, type UnknownObject } from '@capstan/kube'
import type { External } from '../../external/get.ts'
import { type Blueprint, blueprintOf, poolBlueprintOf } from '../blueprint.ts'
import { controlPlaneBuiltins, machineDeploymentBuiltins, machinePoolBuiltins, visibleAnnotations } from './builtin-variables.ts'
import type { DesiredObject } from '../desired-state/desired-object.ts'
import type { DesiredState } from '../desired-state/desired-state.ts'
import type { TemplateRole } from './inline-patch.ts'
import { stableUid } from '../stable-random.ts'

/** Contract fields of a template with metadata and spec of the objects created from it. They are the same for all kinds of templates. */
export const TemplateFields = { metadata: InfraMachineTemplateContract.metadata, spec: InfraMachineTemplateContract.spec }

/** One template to patch. */
export interface PatchItem {
  /**
   * Identifies the template in requests and responses of extensions: stable across reconciles, so that equal requests can be recognized.
   */
  readonly uid: string
  readonly role: TemplateRole
  readonly holder: HolderReference
  readonly contract: ContractVersion
  /** Variable overrides of this part of the topology. */
  readonly overrides: VariableOverrides['overrides']
  /** Built-in variables in addition to the Cluster's. */
  readonly builtin: JsonObject
  /** Whether the desired object is a copy of the template, and not an object created from it. */
  readonly isTemplate: boolean
  readonly desired: DesiredObject
  /** The template before all patches. */
  readonly unpatched: UnknownObject
  /** The template with the patches applied so far. */
  document: UnknownObject
}

/**
 * Returns the templates in the order of the extension request: infrastructure cluster, control plane, MachineDeployments, MachinePools.
 * MachineDeployments and MachinePools are in the order of the topology.
 */
export function patchItems(cluster: Cluster, blueprint: Blueprint, desired: DesiredState): PatchItem[] {
  const { controlPlane, topology } = blueprint
  const item = (
    template: External,
    desiredObject: DesiredObject,
    part: Pick<PatchItem, 'role' | 'holder' | 'isTemplate' | 'builtin' | 'overrides'>,
  ): PatchItem => {
    const document = documentOf(template, desiredObject, part.isTemplate)
    return {
      ...part,
      uid: stableUid(cluster.metadata.uid, part.holder.kind, part.holder.name, part.holder.fieldPath),
      contract: template.contract,
      desired: desiredObject,
      unpatched: document,
      document,
    }
  }
  const holder = (kind: { apiVersion: string; kind: string }, name: string, fieldPath: string): HolderReference => ({
    ...kind,
    namespace: cluster.metadata.namespace!,
    name,
    fieldPath,
  })
  const holderInCluster = (fieldPath: string) =>
    holder({ apiVersion: apiVersionOf(Cluster), kind: Cluster.kind }, cluster.metadata.name, fieldPath)

  const controlPlaneFields = {
    role: { kind: 'controlPlane' },
    overrides: topology.controlPlane?.variables?.overrides,
    builtin: controlPlaneBuiltins(desired, topology),
  } as const
  const items = [
    item(blueprint.infrastructureCluster, desired.infrastructureCluster, {
      role: { kind: 'infrastructureCluster' },
      holder: holderInCluster('spec.infrastructureRef'),
      isTemplate: false,
      overrides: undefined,
      builtin: {},
    }),
    item(controlPlane.template, desired.controlPlane, {
      ...controlPlaneFields,
      holder: holderInCluster('spec.controlPlaneRef'),
      isTemplate: false,
    }),
  ]
  if (controlPlane.machineTemplate && desired.controlPlaneMachineTemplate) {
    const { object, kind, contract } = desired.controlPlane
    items.push(
      item(controlPlane.machineTemplate, desired.controlPlaneMachineTemplate, {
        ...controlPlaneFields,
        holder: holder(
          { apiVersion: apiVersionOf(kind), kind: kind.kind },
          object.metadata.name,
          ControlPlaneContract.machineInfrastructureRef.paths[contract],
        ),
        isTemplate: true,
      }),
    )
  }
  for (const machineDeployment of desired.machineDeployments) {
    const workerClass = blueprintOf(blueprint, machineDeployment.topology.class)
    const part = (fieldPath: string) => ({
      role: { kind: 'machineDeployment', class: workerClass.class.class } as const,
      holder: holder(
        { apiVersion: apiVersionOf(MachineDeployment), kind: MachineDeployment.kind },
        machineDeployment.object.metadata.name,
        fieldPath,
      ),
      isTemplate: true,
      overrides: machineDeployment.topology.variables?.overrides,
      builtin: machineDeploymentBuiltins(machineDeployment),
    })
    items.push(item(workerClass.bootstrap, machineDeployment.bootstrap, part('spec.template.spec.bootstrap.configRef')))
    items.push(item(workerClass.infrastructure, machineDeployment.infrastructure, part('spec.template.spec.infrastructureRef')))
  }
  for (const machinePool of desired.machinePools) {
    const poolClass = poolBlueprintOf(blueprint, machinePool.topology.class)
    const part = (fieldPath: string) => ({
      role: { kind: 'machinePool', class: poolClass.class.class } as const,
      holder: holder(
        { apiVersion: apiVersionOf(MachinePool), kind: MachinePool.kind },
        machinePool.object.metadata.name,
        fieldPath,
      ),
      isTemplate: false,
      overrides: machinePool.topology.variables?.overrides,
      builtin: machinePoolBuiltins(machinePool),
    })
    items.push(item(poolClass.bootstrap, machinePool.bootstrap, part('spec.template.spec.bootstrap.configRef')))
    items.push(item(poolClass.infrastructure, machinePool.infrastructure, part('spec.template.spec.infrastructureRef')))
  }
  return items
}

/**
 * Returns the template to patch: the template of the class with the labels and visible annotations of the desired object. If the desired
 * object is not a copy of the template, they are in `spec.template.metadata`.
 */
function documentOf({ object, contract }: External, { object: desired }: DesiredObject, isTemplate: boolean): UnknownObject {
  const document = draft(object)
  const { labels, annotations } = desired.metadata
  // The annotations are never empty: annotations of a desired object name the template from which it is created.
  const metadata = { ...(labels ? { labels: { ...labels } } : {}), annotations: visibleAnnotations(annotations) }
  delete document.metadata.managedFields
  if (isTemplate) {
    document.metadata = { ...document.metadata, ...metadata }
    return document
  }
  const { metadata: metadataField } = TemplateFields
  writeField(document, metadataField, contract, { ...readField(document, metadataField, contract), ...metadata })
  const ownAnnotations = visibleAnnotations(document.metadata.annotations)
  if (Object.keys(ownAnnotations).length > 0) document.metadata.annotations = ownAnnotations
  else delete document.metadata.annotations
  return document
}
