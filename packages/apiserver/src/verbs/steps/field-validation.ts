/** Messages about unknown and duplicate fields (fieldValidation). */
import { badRequest, isRecord, type StatusError } from '@capstan/kube'
import type { ResourceInfo } from '../../registry/resource-info.ts'
import type { Source } from './decode.ts'
import { invalidPatch } from './patch-errors.ts'

export const unknownField = (path: string): string => `unknown field ${JSON.stringify(path)}`
export const duplicateField = (path: string): string => `duplicate field "${path}"`

/** Maximum number of messages for one decoded body. Upstream: saveStrictError of sigs.k8s.io/json. */
export const MaxStrictErrors = 100

/**
 * Returns at most `MaxStrictErrors` messages about unknown and duplicate fields, each once. `fieldPaths`: the paths of all
 * fields in the order of the body; a duplicate field is listed each time it occurs. Upstream: an unknown field is not reported
 * as a duplicate as well.
 */
export function problemsInBodyOrder(unknown: readonly string[], fieldPaths: readonly string[]): readonly string[] {
  const unknownPaths = new Set(unknown)
  const visited = new Set<string>()
  const texts = new Set<string>()
  for (const path of fieldPaths) {
    if (unknownPaths.has(path)) texts.add(unknownField(path))
    else if (visited.has(path)) texts.add(duplicateField(path))
    if (texts.size === MaxStrictErrors) break
    visited.add(path)
  }
  return [...texts]
}

/** Sorts paths into the order of the body; returns at most `MaxStrictErrors` of them. */
export function inBodyOrder(paths: readonly string[], body: unknown): readonly string[] {
  if (paths.length < 2) return paths
  const pathSet = new Set(paths)
  const ordered: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (pathSet.has(path)) ordered.push(path)
    else if (Array.isArray(value)) visitAll(value.keys(), (index) => visit(value[index], `${path}[${index}]`))
    else if (isRecord(value)) visitAll(Object.keys(value), (key) => visit(value[key], path === '' ? key : `${path}.${key}`))
  }
  const visitAll = <T>(keys: Iterable<T>, act: (key: T) => void): void => {
    for (const key of keys) {
      if (ordered.length === MaxStrictErrors) return
      act(key)
    }
  }
  visit(body, '')
  return ordered
}

/** Error for unknown and duplicate fields under strict validation. `patchedText` is the result of a patch or an apply. */
export function strictError(
  { kind, version }: Pick<ResourceInfo, 'kind' | 'version'>,
  texts: readonly string[],
  source: Source,
  patchedText: string,
): StatusError {
  const text = `strict decoding error: ${texts.join(', ')}`
  return source === 'body'
    ? badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${text}`)
    : invalidPatch(patchedText, text)
}
