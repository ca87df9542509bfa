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
 * Returns a finder that caches the resources of each requested group and version. It requests them again for an unknown kind, because its
 * CustomResourceDefinition may have been created since. A call rejects with upstream's text when the kind does not exist.
 * Upstream: sigs.k8s.io/controller-runtime/pkg/client/apiutil, restmapper.go.
 */
export function kindFinder({ transport }: Client): KindFinder {
  const lists = new Map<string, ResourceList>()
  const findInLists = (apiVersion: string, kind: string) =>
    lists.get(apiVersion)?.resources.find((resource) => resource.kind === kind && !resource.name.includes('/'))
  return async ({ apiVersion, kind }, signal) => {
    if (!findInLists(apiVersion, kind)) {
      const { group, version } = parseApiVersion(apiVersion)
      const list = await orAbsent(transport.send({ verb: 'get', group, version, plural: '' }, signal))
      lists.set(apiVersion, (list as ResourceList | undefined) ?? { resources: [] })
    }
    const resource = findInLists(apiVersion, kind)
    if (!resource) throw new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`)
    return unknownKind({ apiVersion, kind, plural: resource.name, scope: resource.namespaced ? 'Namespaced' : 'Cluster' })
  }
}
