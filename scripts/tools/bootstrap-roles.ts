/**
 * `node scripts/tools/bootstrap-roles.ts` reads the default RBAC roles and bindings from the test data of the Kubernetes module, and writes
 * `packages/kubernetes-kinds/src/auth/bootstrap-objects.json`. Needs Go, which downloads the module.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { BootstrapObjects } from '../../packages/kubernetes-kinds/src/auth/bootstrap-roles.ts'

const version = 'v1.36.2'

interface PublishedObject {
  readonly metadata: { name: string; namespace?: string; labels?: { [label: string]: string } }
  readonly [field: string]: unknown
}

const { Dir } = JSON.parse(
  execFileSync('go', ['mod', 'download', '-json', `k8s.io/kubernetes@${version}`], { encoding: 'utf8' }),
) as { Dir: string }
const itemsOf = (name: string): readonly PublishedObject[] => {
  const file = join(Dir, 'plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata', `${name}.yaml`)
  return (parse(readFileSync(file, 'utf8')) as { items: readonly PublishedObject[] }).items
}

/** Returns the object without apiVersion, kind, the annotation and the label `kubernetes.io/bootstrapping`, which all objects have. */
function ownContent({ metadata: { name, namespace, labels = {} }, ...fields }: PublishedObject): object {
  const own = Object.entries(labels).filter(([label]) => label !== 'kubernetes.io/bootstrapping')
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(own.length === 0 ? {} : { labels: Object.fromEntries(own) }),
    ...Object.fromEntries(Object.entries(fields).filter(([field]) => field !== 'apiVersion' && field !== 'kind')),
  }
}

const contentOf = (...names: string[]): object[] => names.flatMap(itemsOf).map(ownContent)
const objects: { readonly [kind in keyof BootstrapObjects]: readonly object[] } = {
  roles: contentOf('cluster-roles', 'controller-roles', 'namespace-roles'),
  bindings: contentOf('cluster-role-bindings', 'controller-role-bindings', 'namespace-role-bindings'),
}
// One rule or subject per line, so that a diff shows upstream's changes.
const text = JSON.stringify(objects, null, 1)
  .replace(/\n {5,}/g, ' ')
  .replace(/\n {4}(?=[}\]])/g, ' ')
writeFileSync(join(import.meta.dirname, '../../packages/kubernetes-kinds/src/auth/bootstrap-objects.json'), `${text}\n`)
process.stderr.write(`${objects.roles.length} roles, ${objects.bindings.length} bindings of ${version}\n`)
