/** Computes responses to GeneratePatches from edited templates. Upstream: topologymutation.WalkTemplates, v1.14. */
import type { GeneratePatches } from '@capstan/api'
import { draft, equal, isRecord, messageOf, type UnknownObject } from '@capstan/kube'
import { type AnswerOf, fail, proceedWith } from './answer.ts'
import type { HandlerCall } from './define-extension.ts'
import { patchBetween, type PatchFormat } from './document-patch.ts'
import { type TemplateRule, type WalkOptions, walkTemplates } from './template-walk.ts'

export interface PatchOptions extends WalkOptions {
  /** Format of the patches. Default: JSONPatch. */
  readonly format?: PatchFormat
}

/**
 * Returns a handler of GeneratePatches: each rule edits drafts of the templates that it selects, one rule after another, and the response
 * contains the patches of changed templates. If a rule throws an error, the response is a failure without patches. Its message
 * contains the name of the template and the message of the error.
 *
 * @example
 * on(GeneratePatches, { name: 'generate-patches' }, patchTemplates([
 *   template({ kind: 'LocalMachineTemplate' }, ({ template, variables }) => {
 *     template.metadata.labels = { ...template.metadata.labels, region: variables.string('region') }
 *   }),
 * ]))
 */
export const patchTemplates =
  (rules: readonly TemplateRule[], options: PatchOptions = {}) =>
  async (call: HandlerCall<typeof GeneratePatches>): Promise<AnswerOf<typeof GeneratePatches>> => {
    const items: { uid: string; patchType: PatchFormat; patch: string }[] = []
    try {
      for (const { item, name, rules: matchingRules, call: ruleCall } of walkTemplates(call, rules, options)) {
        const template = draft(item.object)
        try {
          for (const { act } of matchingRules) await act({ ...ruleCall, template } as never)
          const patch = patchBetween(item.object, patchable(item.object, template), options.format ?? 'JSONPatch')
          if (patch) items.push({ uid: item.uid, ...patch })
        } catch (err) {
          throw new Error(`${name}: ${messageOf(err)}`, { cause: err })
        }
        call.signal.throwIfAborted()
      }
    } catch (err) {
      if (call.signal.aborted) throw err
      call.log.error('Cannot patch templates', { err })
      return fail(messageOf(err))
    }
    return proceedWith({ items })
  }

/**
 * Returns the edited template in a form that core applies. When a patch removes the whole map `labels` or `annotations`, core
 * keeps the earlier map, so a removed map is replaced by an empty map.
 *
 * @throws TypeError if labels or annotations are not a map of strings; also if spec was removed, or a field other than spec, labels and
 *   annotations was changed, because core would ignore this change
 */
function patchable(original: UnknownObject, edited: UnknownObject): UnknownObject {
  const { metadata: originalMetadata = {}, spec, ...originalRest } = original as { metadata?: object; spec?: unknown }
  const { metadata: editedMetadata = {}, spec: editedSpec, ...editedRest } = edited as { metadata?: object; spec?: unknown }
  const { labels, annotations, ...identity } = originalMetadata as Record<string, unknown>
  const { labels: editedLabels, annotations: editedAnnotations, ...editedIdentity } = editedMetadata as Record<string, unknown>
  const changed = [...changedMembers(originalRest, editedRest, ''), ...changedMembers(identity, editedIdentity, 'metadata.')]
  if (changed.length > 0) {
    throw new TypeError(`cannot change ${changed.join(', ')}: core copies only spec, metadata.labels and metadata.annotations`)
  }
  if (spec !== undefined && editedSpec === undefined) throw new TypeError('cannot remove spec: core leaves it as it was')
  const metadata = {
    ...identity,
    ...withEmptyMap('labels', labels, editedLabels),
    ...withEmptyMap('annotations', annotations, editedAnnotations),
  }
  return { ...edited, ...(original.metadata || Object.keys(metadata).length > 0 ? { metadata } : {}) } as UnknownObject
}

function changedMembers(before: object, after: object, prefix: string): string[] {
  const [beforeFields, afterFields] = [before as Record<string, unknown>, after as Record<string, unknown>]
  const names = [...new Set([...Object.keys(beforeFields), ...Object.keys(afterFields)])].sort()
  return names.filter((name) => !equal(beforeFields[name], afterFields[name])).map((name) => `${prefix}${name}`)
}

/**
 * Returns an object with the edited map as member `name`; if the map was removed, with an empty map. Returns an empty object if there never
 * was a map.
 */
function withEmptyMap(name: string, before: unknown, after: unknown): object {
  if (after === undefined) return before === undefined ? {} : { [name]: {} }
  if (!isRecord(after) || !Object.values(after).every((value) => typeof value === 'string' || value === undefined)) {
    throw new TypeError(`metadata.${name} must map names to strings`)
  }
  return { [name]: after }
}
