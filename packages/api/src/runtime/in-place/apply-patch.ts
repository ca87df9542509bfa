import { isRecord } from '@capstan/kube'
import type { ResponseOf } from '../hook.ts'
import { patchedDocument } from '../answer-patch.ts'
import type { CanUpdateMachine } from '../hooks/can-update-machine.ts'

/** A patch of one object in a response of an in-place update hook. */
export type WirePatch = NonNullable<ResponseOf<typeof CanUpdateMachine>['machinePatch']>

/** Path of the value that a patch may change, by hook: in a Machine and its objects, and in a MachineSet and its templates. */
export const inPlacePatchPaths = {
  CanUpdateMachine: ['spec'],
  CanUpdateMachineSet: ['spec', 'template', 'spec'],
} as const

/**
 * Returns the object with the patch's changes of the value at `path`; other changes are ignored. If the patch removes this value, the
 * object is unchanged. Pure. Upstream: internal/util/patch, ApplyPatchToObject, v1.14.
 *
 * @throws Error when the patch is invalid or does not apply; usually with upstream's text
 */
export function applyResponsePatch<T extends object>(object: T, patch: WirePatch | undefined, path: readonly string[]): T {
  const { patchType = '', patch: encoded = '' } = patch ?? {}
  // As upstream, the patch is absent only when its type and its text are both empty.
  if (patchType === '' && encoded === '') return object
  if ((patchType as string) === '') throw new Error('failed to apply patch: patchType is not set')
  const patched = patchedDocument(object, patchType, textOf(encoded))
  if (patched === undefined) return object
  const { kind } = patched as { readonly kind?: unknown }
  if (typeof kind !== 'string' || kind === '') {
    throw new Error("failed to apply patch to object: failed to convert patched object to Unstructured: Object 'Kind' is missing")
  }
  const value = path.reduce<unknown>((parent, name) => (isRecord(parent) ? parent[name] : undefined), patched)
  return value === undefined ? object : (withMember(object, path, value) as T)
}

function textOf(encoded: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)))
  } catch (err) {
    throw new Error('failed to apply patch: the patch is not base64', { cause: err })
  }
}

function withMember(object: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  const members = isRecord(object) ? object : {}
  return { ...members, [name]: withMember(members[name], rest, value) }
}
