/**
 * Patches computed by extensions: builds the requests and applies the responses to the templates. Upstream:
 * core/reconcilers/topology/cluster/patches/{engine,external}, v1.14.
 */
import type { Cluster, ClusterClassPatch, ExternalPatchDefinition, ResponseOf } from '@capstan/api'
import { copyPatchedParts, GeneratePatches, patchedDocument, ValidateTopology } from '@capstan/api'
import type { CallOptions } from '@capstan/extension'
import { TerminalError, withErrorContext } from '@capstan/kube'
import type { PatchItem } from './patch-items.ts'
import type { PatchVariables } from './patch-variables.ts'
import { wireVariablesOf } from './patch-variables.ts'
import type { PatchExtensions } from './patches.ts'

type ResponseItem = NonNullable<ResponseOf<typeof GeneratePatches>['items']>[number]

/**
 * Calls the extension of a patch, and applies its response to the documents of the items. Returns a sentence for each item of the response
 * that has ignored parts.
 */
export async function applyExternalPatch(
  cluster: Cluster,
  { name }: ClusterClassPatch,
  external: ExternalPatchDefinition,
  items: readonly PatchItem[],
  variables: PatchVariables,
  extensions: PatchExtensions,
): Promise<string[]> {
  // As upstream, the webhook admits a patch that only validates, but the topology controller rejects it.
  if (!external.generatePatchesExtension)
    throw new TerminalError(`failed to apply patches: failed to create patch generator for patch ${JSON.stringify(name)}`)
  const runtime = withErrorContext('failed to apply patches', () => runtimeFor(name, extensions))
  const request = {
    variables: wireVariablesOf(variables.global),
    items: items.map((item) => ({ uid: item.uid, ...itemOf(item, variables) })),
  }
  const response = await withErrorContext(
    `failed to apply patches: failed to generate patches for patch ${JSON.stringify(name)}`,
    async () => {
      const result = await extensions.context.withoutWorker(() =>
        runtime.call(GeneratePatches, cluster, external.generatePatchesExtension!, request, optionsOf(external, extensions)),
      )
      extensions.responses.record(name, { external, request }, result.items ?? [])
      return result
    },
  )
  return withErrorContext(`failed to apply patches: failed to apply patches for patch ${JSON.stringify(name)}`, async () =>
    (response.items ?? []).flatMap((responseItem) =>
      applyResponseItem(items, responseItem).map((ignoredPart) => `patch ${JSON.stringify(name)} of ${ignoredPart}`),
    ),
  )
}

/** Calls the extension to validate the patched templates. @throws Error when the extension rejects them, or the call fails */
export async function validateTopology(
  cluster: Cluster,
  { name }: ClusterClassPatch,
  external: ExternalPatchDefinition,
  items: readonly PatchItem[],
  variables: PatchVariables,
  extensions: PatchExtensions,
): Promise<void> {
  const request = {
    variables: wireVariablesOf(variables.global),
    items: items.map((item) => itemOf(item, variables)),
  }
  await withErrorContext(`failed to apply patches: validation of patch ${JSON.stringify(name)} failed`, () =>
    extensions.context.withoutWorker(() =>
      runtimeFor(external.validateTopologyExtension!, extensions).call(
        ValidateTopology,
        cluster,
        external.validateTopologyExtension!,
        request,
        optionsOf(external, extensions),
      ),
    ),
  )
}

/** Returns the runtime client. @throws TerminalError that names `patchOrHandler` if there is no client, because RuntimeSDK is disabled */
function runtimeFor(patchOrHandler: string, { runtime }: PatchExtensions): NonNullable<PatchExtensions['runtime']> {
  if (runtime) return runtime
  throw new TerminalError(`can not use external patch ${JSON.stringify(patchOrHandler)} if RuntimeSDK feature flag is disabled`)
}

const optionsOf = ({ settings }: ExternalPatchDefinition, { context: { signal } }: PatchExtensions): CallOptions => ({
  ...(settings ? { settings } : {}),
  signal,
})

function itemOf(item: PatchItem, variables: PatchVariables) {
  const ownVariables = wireVariablesOf(variables.ownFor(item))
  return { holderReference: item.holder, object: item.document, ...(ownVariables.length > 0 ? { variables: ownVariables } : {}) }
}

/**
 * Applies one item of the response to the document of the request item with the same uid. Returns a list with one sentence about the ignored
 * parts of the patch; an empty list if there are none.
 * @throws Error when no item has this uid, or the patch is invalid or does not apply; usually with upstream's text
 */
export function applyResponseItem(
  items: readonly Pick<PatchItem, 'uid' | 'holder' | 'document'>[],
  { uid, patchType, patch }: ResponseItem,
): string[] {
  const item = items.find((candidate) => candidate.uid === uid)
  if (!item) throw new Error('unable to find corresponding request item for patch')
  const patched = patchedDocument(item.document, patchType, Buffer.from(patch, 'base64').toString())
  if (!patched) return []
  const { document, ignored } = copyPatchedParts(item.document, patched)
  item.document = document
  if (ignored.length === 0) return []
  return [
    `${itemText(item)} does not change ${ignored.join(', ')}: only spec, labels and annotations of a template can be patched`,
  ]
}

/** Formats an item: `LocalMachineTemplate for MachineDeployment md-0 (spec.template.spec.infrastructureRef)`. */
export const itemText = ({ document, holder }: Pick<PatchItem, 'holder' | 'document'>): string =>
  `${document.kind} for ${holder.kind} ${holder.name} (${holder.fieldPath})`
