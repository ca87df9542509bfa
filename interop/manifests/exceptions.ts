/** Permissions that the suite does not use, each with the reason why the roles grant it. */
import type { Right } from './audit.ts'

interface Exception {
  readonly reason: string
  is(right: Right): boolean
}

const exceptions: readonly Exception[] = [
  {
    reason: 'kinds of other providers, which no run can know: upstream has the same rule',
    is: ({ group, resource }) => resource === '*' && /^(bootstrap|controlplane|infrastructure)\.cluster\.x-k8s\.io$/.test(group),
  },
  {
    reason: 'asked by the admission plugin OwnerReferencesPermissionEnforcement, which the audit log does not show',
    is: ({ role, resource, verb }) =>
      resource.endsWith('/finalizers') ||
      (role === 'capi-manager-role' && verb === 'delete' && ['configmaps', 'secrets'].includes(resource)),
  },
  {
    reason: 'objects are read again after a conflict, or when the cache does not have them yet',
    is: ({ group, resource, verb }) => verb === 'get' && (/\.(x-k8s\.io|capstan\.dev)$/.test(group) || resource === 'secrets'),
  },
  {
    reason: 'labels of a namespace are read before a hook is called, and no extension is reachable here',
    is: ({ resource, verb }) => resource === 'namespaces' && verb === 'get',
  },
  {
    reason: 'a health check that a topology or class no longer has is deleted',
    is: ({ resource, verb }) => resource === 'machinehealthchecks' && verb === 'delete',
  },
  {
    reason: 'an Event that repeats is counted up',
    is: ({ resource, verb }) => resource === 'events' && verb === 'patch',
  },
  {
    reason: 'what was made for a Machine is deleted when the Machine itself could not be created',
    is: ({ role, group, verb }) =>
      role === 'capstan-local-manager-role' && group === 'bootstrap.capstan.dev' && verb === 'delete',
  },
  {
    reason: 'certificates and kubeconfigs are renewed after weeks',
    is: ({ role, resource, verb }) => role.startsWith('capstan-local-') && resource === 'secrets' && verb === 'patch',
  },
]

/** Why the roles have the right; `undefined` when nothing needs it. */
export const reasonFor = (right: Right): string | undefined => exceptions.find((one) => one.is(right))?.reason
