/**
 * Merges the source texts of modules into the text of one module: all imports at the top, then the other lines in order. Supports
 * `import x from` and `import { x } from`, but not `import type { x } from`. Pure.
 */
export function mergeModules(modules: readonly string[]): string {
  const namesBySource = new Map<string, Set<string>>()
  const otherImports = new Set<string>()
  const bodies = modules.map((text) =>
    text
      .replace(importStatement, (statement, names: string | undefined, from: string) => {
        if (names === undefined) otherImports.add(statement.trim())
        else
          namesBySource.set(from, new Set([...(namesBySource.get(from) ?? []), ...names.split(',').map((name) => name.trim())]))
        return ''
      })
      .trim(),
  )
  const imports = [
    ...otherImports,
    ...[...namesBySource].map(([from, names]) => {
      const list = [...names].filter((name) => name !== '').sort()
      const line = `import { ${list.join(', ')} } from '${from}'`
      return line.length <= lineWidth ? line : `import {\n${list.map((name) => `  ${name},\n`).join('')}} from '${from}'`
    }),
  ].sort((a, b) => compare(moduleOf(a), moduleOf(b)))
  return `${[imports.join('\n'), ...bodies].filter((part) => part !== '').join('\n\n')}\n`
}

const importStatement = /^import (?:\{([^}]*)\}|\S+) from '([^']+)'\n/gm
const lineWidth = 130

const moduleOf = (statement: string): string => /'([^']+)'$/.exec(statement)![1]!

/** Compares module specifiers: Node's modules come first, then packages, then local files. */
const compare = (a: string, b: string): number => rank(a) - rank(b) || (a < b ? -1 : 1)
const rank = (from: string): number => (from.startsWith('node:') ? 0 : from.startsWith('.') ? 2 : 1)
