/** Formats the reason why a module does not load, with its line, as one line. */
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { messageOf } from '@capstan/kube'

/**
 * Returns `file:line: message` for `err`, with the file relative to `folder`. The position is the first one in the stack that is in a file
 * of the user. The stack of some syntax errors contains no position: then the file is `lastRead`, the module that was read last.
 */
export function loadProblem(err: unknown, folder: string, lastRead?: string): string {
  const message = messageOf(err)
  const place = err instanceof Error ? positionIn(err.stack ?? '') : undefined
  const where = place ?? (err instanceof SyntaxError && lastRead !== undefined ? { file: lastRead, line: '' } : undefined)
  return where === undefined ? message : `${relative(folder, where.file)}${where.line}: ${message}`
}

function positionIn(stack: string): { file: string; line: string } | undefined {
  for (const [, place, line] of stack.matchAll(/(?:^|[\s(])((?:file:\/\/|\/|[A-Z]:\\)[^\s)]+?):(\d+)(?::\d+)?\)?$/gm)) {
    // Node writes a path instead of a URL where no package.json above the file has "type": "module".
    const url = place!.startsWith('file:') ? place! : pathToFileURL(place!).href
    if (!isOfAPackage(url)) return { file: fileURLToPath(url), line: `:${line}` }
  }
  return undefined
}

/** Whether a module belongs to an installed package or to Capstan, not to the author of the extension. */
export const isOfAPackage = (url: string): boolean => url.includes('/node_modules/') || url.startsWith(ownSources)

const ownSources = new URL('../../../', import.meta.url).href
