/**
 * Allowed imports between packages (the table of ARCHITECTURE.md as data), a comparison of the actual imports with this table, and a search
 * for import cycles between folders.
 */
import { globSync, readFileSync } from 'node:fs'

/**
 * For each package, the other packages that its sources may import. Tests, examples, scripts, bench and interop may import all
 * packages.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  kube: [],
  apiserver: ['kube'],
  'kubernetes-kinds': ['kube', 'apiserver'],
  controller: ['kube'],
  api: ['kube'],
  conformance: ['kube', 'api'],
  extension: ['kube', 'api'],
  core: ['kube', 'api', 'controller', 'extension'],
  local: ['kube', 'api', 'controller', 'apiserver', 'kubernetes-kinds'],
  lab: ['kube', 'api', 'controller', 'apiserver', 'kubernetes-kinds', 'extension', 'core', 'local'],
  testing: ['kube', 'api', 'controller', 'apiserver', 'kubernetes-kinds', 'extension', 'core', 'local', 'lab'],
  cli: ['kube', 'api', 'controller', 'apiserver', 'kubernetes-kinds', 'extension', 'core', 'local', 'lab', 'conformance'],
}

/** Whether the file must also run in browsers. Such a file may import neither modules of Node nor `@capstan/kube/node`. */
const mustRunInBrowsers = (file: string): boolean =>
  /^packages\/(kube|api)\/src\//.test(file) && !file.startsWith('packages/kube/src/node/')

const isTest = (file: string): boolean => /\.(test|suite|test-d|e2e)\.ts$/.test(file)

/**
 * Returns a sentence for every import that violates one of these rules: `layers` allows the import; an import within a package is
 * relative, and an import of another package is not; a file that must run in browsers imports neither modules of Node nor
 * `@capstan/kube/node`. Also returns a sentence for every file of a package that is missing in `layers`.
 */
export function violations(root: string): string[] {
  const problems: string[] = []
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root }).sort()) {
    if (isTest(file)) continue
    const from = file.split('/')[1]!
    const allowed = layers[from]
    if (!allowed) {
      problems.push(`${file}: package ${from} is not in the table of scripts/layers.ts`)
      continue
    }
    for (const target of importsOf(readFileSync(`${root}/${file}`, 'utf8'))) {
      const importedPackage = /^@capstan\/([^/]+)/.exec(target)?.[1]
      if (importedPackage && importedPackage !== from && !allowed.includes(importedPackage)) {
        problems.push(`${file}: ${from} may not import ${target} (allowed: ${allowed.join(', ') || 'no other package'})`)
      }
      if (importedPackage === from) problems.push(`${file}: import files of the same package by relative path, not ${target}`)
      if (/^\.\.?\//.test(target) && !`${new URL(target, `file:///${file}`).pathname}`.startsWith(`/packages/${from}/`)) {
        problems.push(`${file}: ${target} reaches into another package`)
      }
      if (mustRunInBrowsers(file) && (target.startsWith('node:') || target === '@capstan/kube/node')) {
        problems.push(`${file}: ${from} runs in browsers and may not import ${target}`)
      }
    }
  }
  return problems
}

/** Packages that must have no import cycles between folders. */
const packagesWithoutCycles = ['apiserver']

/**
 * Returns import cycles between the folders of the packages in `packagesWithoutCycles`, each as `a → b → a` with one import for each
 * step. Checks, for each folder, the imports between its subfolders. A folder and the files beside it may import each other
 * (`verbs/write.ts` and `verbs/steps/`), except in `src`, whose files count as the folder `.`.
 */
export function folderCycles(root: string): string[] {
  return packagesWithoutCycles.flatMap((name) => {
    const imports = fileImports(root, `packages/${name}/src/`)
    const parents = new Set(imports.flatMap(({ from }) => parentsOf(from)))
    return [...parents].flatMap((parent) => cyclesOf(folderImports(imports, parent)).map((cycle) => `${name}: ${cycle}`))
  })
}

/** An import of a file by another, both as paths in `src`. */
interface FileImport {
  readonly from: string
  readonly to: string
}

function fileImports(root: string, src: string): FileImport[] {
  const files = globSync('**/*.ts', { cwd: `${root}/${src}` })
  return files.sort().flatMap((from) =>
    isTest(from)
      ? []
      : importsOf(readFileSync(`${root}/${src}${from}`, 'utf8'))
          .filter((target) => target.startsWith('.'))
          .map((target) => ({ from, to: new URL(target, `file:///${from}`).pathname.slice(1) })),
  )
}

/** Returns the folders that contain a file, such as `''`, `verbs/` and `verbs/steps/`. */
const parentsOf = (file: string): string[] => ['', ...Array.from(file.matchAll(/\//g), ({ index }) => file.slice(0, index + 1))]

/** Returns, for each folder in `parent`, the other folders in `parent` that its files import, with one such import. */
function folderImports(imports: readonly FileImport[], parent: string): Map<string, Map<string, string>> {
  const folderOf = (path: string): string | undefined => {
    if (!path.startsWith(parent)) return undefined
    const end = path.indexOf('/', parent.length)
    if (end >= 0) return path.slice(0, end)
    return parent === '' ? '.' : undefined
  }
  const folders = new Map<string, Map<string, string>>()
  for (const { from, to } of imports) {
    const [importing, imported] = [folderOf(from), folderOf(to)]
    if (importing === undefined || imported === undefined || importing === imported) continue
    const targets = folders.get(importing) ?? new Map<string, string>()
    folders.set(importing, targets)
    if (!targets.has(imported)) targets.set(imported, `${from} imports ${to}`)
  }
  return folders
}

/** Returns the cycles that a depth-first search finds, as text. These may not be all cycles, but at least one if there are any. */
function cyclesOf(imports: ReadonlyMap<string, ReadonlyMap<string, string>>): string[] {
  const visited = new Set<string>()
  const cycles: string[] = []
  const visit = (folder: string, path: readonly string[]): void => {
    const start = path.indexOf(folder)
    if (start >= 0) {
      const cycle = [...path.slice(start), folder]
      const steps = cycle.slice(1).map((to, i) => imports.get(cycle[i]!)?.get(to))
      cycles.push(`${cycle.join(' → ')} (${steps.join('; ')})`)
      return
    }
    if (visited.has(folder)) return
    for (const to of imports.get(folder)?.keys() ?? []) visit(to, [...path, folder])
    visited.add(folder)
  }
  for (const folder of [...imports.keys()].sort()) visit(folder, [])
  return cycles
}

/** Returns the actual imports of each package, for the graph in ARCHITECTURE.md. */
export function graph(root: string): Record<string, string[]> {
  const edges: Record<string, Set<string>> = Object.fromEntries(Object.keys(layers).map((name) => [name, new Set<string>()]))
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root })) {
    if (isTest(file)) continue
    const from = file.split('/')[1]!
    for (const target of importsOf(readFileSync(`${root}/${file}`, 'utf8'))) {
      const importedPackage = /^@capstan\/([^/]+)/.exec(target)?.[1]
      if (importedPackage && importedPackage !== from) edges[from]?.add(importedPackage)
    }
  }
  return Object.fromEntries(Object.entries(edges).map(([name, targets]) => [name, [...targets].sort()]))
}

function importsOf(source: string): string[] {
  const pattern = /(?:^|\n)\s*(?:import|export)\s(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g
  return [...source.matchAll(pattern)].map((match) => (match[1] ?? match[2])!)
}
