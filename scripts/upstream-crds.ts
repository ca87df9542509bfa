/**
 * Extracts the facts of upstream's CustomResourceDefinitions (no descriptions) that the parity test of `packages/api` compares
 * ours with. Needs Go, for its module cache. Run: node scripts/upstream-crds.ts
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { schemaFacts } from '../packages/api/test/schema-facts.ts'

const version = 'v1.14.0'
const files = [
  'cluster.x-k8s.io_clusters',
  'cluster.x-k8s.io_clusterclasses',
  'cluster.x-k8s.io_machines',
  'cluster.x-k8s.io_machinesets',
  'cluster.x-k8s.io_machinedeployments',
  'runtime.cluster.x-k8s.io_extensionconfigs',
]

const folder = mkdtempSync(join(tmpdir(), 'upstream-crds-'))
const go = (...args: string[]): string => execFileSync('go', args, { cwd: folder, encoding: 'utf8' })
go('mod', 'init', 'upstream-crds')
const { Dir } = JSON.parse(go('mod', 'download', '-json', `sigs.k8s.io/cluster-api@${version}`)) as { Dir: string }

const facts: Record<string, unknown> = {}
for (const file of files) {
  const { spec } = parse(readFileSync(join(Dir, 'core/config/crd/bases', `${file}.yaml`), 'utf8'))
  const served = spec.versions.find(({ name }: { name: string }) => name === 'v1beta2')
  facts[spec.names.kind] = {
    group: spec.group,
    names: spec.names,
    scope: spec.scope,
    subresources: served.subresources,
    columns: served.additionalPrinterColumns.map(({ description: _description, ...column }: { description?: string }) => column),
    schema: schemaFacts(served.schema.openAPIV3Schema),
  }
}

// One path per line, so that a change of upstream's can be read as a diff.
const lines = JSON.stringify(facts, null, 1)
  .replace(/\n {4,}/g, ' ')
  .replace(/\n {3}(?=[}\]])/g, ' ')
writeFileSync(new URL('../packages/api/testdata/upstream-crds.json', import.meta.url), `${lines}\n`)
