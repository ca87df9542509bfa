/** Applies the patches of a response to the documents of the request: to spec, labels and annotations, as core does for GeneratePatches. */
import type { Hook } from '@capstan/api'
import { patchedDocument } from '@capstan/api'
import { isRecord } from '@capstan/kube'
import { HookFailed } from '../client/hook-failed.ts'

/** By hook: the fields of the response that contain patches. Each is mapped to the field of `request.current` that its patch changes. */
const patchesOf: { readonly [hook: string]: { readonly [patch: string]: string } } = {
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
}

type Fields = Record<string, unknown>

/**
 * Returns the request with the response's patches applied; the same request for hooks without patches.
 *
 * @throws HookFailed bad-answer if a patch is invalid or does not apply, or if the request has no item with its uid
 */
export function patchedRequest<T extends object>({ name }: Hook, request: T, response: object): T {
  const [fields, answer] = [request as Fields, response as Fields]
  if (name === 'GeneratePatches') return { ...request, items: patchedItems(listOf(fields.items), listOf(answer.items)) }
  const patches = patchesOf[name]
  if (!patches || !isRecord(fields.current)) return request
  const current = { ...fields.current }
  for (const [patch, member] of Object.entries(patches)) {
    const object = current[member]
    if (isRecord(answer[patch]) && isRecord(object)) current[member] = applyPatch(object, answer[patch], patch)
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

/**
 * Returns the object with the patch's changes of spec, labels and annotations. Other changes, and the removal of one of these three as a
 * whole, are ignored.
 */
function applyPatch(object: Fields, answer: Fields, place: string): Fields {
  const { patchType = '', patch = '' } = answer as { patchType?: string; patch?: string }
  if (patchType === '' && patch === '') return object
  let document: Fields | undefined
  try {
    document = patchedDocument(object, patchType, Buffer.from(patch, 'base64').toString())
  } catch (err) {
    throw rejection(place, (err as Error).message)
  }
  if (!document) return object
  const { labels, annotations } = isRecord(document.metadata) ? document.metadata : {}
  const metadata = { ...(object.metadata as object), ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) }
  return { ...object, metadata, ...(document.spec === undefined ? {} : { spec: document.spec }) }
}

const rejection = (place: string, why: string): HookFailed =>
  new HookFailed('bad-answer', `${place} of the response: ${why}`, { problem: 'Schema' })

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])
