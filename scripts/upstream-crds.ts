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
  ['cluster.x-k8s.io_clusters', 'v1beta2'],
  ['cluster.x-k8s.io_clusterclasses', 'v1beta2'],
  ['cluster.x-k8s.io_machines', 'v1beta2'],
  ['cluster.x-k8s.io_machinesets', 'v1beta2'],
  ['cluster.x-k8s.io_machinedeployments', 'v1beta2'],
  ['runtime.cluster.x-k8s.io_extensionconfigs', 'v1beta2', 'v1alpha1'],
]

const folder = mkdtempSync(join(tmpdir(), 'upstream-crds-'))
const go = (...args: string[]): string => execFileSync('go', args, { cwd: folder, encoding: 'utf8' })
go('mod', 'init', 'upstream-crds')
const { Dir } = JSON.parse(go('mod', 'download', '-json', `sigs.k8s.io/cluster-api@${version}`)) as { Dir: string }

const facts: Record<string, unknown> = {}
for (const [file, ...versions] of files) {
  const { spec } = parse(readFileSync(join(Dir, 'core/config/crd/bases', `${file}.yaml`), 'utf8'))
  for (const version of versions) {
    const served = spec.versions.find(({ name }: { name: string }) => name === version)
    facts[version === 'v1beta2' ? spec.names.kind : `${spec.names.kind} ${version}`] = {
      group: spec.group,
      names: spec.names,
      scope: spec.scope,
      ...(served.deprecated ? { deprecated: true } : {}),
      subresources: served.subresources,
      columns: served.additionalPrinterColumns.map(
        ({ description: _description, ...column }: { description?: string }) => column,
      ),
      schema: schemaFacts(served.schema.openAPIV3Schema),
    }
  }
}

// One path per line, so that a change of upstream's can be read as a diff.
const lines = JSON.stringify(facts, null, 1)
  .replace(/\n {4,}/g, ' ')
  .replace(/\n {3}(?=[}\]])/g, ' ')
writeFileSync(new URL('../packages/api/testdata/upstream-crds.json', import.meta.url), `${lines}\n`)
