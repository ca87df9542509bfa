/** Why a module does not load, with the place, in one line. */
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf } from '@capstan/kube'

/**
 * `folder` is what paths are said relative to. `lastRead` is the module that was read last: some errors of syntax name no place.
 * What Node puts on a stack differs by kind of error, but the first place that is a file of the user is always the right one.
 */
export function loadProblem(err: unknown, folder: string, lastRead?: string): string {
  const message = messageOf(err)
  const place = err instanceof Error ? placeIn(err.stack ?? '') : undefined
  const where = place ?? (err instanceof SyntaxError && lastRead !== undefined ? { file: lastRead, line: '' } : undefined)
  return where === undefined ? message : `${relative(folder, where.file)}${where.line}: ${message}`
}

function placeIn(stack: string): { file: string; line: string } | undefined {
  for (const [, url, line] of stack.matchAll(/(file:\/\/[^\s)]+?):(\d+)(?::\d+)?\)?$/gm)) {
    if (!isOfAPackage(url!)) return { file: fileURLToPath(url!), line: `:${line}` }
  }
  return undefined
}

/** Not the author's own. */
export const isOfAPackage = (url: string): boolean => url.includes('/node_modules/') || url.startsWith(ownSources)

const ownSources = new URL('../../../', import.meta.url).href
