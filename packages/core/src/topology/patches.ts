/**
 * Applies the patches of a ClusterClass to the desired state. Pure but for the desired objects, which are this pass' own and are
 * changed in place. Upstream: core/reconcilers/topology/cluster/patches, v1.14.
 */
import type { Cluster, ContractField, ContractMetadata, ContractVersion, VariableOverrides } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
  ClusterTopologyOwnedLabel,
  ContractVersions,
  ControlPlaneContract,
  ConversionDataAnnotation,
  InfraMachineTemplateContract,
  readField,
  TemplateClonedFromGroupKindAnnotation,
  TemplateClonedFromNameAnnotation,
  VariableDefinitionFromInline,
  writeField,
} from '@capstan/api'
import { draft, isRecord, type Json, type JsonObject, type UnknownObject } from '@capstan/kube'
import type { External } from '../external/get.ts'
import { type Blueprint, blueprintOf } from './blueprint.ts'
import { clusterBuiltins, controlPlaneBuiltins, machineDeploymentBuiltins } from './builtin-variables.ts'
import type { DesiredObject } from './desired-object.ts'
import type { DesiredState } from './desired-state.ts'
import { applyOperations, patchOperations, type TemplateRole } from './inline-patch.ts'

/** Metadata and spec of what a template is for: at the same place in every template, whatever the provider. */
const Template = { metadata: InfraMachineTemplateContract.metadata, spec: InfraMachineTemplateContract.spec }

/** One template on its way through the patches. */
interface Item {
  readonly role: TemplateRole
  readonly contract: ContractVersion
  readonly variables: JsonObject
  /** Whether the desired object is itself a template, or what the template is for. */
  readonly isTemplate: boolean
  readonly desired: DesiredObject
  document: UnknownObject
}

/** @throws Error that names the patch which cannot be computed, or does not apply */
export function applyPatches(cluster: Cluster, blueprint: Blueprint, desired: DesiredState): void {
  const { patches = [] } = blueprint.class.spec
  if (patches.length === 0) return
  const visible = inlineVariables(blueprint)
  const global = {
    ...values(blueprint.topology.variables, visible),
    builtin: clusterBuiltins(cluster, blueprint.class),
  }
  const items = itemsOf(blueprint, desired, visible)
  for (const patch of patches) {
    if (patch.external) {
      throw new Error(
        `failed to create patch generator for patch ${JSON.stringify(patch.name)}: external patches are not supported`,
      )
    }
    for (const item of items) {
      const operations = attempt(`failed to generate patches for patch ${JSON.stringify(patch.name)}`, () =>
        patchOperations(patch, item.document, item.role, withItemVariables(global, item.variables)),
      )
      const patched = attempt(`failed to apply patches for patch ${JSON.stringify(patch.name)}`, () =>
        applyOperations(item.document, operations),
      )
      if (operations.length > 0) item.document = takeOver(item.document, patched)
    }
  }
  for (const item of items) copyBack(item)
}

function attempt<T>(what: string, act: () => T): T {
  try {
    return act()
  } catch (err) {
    throw new Error(`failed to apply patches: ${what}: ${(err as Error).message}`, { cause: err })
  }
}

/** Names of the variables that inline patches may read. */
const inlineVariables = ({ class: { status } }: Blueprint): ReadonlySet<string> =>
  new Set(
    (status?.variables ?? [])
      .filter(({ definitions }) => definitions.some(({ from }) => from === VariableDefinitionFromInline))
      .map(({ name }) => name),
  )

function values(variables: readonly { name: string; value?: unknown }[] | undefined, visible: ReadonlySet<string>): JsonObject {
  const kept: JsonObject = {}
  for (const { name, value } of variables ?? []) if (name !== 'builtin' && visible.has(name)) kept[name] = (value ?? null) as Json
  return kept
}

/** Variables of a template win over those of the Cluster; built-in ones come together from both. */
const withItemVariables = (global: JsonObject, { builtin = {}, ...own }: JsonObject): JsonObject => ({
  ...global,
  ...own,
  builtin: { ...(global['builtin'] as JsonObject), ...(builtin as JsonObject) },
})

