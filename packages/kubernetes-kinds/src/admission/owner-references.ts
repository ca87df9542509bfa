/**
 * Plugin OwnerReferencesPermissionEnforcement: changing the owner references of an existing object requires permission to delete it, and
 * setting blockOwnerDeletion requires permission to update the owner's finalizers. The status subresource of pods is exempt. Upstream:
 * plugin/pkg/admission/gc.
 */
import { equal, type KubeObject, type OwnerReference, parseApiVersion } from '@capstan/kube'
import { type ResourceAttributes, type Resource, forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

export const ownerReferences: Plugin = {
  name: 'OwnerReferencesPermissionEnforcement',
  appliesTo: () => true,
  validate(write) {
    const { operation, info, subresource, object, old, authorizer, namespace, caller: user } = write
    if (operation === 'DELETE' || (info.storage === 'pods' && subresource === 'status')) return
    if (equal(ownersOf(object), ownersOf(old))) return
    const authorize = (attributes: Omit<ResourceAttributes, 'kind' | 'user'>) =>
      authorizer.decide({ kind: 'resource', user, ...attributes })
    if (operation === 'UPDATE') {
      const { group, plural: resource } = info
      const { allowed, reason } = authorize({ verb: 'delete', group, resource, subresource, namespace, name: write.name })
      if (!allowed) throw forbidden(write, `cannot set an ownerRef on a resource you can't delete: ${reason}, <nil>`)
    }
    const blockingOwners = newlyBlocking(object, old)
    const finalize = { verb: 'update', subresource: 'finalizers' }
    if (blockingOwners.length === 0 || authorize({ ...finalize, group: '*', resource: '*', name: '*' }).allowed) return
    for (const { apiVersion, kind, name } of blockingOwners) {
      for (const owner of resourcesOfOwner(write, apiVersion, kind)) {
        const scope = owner.namespaced ? { namespace } : {}
        const { allowed, reason } = authorize({ ...finalize, group: owner.group, resource: owner.plural, name, ...scope })
        if (allowed) continue
        const problem = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        throw forbidden(write, `${problem}: ${reason}, <nil>`)
      }
    }
  },
}

const ownersOf = (object: KubeObject | undefined): readonly OwnerReference[] => object?.metadata.ownerReferences ?? []

/** Returns the references that newly set blockOwnerDeletion. */
function newlyBlocking(object: KubeObject, old: KubeObject | undefined): OwnerReference[] {
  const before = new Map(ownersOf(old).map((owner) => [owner.uid, owner.blockOwnerDeletion]))
  return ownersOf(object).filter(({ blockOwnerDeletion, uid }) => blockOwnerDeletion === true && before.get(uid) !== true)
}

function resourcesOfOwner(write: PluginWrite, apiVersion: string, kind: string): Resource[] {
  const { group, version } = parseApiVersion(apiVersion)
  const resources = write.registry.list().filter((info) => info.group === group && info.version === version && info.kind === kind)
  if (resources.length > 0) return resources
  throw forbidden(
    write,
    `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${apiVersion} Kind ${kind}: ` +
      `no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`,
  )
}
