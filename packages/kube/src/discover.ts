/** Discovers at run time the resource of a kind that is known only by apiVersion and kind. */
import type { Client } from './client.ts'
import { orAbsent } from './errors.ts'
import { type Kind, unknownKind } from './kind.ts'
import { parseApiVersion, type UnknownObject } from './object.ts'

/** Finds kinds by apiVersion and kind. */
export type KindFinder = (type: { apiVersion: string; kind: string }, signal?: AbortSignal) => Promise<Kind<UnknownObject>>

interface ResourceList {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[]
}

/**
 * Returns a finder that requests the resources of each group and version once, and again for a kind that was not among them, because its
 * CustomResourceDefinition may have been created since. The promise rejects with upstream's text when the kind does not exist.
 * Upstream: sigs.k8s.io/controller-runtime/pkg/client/apiutil, restmapper.go.
 */
export function kindFinder({ transport }: Client): KindFinder {
  const known = new Map<string, ResourceList>()
  const inList = (apiVersion: string, kind: string) =>
    known.get(apiVersion)?.resources.find((one) => one.kind === kind && !one.name.includes('/'))
  return async ({ apiVersion, kind }, signal) => {
    if (!inList(apiVersion, kind)) {
      const { group, version } = parseApiVersion(apiVersion)
      const list = await orAbsent(transport.send({ verb: 'get', group, version, plural: '' }, signal))
      known.set(apiVersion, (list as ResourceList | undefined) ?? { resources: [] })
    }
    const found = inList(apiVersion, kind)
    if (!found) throw new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`)
    return unknownKind({ apiVersion, kind, plural: found.name, scope: found.namespaced ? 'Namespaced' : 'Cluster' })
  }
}
