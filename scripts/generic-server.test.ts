/**
 * Tests that the generic API server names no built-in resource, with few exceptions. The package `kubernetes-kinds` provides the built-in
 * resources.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { builtins } from '../packages/kubernetes-kinds/src/builtin-resources.ts'

const root = join(import.meta.dirname, '../packages/apiserver/src')

/** Groups that a generic server itself needs. Upstream: k8s.io/apiserver, apiextensions-apiserver and kube-aggregator use them. */
const machineryGroups = new Set([
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
])

/** Names that the generic server may contain, with the files in which they are allowed. */
const exceptions: { readonly [name: string]: readonly string[] | 'everywhere' } = {
  // Namespaces are part of the API itself.
  namespaces: 'everywhere',
  // Permission to impersonate a service account. Upstream: k8s.io/apiserver/pkg/endpoints/filters/impersonation.
  serviceaccounts: ['auth/impersonate.ts'],
  // Kind of a subject in role bindings.
  ServiceAccount: ['auth/rules.ts'],
  // Authorization mode.
  Node: ['auth/authorizer.ts'],
  // Events may not own objects. Upstream: BannedOwners of k8s.io/apimachinery.
  Event: ['verbs/steps/metadata.ts'],
  // Format of the scale subresource of custom resources.
  Scale: 'everywhere',
}

const names = new Set(builtins.all.flatMap(({ group, plural, kind }) => (machineryGroups.has(group) ? [] : [plural, kind])))

test('no string in the code of the generic server equals the plural or kind of a built-in resource, except those in `machineryGroups` and in `exceptions`', () => {
  const found = globSync('**/*.ts', { cwd: root, exclude: ['**/*.{test,suite}.ts', '**/golden-*.ts', 'store/crash-writer.ts'] })
    .flatMap((file) => {
      const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*$/gm, '')
      return [...code.matchAll(/'(\w+)'/g)].map(([, name]) => ({ file, name: name! }))
    })
    .filter(({ file, name }) => {
      const allowed = exceptions[name] ?? []
      return names.has(name) && allowed !== 'everywhere' && !allowed.includes(file)
    })
  expect(found).toEqual([])
})
