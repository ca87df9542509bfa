/** Finds the extension in the exports of a module. */
import { isRecord } from '@capstan/kube'
import { defineExtension, type Extension } from '../author/define-extension.ts'

/**
 * Returns the exported extension. If no extension is exported, but exactly one function that has no parameters, calls this function and
 * returns the extension that it returns.
 *
 * @throws TypeError if no extension is found, if several extensions are exported, or if `defineExtension` rejects the
 *   extension; also each error of the called function
 */
export async function extensionIn(exports: { readonly [name: string]: unknown }): Promise<Extension> {
  const exported = Object.entries(exports)
  const extensions = exported.filter(([, value]) => isExtension(value))
  if (new Set(extensions.map(([, value]) => value)).size > 1)
    throw new TypeError(`exports several extensions (${extensions.map(([name]) => name).join(', ')}): expected one`)
  if (extensions.length > 0) return defineExtension(extensions[0]![1] as Extension)

  const functions = new Set(
    exported.map(([, value]) => value).filter((value) => typeof value === 'function' && value.length === 0),
  )
  const [onlyFunction] = functions.size === 1 ? (functions as Set<() => unknown>) : []
  const result = await onlyFunction?.()
  if (isExtension(result)) return defineExtension(result)
  throw new TypeError(
    `exports no extension${exported.length === 0 ? '' : ` (there are ${exported.map(([name]) => name).join(', ')})`}: expected \`export const extension = defineExtension({ … })\``,
  )
}

const isExtension = (value: unknown): value is Extension =>
  isRecord(value) && typeof value.name === 'string' && Array.isArray(value.handlers)
