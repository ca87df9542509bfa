/** Permissions that the suite `manifests` may leave unused, each with the reason why the roles grant it. */
import type { Permission } from './audit.ts'

interface Exception {
  readonly reason: string
  appliesTo(permission: Permission): boolean
}

const exceptions: readonly Exception[] = [
  {
    reason: 'for kinds of other providers, which do not exist in this run; upstream has the same rule',
    appliesTo: ({ group, resource }) =>
      resource === '*' && /^(bootstrap|controlplane|infrastructure)\.cluster\.x-k8s\.io$/.test(group),
  },
  {
    reason: 'checked by the admission plugin OwnerReferencesPermissionEnforcement; the audit log does not contain these checks',
    appliesTo: ({ role, resource, verb }) =>
      resource.endsWith('/finalizers') ||
      (role === 'capi-manager-role' && verb === 'delete' && ['configmaps', 'secrets'].includes(resource)),
  },
  {
    reason: 'objects are read again after a conflict, or when the cache does not have them yet',
    appliesTo: ({ group, resource, verb }) =>
      verb === 'get' && (/\.(x-k8s\.io|capstan\.dev)$/.test(group) || resource === 'secrets'),
  },
  {
    reason:
      'a namespace is read before a hook is called, and when a controller of Kubernetes deletes an object of a topology; this run has no reachable extension, and need not have such a deletion',
    appliesTo: ({ resource, verb }) => resource === 'namespaces' && verb === 'get',
  },
  {
    reason: 'a MachineHealthCheck is deleted with its MachineDeployment, or when the topology and the class no longer define it',
    appliesTo: ({ resource, verb }) => resource === 'machinehealthchecks' && verb === 'delete',
  },
  {
    reason: "upstream's contract gives core this verb for the kinds of every provider",
    appliesTo: ({ role, verb }) => role === 'capstan-local-capi-manager-role' && verb === 'update',
  },
  {
    reason: 'an Event that is repeated is patched to increase its count',
    appliesTo: ({ resource, verb }) => resource === 'events' && verb === 'patch',
  },
  {
    reason: 'a bootstrap config is deleted when its Machine could not be created',
    appliesTo: ({ role, group, verb }) =>
      role === 'capstan-local-manager-role' && group === 'bootstrap.capstan.dev' && verb === 'delete',
  },
  {
    reason:
      'a Secret is patched only to renew a certificate, a kubeconfig or bootstrap data; this run ends before a renewal is due',
    appliesTo: ({ role, resource, verb }) => role.startsWith('capstan-local-') && resource === 'secrets' && verb === 'patch',
  },
]

/** Returns the reason why the roles grant an unused permission; `undefined` if none is known. */
export const reasonFor = (permission: Permission): string | undefined =>
  exceptions.find((exception) => exception.appliesTo(permission))?.reason
