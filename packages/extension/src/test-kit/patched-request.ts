/**
 * Applies the patches of a response to the objects of the request, as core does: patches of GeneratePatches change only spec, labels and
 * annotations; those of CanUpdateMachine change only `spec`, and those of CanUpdateMachineSet only `spec.template.spec`.
 */
import type { Hook, WirePatch } from '@capstan/api'
import { applyResponsePatch, copyPatchedParts, inPlacePatchPaths, patchedDocument } from '@capstan/api'
import { isRecord } from '@capstan/kube'
import { HookFailed } from '../client/hook-failed.ts'

/** By hook: the fields of the response that contain patches. Each is mapped to the field of `request.current` that its patch changes. */
const inPlacePatches = {
  CanUpdateMachine: {
    machinePatch: 'machine',
    infrastructureMachinePatch: 'infrastructureMachine',
    bootstrapConfigPatch: 'bootstrapConfig',
  },
  CanUpdateMachineSet: {
    machineSetPatch: 'machineSet',
    infrastructureMachineTemplatePatch: 'infrastructureMachineTemplate',
    bootstrapConfigTemplatePatch: 'bootstrapConfigTemplate',
  },
} as const

const isInPlaceHook = (name: string): name is keyof typeof inPlacePatches => Object.hasOwn(inPlacePatches, name)

type Fields = Record<string, unknown>

/**
 * Returns the request with the response's patches applied; the same request for hooks without patches.
 *
 * @throws HookFailed bad-answer if a patch is invalid or does not apply, or if the request has no item with the uid of a response item
 */
export function patchedRequest<T extends object>({ name }: Hook, request: T, response: object): T {
  const [fields, answer] = [request as Fields, response as Fields]
  if (name === 'GeneratePatches') return { ...request, items: patchedItems(listOf(fields.items), listOf(answer.items)) }
  if (!isInPlaceHook(name) || !isRecord(fields.current)) return request
  const current = { ...fields.current }
  for (const [patch, member] of Object.entries(inPlacePatches[name])) {
    const object = current[member]
    if (!isRecord(answer[patch]) || !isRecord(object)) continue
    current[member] = rejectingAt(patch, () => applyResponsePatch(object, answer[patch] as WirePatch, inPlacePatchPaths[name]))
  }
  return { ...request, current }
}

function patchedItems(items: readonly Fields[], answers: readonly Fields[]): Fields[] {
  const result = items.map((item) => ({ ...item }))
  for (const [index, answer] of answers.entries()) {
    const item = result.find(({ uid }: Fields) => uid === answer.uid) as Fields | undefined
    if (!item) throw rejection(`items[${index}]`, `the request has no item with uid ${JSON.stringify(answer.uid)}`)
    item.object = applyPatch(item.object as Fields, answer, `items[${index}]`)
  }
  return result
}

function applyPatch(object: Fields, answer: Fields, place: string): Fields {
  const { patchType = '', patch = '' } = answer as { patchType?: string; patch?: string }
  return rejectingAt(place, () => {
    const patched = patchedDocument(object, patchType, Buffer.from(patch, 'base64').toString())
    return patched ? copyPatchedParts(object, patched).document : object
  })
}

function rejectingAt<T>(place: string, act: () => T): T {
  try {
    return act()
  } catch (err) {
    throw rejection(place, (err as Error).message)
  }
}

const rejection = (place: string, why: string): HookFailed =>
  new HookFailed('bad-answer', `${place} of the response: ${why}`, { problem: 'Schema' })

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])
