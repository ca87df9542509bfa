/**
 * Writes the files that are generated from sources of this repository: CustomResourceDefinitions, reference pages, requests and responses
 * of hooks. (Files made from upstream's sources have scripts of their own.) Also updates the generated parts of other files: versions in
 * package.json files, the status table in README.md, programs in guides, and the table and graph of imports between packages in
 * ARCHITECTURE.md. With `--check` it writes nothing, and fails if a file would change.
 */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { coreKinds } from '@capstan/api'
import type { DeclaredKind } from '@capstan/kube'
import { customResourceDefinition, resourceName } from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { stringify } from 'yaml'
import { conditionsPage, hooksPage } from './gen-pages.ts'
import { contractsPage } from './contracts-page.ts'
import { errorsPage } from './errors-page.ts'
import { hookFixtures } from './hook-fixtures.ts'
import { graph, layers } from './layers.ts'
import { differencesPage } from './differences-page.ts'
import { metricsPage } from './metrics-page.ts'
import { statusTable } from './status-table.ts'
import { rootManifest } from './packages/manifests.ts'

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
  const { version } = rootManifest()
  for (const path of globSync('{packages,examples}/*/package.json', { cwd: root }).sort())
    yield [path, withVersion(readFileSync(`${root}${path}`, 'utf8'), version)]
  yield ['README.md', withStatus(readFileSync(`${root}README.md`, 'utf8'))]
  for (const guide of ['docs/guides/write-a-controller.md', 'docs/guides/test-on-a-virtual-clock.md'])
    yield [guide, withPrograms(readFileSync(`${root}${guide}`, 'utf8'), 'examples/cluster-lifetime')]
  yield ['ARCHITECTURE.md', withGraph(readFileSync(`${root}ARCHITECTURE.md`, 'utf8'))]
  for (const kind of [...coreKinds, ...localKinds]) yield [`config/crd/${resourceName(kind)}.yaml`, crdText(kind)]
  yield ['docs/reference/hooks.md', hooksPage()]
  yield ['docs/reference/conditions.md', conditionsPage()]
  yield ['docs/reference/differences.md', differencesPage()]
  yield ['docs/reference/contracts.md', contractsPage()]
}

/** Sets the version of a package, and of its dependencies on packages of the checkout, in the text of its package.json. */
function withVersion(manifest: string, version: string): string {
  return manifest
    .replace(/"version": "[^"]*"/, `"version": "${version}"`)
    .replace(/("@capstan\/[\w-]+": )"[^"]*"/g, `$1"${version}"`)
}

/** Copies files of `folder` into a guide: the content of `x.ts` into each code block that begins with "```ts x.ts". */
function withPrograms(page: string, folder: string): string {
  return page.replace(/^(```ts (\S+)\n)[^]*?(^```$)/gm, (_, begin: string, file: string, end: string) => {
    return `${begin}${readFileSync(`${root}${folder}/${file}`, 'utf8')}${end}`
  })
}

/** Replaces the table of implemented and missing features in a page. */
function withStatus(page: string): string {
  return page.replace(/(<!-- status[^>]*-->)[\s\S]*?(<!-- \/status -->)/, `$1\n${statusTable()}\n$2`)
}

/** Replaces the table of allowed imports between packages, and the graph of actual imports, in a page. */
function withGraph(page: string): string {
  const edges = graph(root)
  const lines = Object.entries(edges).flatMap(([from, targets]) => targets.map((to) => `  ${from} --> ${to}`))
  const table = Object.entries(layers).map(
    ([name, allowed]) => `| \`${name}\` | ${allowed.map((a) => `\`${a}\``).join(', ') || 'no other package'} |`,
  )
  const text = [
    '| package | may import these packages of the checkout |',
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