function itemsOf(blueprint: Blueprint, desired: DesiredState, visible: ReadonlySet<string>): Item[] {
  const { controlPlane, topology } = blueprint
  const overrides = (of: VariableOverrides | undefined) => values(of?.overrides, visible)
  const object = (role: TemplateRole, template: External, one: DesiredObject, variables: JsonObject): Item => ({
    role,
    contract: template.contract,
    variables,
    isTemplate: false,
    desired: one,
    document: documentOf(template, one, false),
  })
  const template = (role: TemplateRole, from: External, one: DesiredObject, variables: JsonObject): Item => ({
    ...object(role, from, one, variables),
    isTemplate: true,
    document: documentOf(from, one, true),
  })

  const ofControlPlane = { ...overrides(topology.controlPlane?.variables), builtin: controlPlaneBuiltins(desired) }
  const items = [
    object({ kind: 'infrastructureCluster' }, blueprint.infrastructureCluster, desired.infrastructureCluster, {}),
    object({ kind: 'controlPlane' }, controlPlane.template, desired.controlPlane, ofControlPlane),
  ]
  if (controlPlane.machineTemplate && desired.controlPlaneMachineTemplate) {
    items.push(
      template({ kind: 'controlPlane' }, controlPlane.machineTemplate, desired.controlPlaneMachineTemplate, ofControlPlane),
    )
  }
  for (const machineDeployment of desired.machineDeployments) {
    const of = blueprintOf(blueprint, machineDeployment.topology.class)
    const role = { kind: 'machineDeployment', class: of.class.class } as const
    const variables = {
      ...overrides(machineDeployment.topology.variables),
      builtin: machineDeploymentBuiltins(machineDeployment),
    }
    items.push(template(role, of.bootstrap, machineDeployment.bootstrap, variables))
    items.push(template(role, of.infrastructure, machineDeployment.infrastructure, variables))
  }
  return items
}

/** The template as patches see it: with the labels and annotations that the desired object has. */
function documentOf({ object, contract }: External, { object: desired }: DesiredObject, isTemplate: boolean): UnknownObject {
  const document = draft(object)
  const { labels, annotations = {} } = desired.metadata
  const metadata = {
    ...(labels ? { labels: { ...labels } } : {}),
    annotations: Object.fromEntries(Object.entries(annotations).filter(([name]) => !repeating.includes(name))),
  }
  delete document.metadata.managedFields
  if (isTemplate) document.metadata = { ...document.metadata, ...metadata }
  else writeField(document, Template.metadata, contract, { ...readField(document, Template.metadata, contract), ...metadata })
  return document
}

const repeating = ['kubectl.kubernetes.io/last-applied-configuration', ConversionDataAnnotation]

/** Only spec, labels and annotations of a template can be patched; what else a patch changes is left out. */
function takeOver(document: UnknownObject, patched: UnknownObject): UnknownObject {
  const { labels, annotations } = isRecord(patched.metadata) ? patched.metadata : {}
  return {
    ...document,
    ...(patched['spec'] === undefined ? {} : { spec: patched['spec'] }),
    metadata: {
      ...document.metadata,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
  } as UnknownObject
}

/** Puts the patched template into the desired object, except for what is core's to say. */
function copyBack({ role, desired, document, contract, isTemplate }: Item): void {
  const { object } = desired
  const metadata = readField(document, Template.metadata, contract)
  const spec = readField(document, Template.spec, contract)
  if (isTemplate) {
    setMetadata(object.metadata, document.metadata)
    if (spec) writeField(object, Template.spec, contract, draft(spec))
    if (metadata) writeField(object, Template.metadata, contract, draft(metadata))
    return
  }
  const kept = role.kind === 'controlPlane' ? ownFields(object) : []
  if (metadata) setMetadata(object.metadata, metadata)
  if (spec) object['spec'] = draft(spec)
  for (const restore of kept) restore()
}

function setMetadata(metadata: ContractMetadata, { labels, annotations }: ContractMetadata): void {
  if (labels) metadata.labels = { ...draft(labels), ...pick(metadata.labels, preservedLabels) }
  if (annotations) metadata.annotations = { ...draft(annotations), ...pick(metadata.annotations, preservedAnnotations) }
}

const preservedLabels = [
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
]
const preservedAnnotations = [TemplateClonedFromNameAnnotation, TemplateClonedFromGroupKindAnnotation]

const pick = (map: Record<string, string> = {}, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.filter((name) => map[name] !== undefined).map((name) => [name, map[name]!]))

/** Fields of a control plane that core has set, in the layout of whichever contract: patches have no say in them. */
function ownFields(object: DesiredObject['object']): (() => void)[] {
  return ContractVersions.flatMap((contract) =>
    coreFields.map((field) => {
      const value = readField(object, field, contract)
      return () => {
        if (value !== undefined) writeField(object, field, contract, value)
      }
    }),
  )
}

const {
  machineTemplateMetadata,
  readinessGates,
  taints,
  machineInfrastructureRef,
  nodeDrainTimeout,
  nodeVolumeDetachTimeout,
  nodeDeletionTimeout,
  specReplicas,
  version,
  rolloutAfter,
} = ControlPlaneContract
const coreFields: readonly ContractField<unknown>[] = [
  machineTemplateMetadata,
  readinessGates,
  taints,
  machineInfrastructureRef,
  nodeDrainTimeout,
  nodeVolumeDetachTimeout,
  nodeDeletionTimeout,
  specReplicas,
  version,
  rolloutAfter,
]
