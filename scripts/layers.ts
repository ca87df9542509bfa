/** Who may import whom: the table of ARCHITECTURE.md as data, and the imports of the sources to hold against it. */
import { readFileSync } from 'node:fs'
import { globSync } from 'node:fs'

/** Package → packages of ours that its sources may import. Tests, examples, scripts, bench and interop may import anything. */
export const layers: Readonly<Record<string, readonly string[]>> = {
  kube: [],
  apiserver: ['kube'],
  controller: ['kube'],
  api: ['kube'],
  extension: ['kube', 'api'],
  core: ['kube', 'api', 'controller', 'extension'],
  local: ['kube', 'api', 'controller', 'apiserver'],
  lab: ['kube', 'api', 'controller', 'apiserver', 'extension', 'core', 'local'],
  testing: ['kube', 'api', 'controller', 'apiserver', 'extension', 'core', 'local', 'lab'],
  cli: ['kube', 'api', 'controller', 'apiserver', 'extension', 'core', 'local', 'lab'],
}

/** Folders that must also run in a browser: no Node built-ins, no `@capstan/kube/node`. */
const browserSafe = (file: string): boolean =>
  /^packages\/(kube|api)\/src\//.test(file) && !file.startsWith('packages/kube/src/node/')

const isTest = (file: string): boolean => /\.(test|suite|test-d|e2e)\.ts$/.test(file)

/** Every import that the table does not allow, as a sentence. */
export function violations(root: string): string[] {
  const found: string[] = []
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root }).sort()) {
    if (isTest(file)) continue
    const from = file.split('/')[1]!
    const allowed = layers[from]
    if (!allowed) {
      found.push(`${file}: package ${from} is not in the table of scripts/layers.ts`)
      continue
    }
    for (const target of importsOf(readFileSync(`${root}/${file}`, 'utf8'))) {
      const ours = /^@capstan\/([^/]+)/.exec(target)?.[1]
      if (ours && ours !== from && !allowed.includes(ours)) {
        found.push(`${file}: ${from} may not import ${target} (allowed: ${allowed.join(', ') || 'nothing of ours'})`)
      }
      if (ours === from) found.push(`${file}: import files of the own package by relative path, not ${target}`)
      if (/^\.\.?\//.test(target) && !`${new URL(target, `file:///${file}`).pathname}`.startsWith(`/packages/${from}/`)) {
        found.push(`${file}: ${target} reaches into another package`)
      }
      if (browserSafe(file) && (target.startsWith('node:') || target === '@capstan/kube/node')) {
        found.push(`${file}: ${from} runs in browsers and may not import ${target}`)
      }
    }
  }
  return found
}

/** Packages with the ones each really imports: what the drawing in ARCHITECTURE.md shows. */
export function graph(root: string): Record<string, string[]> {
  const edges: Record<string, Set<string>> = Object.fromEntries(Object.keys(layers).map((name) => [name, new Set<string>()]))
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root })) {
    if (isTest(file)) continue
    const from = file.split('/')[1]!
    for (const target of importsOf(readFileSync(`${root}/${file}`, 'utf8'))) {
      const ours = /^@capstan\/([^/]+)/.exec(target)?.[1]
      if (ours && ours !== from) edges[from]?.add(ours)
    }
  }
  return Object.fromEntries(Object.entries(edges).map(([name, targets]) => [name, [...targets].sort()]))
}

function importsOf(source: string): string[] {
  const pattern = /(?:^|\n)\s*(?:import|export)\s(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g
  return [...source.matchAll(pattern)].map((match) => (match[1] ?? match[2])!)
}
