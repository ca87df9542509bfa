/**
 * Writes all versions of the CustomResourceDefinitions of upstream's core, without descriptions and with one entry for each path of a
 * schema, to `packages/api/testdata/upstream-crds.json`. A test of `packages/api` compares Capstan's CustomResourceDefinitions with them.
 * Downloads upstream's module with Go. Run: node scripts/upstream-crds.ts
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { schemaFacts } from '../packages/api/test/schema-facts.ts'

const version = 'v1.14.0'
const folder = mkdtempSync(join(tmpdir(), 'upstream-crds-'))
const go = (...args: string[]): string => execFileSync('go', args, { cwd: folder, encoding: 'utf8' })
go('mod', 'init', 'upstream-crds')
const { Dir } = JSON.parse(go('mod', 'download', '-json', `sigs.k8s.io/cluster-api@${version}`)) as { Dir: string }

const bases = join(Dir, 'core/config/crd/bases')
const facts: Record<string, unknown> = {}
for (const file of readdirSync(bases).sort()) {
  const { spec } = parse(readFileSync(join(bases, file), 'utf8'))
  for (const { name, served, storage, deprecated, subresources, additionalPrinterColumns, schema } of spec.versions) {
    facts[storage ? spec.names.kind : `${spec.names.kind} ${name}`] = {
      group: spec.group,
      version: name,
      names: spec.names,
      scope: spec.scope,
      served,
      storage,
      ...(deprecated ? { deprecated } : {}),
      subresources,
      columns: additionalPrinterColumns.map(({ description: _description, ...column }: { description?: string }) => column),
      schema: schemaFacts(schema.openAPIV3Schema),
    }
  }
}

// One path per line, so that a diff shows upstream's changes.
const lines = JSON.stringify(facts, null, 1)
  .replace(/\n {4,}/g, ' ')
  .replace(/\n {3}(?=[}\]])/g, ' ')
writeFileSync(new URL('../packages/api/testdata/upstream-crds.json', import.meta.url), `${lines}\n`)
