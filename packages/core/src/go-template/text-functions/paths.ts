/** Sprig's functions on paths, which do not read the file system. Upstream: sprig v3, functions.go; Go's path and path/filepath on Linux. */
import { posix } from 'node:path'
import type { TemplateFunction } from '../value.ts'
import { goFunction } from '../value.ts'

function clean(path: string): string {
  const normalized = posix.normalize(path)
  return normalized.length > 1 && normalized.endsWith('/') ? normalized.slice(0, -1) : normalized
}

const functions: Readonly<Record<string, (path: string) => string | boolean>> = {
  base: (path) => posix.basename(path) || (path === '' ? '.' : '/'),
  dir: (path) => clean(path.slice(0, path.lastIndexOf('/') + 1)),
  clean,
  ext: (path) => /\.[^./]*$/.exec(path)?.[0] ?? '',
  isAbs: (path) => path.startsWith('/'),
}

/** Each function under two names: its own, and that with the prefix `os`, such as `base` and `osBase`. */
export const pathFunctions: Readonly<Record<string, TemplateFunction>> = Object.fromEntries(
  Object.entries(functions).flatMap(([name, pathFunction]) => {
    const templateFunction = goFunction(['string'], pathFunction)
    return [name, `os${name[0]!.toUpperCase()}${name.slice(1)}`].map((used) => [used, templateFunction] as const)
  }),
)
