/** The templates of a topology on their way through the patches of its class. Pure. Upstream: patches/template.go, v1.14. */
import type { ContractVersion, HolderReference, MachineDeploymentTopology, VariableOverrides } from '@capstan/api'
import {
  Cluster,
  ControlPlaneContract,
  ConversionDataAnnotation,
  InfraMachineTemplateContract,
  MachineDeployment,
  readField,
  writeField,
} from '@capstan/api'
import { apiVersionOf, draft, type JsonObject, type UnknownObject } from '@capstan/kube'
import type { External } from '../external/get.ts'
import { type Blueprint, blueprintOf } from './blueprint.ts'
import { controlPlaneBuiltins, machineDeploymentBuiltins } from './builtin-variables.ts'
import type { DesiredObject } from './desired-object.ts'
import type { DesiredState } from './desired-state.ts'
import type { TemplateRole } from './inline-patch.ts'
import { stableUid } from './stable-random.ts'

/** Metadata and spec of what a template is for: at the same place in every template, whatever the provider. */
export const Template = { metadata: InfraMachineTemplateContract.metadata, spec: InfraMachineTemplateContract.spec }

/** One template on its way through the patches. */
export interface PatchItem {
  /** Names the template in requests and answers of extensions: the same in every pass, so that a question repeats itself. */
  readonly uid: string
  readonly role: TemplateRole
  readonly holder: HolderReference
  readonly contract: ContractVersion
  /** Values that the user gave for this part of the topology only. */
  readonly overrides: VariableOverrides['overrides']
  /** Built-in variables beside those of the Cluster. */
  readonly builtin: JsonObject
  /** Whether the desired object is itself a template, or what the template is for. */
  readonly isTemplate: boolean
  readonly desired: DesiredObject
  /** The template before any patch. */
  readonly unpatched: UnknownObject
  document: UnknownObject
}

/** The templates in the order in which extensions see them: infrastructure, control plane, then workers as the user lists them. */
export function patchItems(cluster: Cluster, blueprint: Blueprint, desired: DesiredState): PatchItem[] {
  const { controlPlane, topology } = blueprint
  const item = (
    from: External,
    one: DesiredObject,
    part: Pick<PatchItem, 'role' | 'holder' | 'isTemplate' | 'builtin' | 'overrides'>,
  ): PatchItem => {
    const document = documentOf(from, one, part.isTemplate)
    return {
      ...part,
      uid: stableUid(cluster.metadata.uid, part.holder.kind, part.holder.name, part.holder.fieldPath),
      contract: from.contract,
      desired: one,
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
  const ofCluster = (fieldPath: string) =>
    holder({ apiVersion: apiVersionOf(Cluster), kind: Cluster.kind }, cluster.metadata.name, fieldPath)

  const ofControlPlane = {
    role: { kind: 'controlPlane' },
    overrides: topology.controlPlane?.variables?.overrides,
    builtin: controlPlaneBuiltins(desired),
  } as const
  const items = [
    item(blueprint.infrastructureCluster, desired.infrastructureCluster, {
      role: { kind: 'infrastructureCluster' },
      holder: ofCluster('spec.infrastructureRef'),
      isTemplate: false,
      overrides: undefined,
      builtin: {},
    }),
    item(controlPlane.template, desired.controlPlane, {
      ...ofControlPlane,
      holder: ofCluster('spec.controlPlaneRef'),
      isTemplate: false,
    }),
  ]
  if (controlPlane.machineTemplate && desired.controlPlaneMachineTemplate) {
    const { object, kind, contract } = desired.controlPlane
    items.push(
      item(controlPlane.machineTemplate, desired.controlPlaneMachineTemplate, {
        ...ofControlPlane,
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
    const of = blueprintOf(blueprint, machineDeployment.topology.class)
    const part = (fieldPath: string) => ({
      role: { kind: 'machineDeployment', class: of.class.class } as const,
      holder: holder(
        { apiVersion: apiVersionOf(MachineDeployment), kind: MachineDeployment.kind },
        machineDeployment.object.metadata.name,
        fieldPath,
      ),
      isTemplate: true,
      overrides: overridesOf(machineDeployment.topology),
      builtin: machineDeploymentBuiltins(machineDeployment),
    })
    items.push(item(of.bootstrap, machineDeployment.bootstrap, part('spec.template.spec.bootstrap.configRef')))
    items.push(item(of.infrastructure, machineDeployment.infrastructure, part('spec.template.spec.infrastructureRef')))
  }
  return items
}

const overridesOf = ({ variables }: MachineDeploymentTopology): PatchItem['overrides'] => variables?.overrides

/** The template as patches see it: with the labels and annotations that the desired object has. */
function documentOf({ object, contract }: External, { object: desired }: DesiredObject, isTemplate: boolean): UnknownObject {
  const document = draft(object)
  const { labels, annotations = {} } = desired.metadata
  const shown = Object.entries(annotations).filter(([name]) => !repeating.includes(name))
  const metadata = {
    ...(labels ? { labels: { ...labels } } : {}),
    ...(shown.length > 0 ? { annotations: Object.fromEntries(shown) } : {}),
  }
  delete document.metadata.managedFields
  if (isTemplate) document.metadata = { ...document.metadata, ...metadata }
  else writeField(document, Template.metadata, contract, { ...readField(document, Template.metadata, contract), ...metadata })
  return document
}

const repeating = ['kubectl.kubernetes.io/last-applied-configuration', ConversionDataAnnotation]
