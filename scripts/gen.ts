/**
 * Makes every generated file anew: the drawing of packages in ARCHITECTURE.md, CustomResourceDefinitions, reference pages,
 * requests and answers of hooks.
 * With `--check` it writes nothing and fails when something would change.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { coreKinds } from '@capstan/api'
import type { DeclaredKind } from '@capstan/kube'
import { customResourceDefinition, resourceName } from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { stringify } from 'yaml'
import { conditionsPage, hooksPage } from './gen-pages.ts'
import { errorsPage } from './errors-page.ts'
import { hookFixtures } from './hook-fixtures.ts'
import { graph, layers } from './layers.ts'
import { metricsPage } from './metrics-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const check = process.argv.includes('--check')
const stale: string[] = []

const crdText = (kind: DeclaredKind): string =>
  `# Made by npm run gen from the declaration of ${kind.kind}.\n${stringify(customResourceDefinition(kind), { lineWidth: 0 })}`

const pages: [path: string, text: string][] = [
  ['docs/reference/errors.md', await errorsPage()],
  ['docs/reference/metrics.md', await metricsPage()],
]
for (const [path, text] of [...generated(), ...pages, ...(await hookFixtures())]) {
  const file = `${root}${path}`
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
  stale.push(path)
  if (check) continue
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  console.log(`wrote ${path}`)
}
if (check && stale.length > 0) {
  console.error(`Out of date: ${stale.join(', ')}`)
  process.exitCode = 1
}

function* generated(): Iterable<[path: string, text: string]> {
  yield ['ARCHITECTURE.md', withGraph(readFileSync(`${root}ARCHITECTURE.md`, 'utf8'))]
  for (const kind of [...coreKinds, ...localKinds]) yield [`config/crd/${resourceName(kind)}.yaml`, crdText(kind)]
  yield ['docs/reference/hooks.md', hooksPage()]
  yield ['docs/reference/conditions.md', conditionsPage()]
}

/** The table of who may import whom, and a drawing of who really does. */
function withGraph(page: string): string {
  const edges = graph(root)
  const lines = Object.entries(edges).flatMap(([from, targets]) => targets.map((to) => `  ${from} --> ${to}`))
  const table = Object.entries(layers).map(
    ([name, allowed]) => `| \`${name}\` | ${allowed.map((a) => `\`${a}\``).join(', ') || 'nothing of ours'} |`,
  )
  const text = [
    '| package | may import, of ours |',
    '| --- | --- |',
    ...table,
    '',
    '```mermaid',
    'graph BT',
    ...lines,
    '```',
  ].join('\n')
  return page.replace(/(<!-- graph[^>]*-->)[\s\S]*?(<!-- \/graph -->)/, `$1\n${text}\n$2`)
}
