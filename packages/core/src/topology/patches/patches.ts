/**
 * Applies the patches of a ClusterClass to the desired state, whose objects are private to this reconcile and changed in place. Upstream:
 * core/reconcilers/topology/cluster/patches, v1.14.
 */
import type { Cluster, ClusterClassPatch, ContractField, ContractMetadata } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
  ClusterTopologyOwnedLabel,
  ContractVersions,
  ControlPlaneContract,
  readField,
  TemplateClonedFromGroupKindAnnotation,
  TemplateClonedFromNameAnnotation,
  writeField,
  applyOperations,
  copyPatchedParts,
} from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { appendAll, draft, equal, withTerminalErrors } from '@capstan/kube'
import { allOrError } from '../../aggregate-errors.ts'
import type { Blueprint } from '../blueprint.ts'
import { clusterBuiltins } from './builtin-variables.ts'
import type { DesiredObject } from '../desired-state/desired-object.ts'
import type { DesiredState } from '../desired-state/desired-state.ts'
import { applyExternalPatch, validateTopology } from './external-patch.ts'
import type { CallContext } from '../hooks/lifecycle-hooks.ts'
import { patchOperations } from './inline-patch.ts'
import { type PatchItem, patchItems, TemplateFields } from './patch-items.ts'
import type { PatchResponses } from './patch-responses.ts'
import { patchVariables } from './patch-variables.ts'

/** Dependencies of external patches. */
export interface PatchExtensions {
  /** Absent when the feature gate RuntimeSDK is disabled. */
  readonly runtime: Pick<RuntimeClient, 'call'> | undefined
  readonly context: CallContext
  readonly responses: PatchResponses
}

/**
 * Applies inline and external patches in the order of the class, then calls extensions to validate the result. As upstream, `enabledIf`
 * has no effect on external patches.
 * @returns sentences about ignored parts of patches
 * @throws Error that names the patch that cannot be computed or applied, or whose validation fails
 */
export async function applyPatches(
  cluster: Cluster,
  blueprint: Blueprint,
  desired: DesiredState,
  extensions: PatchExtensions,
): Promise<string[]> {
  const { patches = [] } = blueprint.class.spec
  if (patches.length === 0) return []
  const builtin = clusterBuiltins(cluster, blueprint.class)
  const items = patchItems(cluster, blueprint, desired)
  const ignored: string[] = []
  const variablesOf = (patch: ClusterClassPatch) => patchVariables(patch, blueprint, builtin)

  for (const patch of patches) {
    const variables = variablesOf(patch)
    if (patch.external) {
      appendAll(ignored, await applyExternalPatch(cluster, patch, patch.external, items, variables, extensions))
      continue
    }
    const generated = attempt(`failed to generate patches for patch ${JSON.stringify(patch.name)}`, () =>
      allOrError(items, (item) => patchOperations(patch, item.document, item.role, variables.allFor(item))),
    )
    for (const [index, item] of items.entries()) {
      const operations = generated[index]!
      const patched = attempt(`failed to apply patches for patch ${JSON.stringify(patch.name)}`, () =>
        applyOperations(item.document, operations),
      )
      if (operations.length > 0) item.document = copyPatchedParts(item.document, patched).document
    }
  }
  for (const patch of patches) {
    if (!patch.external?.validateTopologyExtension) continue
    await validateTopology(cluster, patch, patch.external, items, variablesOf(patch), extensions)
  }
  for (const item of items) appendAll(ignored, copyBack(item))
  return ignored
}

/**
 * Runs `act`, and adds the context to the message of its error. The error is terminal (not retried), because the same objects always lead to
 * the same error.
 */
const attempt = <T>(errorContext: string, act: () => T): T =>
  withTerminalErrors(() => {
    try {
      return act()
    } catch (err) {
      throw new Error(`failed to apply patches: ${errorContext}: ${(err as Error).message}`, { cause: err })
    }
  })

/**
 * Copies the patched template into the desired object, except core's own labels and annotations and, in a control plane, the fields that
 * core sets. If patches set such fields of a control plane to other values, returns one sentence that lists these fields; otherwise an empty
 * list.
 */
function copyBack({ role, desired, unpatched, document, contract, isTemplate }: PatchItem): string[] {
  const { object } = desired
  const metadata = readField(document, TemplateFields.metadata, contract)
  const spec = readField(document, TemplateFields.spec, contract)
  if (isTemplate) {
    setMetadata(object.metadata, document.metadata)
    if (spec) writeField(object, TemplateFields.spec, contract, draft(spec))
    if (metadata) {
      const { labels, annotations } = metadata
      writeField(object, TemplateFields.metadata, contract, {
        ...readField(object, TemplateFields.metadata, contract),
        ...(labels ? { labels: draft(labels) } : {}),
        ...(annotations ? { annotations: draft(annotations) } : {}),
      })
    }
    return []
  }
  const restorers = role.kind === 'controlPlane' ? coreFieldRestorers(object) : []
  if (metadata) setMetadata(object.metadata, metadata)
  if (spec) object['spec'] = draft(spec)
  const unpatchedObject = { spec: readField(unpatched, TemplateFields.spec, contract) ?? {} }
  const changed = restorers.flatMap((restore) => restore(unpatchedObject) ?? [])
  if (changed.length === 0) return []
  const objectText = `${desired.kind.kind} ${object.metadata.name}`
  return [`patches of ${objectText} do not change ${changed.join(', ')}: core sets these fields`]
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

/**
 * Returns a function for each field of a control plane that core can set, in each contract version. If `object` has the field before it is
 * patched, the function restores its value afterwards, and returns the field's path when a patch has set another value. Otherwise the
 * function does nothing.
 */
function coreFieldRestorers(object: DesiredObject['object']): ((unpatched: object) => string | undefined)[] {
  return ContractVersions.flatMap((contract) =>
    coreFields.map((field) => {
      const value = readField(object, field, contract)
      return (unpatched) => {
        if (value === undefined) return undefined
        const patched = readField(object, field, contract)
        writeField(object, field, contract, value)
        return equal(patched, readField(unpatched, field, contract)) || equal(patched, value) ? undefined : field.paths[contract]
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
