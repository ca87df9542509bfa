/** Formats errors of an extension, such as that of a module that does not load, with file and line number. */
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { messageOf } from '@capstan/kube'

/**
 * Returns `file:line: message` for `err`, with the file relative to `folder`; only the message if the file is unknown. The position is the
 * first one in the stack that is in a file of the user. If the stack of a syntax error has no such position, returns `file: message` with
 * `lastRead`, the module that was read last.
 */
export function loadProblem(err: unknown, folder: string, lastRead?: string): string {
  const message = messageOf(err)
  const stackPosition = err instanceof Error ? positionIn(err.stack ?? '') : undefined
  const position =
    stackPosition ?? (err instanceof SyntaxError && lastRead !== undefined ? { file: lastRead, line: '' } : undefined)
  return position === undefined ? message : `${relative(folder, position.file)}${position.line}: ${message}`
}

function positionIn(stack: string): { file: string; line: string } | undefined {
  for (const [, place, line] of stack.matchAll(/(?:^|[\s(])((?:file:\/\/|\/|[A-Z]:\\)[^\s)]+?):(\d+)(?::\d+)?\)?$/gm)) {
    // For a syntax error in a .ts file that no package.json with "type": "module" covers, Node writes a path instead of a URL.
    const url = place!.startsWith('file:') ? place! : pathToFileURL(place!).href
    if (!isOfAPackage(url)) return { file: fileURLToPath(url), line: `:${line}` }
  }
  return undefined
}

/** Whether a module belongs to an installed package or to Capstan, and not to the extension. */
export const isOfAPackage = (url: string): boolean => url.includes('/node_modules/') || url.startsWith(ownSources)

const ownSources = new URL('../../../', import.meta.url).href
