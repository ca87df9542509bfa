/** Permissions that the suite does not use, each with the reason why the roles grant it. */
import type { Right } from './audit.ts'

interface Exception {
  readonly reason: string
  is(right: Right): boolean
}

const exceptions: readonly Exception[] = [
  {
    reason: 'for kinds of other providers, which do not exist in this run; upstream has the same rule',
    is: ({ group, resource }) => resource === '*' && /^(bootstrap|controlplane|infrastructure)\.cluster\.x-k8s\.io$/.test(group),
  },
  {
    reason: 'checked by the admission plugin OwnerReferencesPermissionEnforcement, which the audit log does not contain',
    is: ({ role, resource, verb }) =>
      resource.endsWith('/finalizers') ||
      (role === 'capi-manager-role' && verb === 'delete' && ['configmaps', 'secrets'].includes(resource)),
  },
  {
    reason: 'objects are read again after a conflict, or when the cache does not have them yet',
    is: ({ group, resource, verb }) => verb === 'get' && (/\.(x-k8s\.io|capstan\.dev)$/.test(group) || resource === 'secrets'),
  },
  {
    reason: 'labels of a namespace are read before a hook is called, but this run has no reachable extension',
    is: ({ resource, verb }) => resource === 'namespaces' && verb === 'get',
  },
  {
    reason: 'a MachineHealthCheck is deleted when the topology and the class no longer define it',
    is: ({ resource, verb }) => resource === 'machinehealthchecks' && verb === 'delete',
  },
  {
    reason: "upstream's contract gives core this verb for the kinds of every provider",
    is: ({ role, verb }) => role === 'capstan-local-capi-manager-role' && verb === 'update',
  },
  {
    reason: 'the count of a repeated Event is increased',
    is: ({ resource, verb }) => resource === 'events' && verb === 'patch',
  },
  {
    reason: 'bootstrap config and infrastructure are deleted when their Machine could not be created',
    is: ({ role, group, verb }) =>
      role === 'capstan-local-manager-role' && group === 'bootstrap.capstan.dev' && verb === 'delete',
  },
  {
    reason: 'certificates and kubeconfigs are renewed after weeks',
    is: ({ role, resource, verb }) => role.startsWith('capstan-local-') && resource === 'secrets' && verb === 'patch',
  },
]

/** Returns the reason why the roles grant an unused permission; `undefined` if none is known. */
export const reasonFor = (right: Right): string | undefined => exceptions.find((exception) => exception.is(right))?.reason
