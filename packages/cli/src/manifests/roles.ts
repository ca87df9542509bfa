/**
 * Permissions of the managers: the roles of `capstan manifests`, which `capstan doctor` checks. `npm run interop -- manifests` proves
 * that a manager needs each rule, and no other.
 */
import type { PolicyRule } from '@capstan/kube'
import { resourceName } from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { webhookConfiguration } from './names.ts'

/** Verbs for objects. Only Leases are written by PUT. Creating by apply requires `create` and `patch`. */
const all = ['create', 'delete', 'get', 'list', 'patch', 'watch']
const changing = ['get', 'list', 'patch', 'watch']
const watching = ['list', 'watch']
const rule = (apiGroups: string[], resources: string[], verbs: string[], resourceNames?: string[]): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
  ...(resourceNames ? { resourceNames } : {}),
})

/** Permissions for the status, and for owner references with blockOwnerDeletion (admission plugin OwnerReferencesPermissionEnforcement). */
const subresources = (group: string, resources: string[]): PolicyRule[] => [
  rule(
    [group],
    resources.map((resource) => `${resource}/status`),
    ['patch'],
  ),
  rule(
    [group],
    resources.map((resource) => `${resource}/finalizers`),
    ['update'],
  ),
]

/** Permissions to authenticate and authorize the clients of the diagnostics endpoint. */
const reviews = [
  rule(['authentication.k8s.io'], ['tokenreviews'], ['create']),
  rule(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
]

/** Permissions to install CustomResourceDefinitions and webhook configurations, with the authority of the manager's certificate. */
const installing = (provider: ProviderName): PolicyRule[] => [
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['get', ...watching]),
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['patch'], providerKinds[provider].map(resourceName)),
  // `create` cannot be restricted to a resource name.
  rule(['admissionregistration.k8s.io'], ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'], ['create']),
  rule(
    ['admissionregistration.k8s.io'],
    ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
    ['patch'],
    [webhookConfiguration(provider)],
  ),
]

/** Cluster-wide permissions of a manager. */
export const managerRules = (provider: ProviderName): PolicyRule[] => (provider === 'core' ? coreRules() : localRules())

function coreRules(): PolicyRule[] {
  const core = 'cluster.x-k8s.io'
  const addons = 'addons.cluster.x-k8s.io'
  const workers = ['machinedeployments', 'machinehealthchecks', 'machinepools', 'machines', 'machinesets']
  return [
    // Resources of ClusterResourceSets get an owner, which OwnerReferencesPermissionEnforcement allows only with permission to delete them.
    rule([''], ['configmaps'], ['delete', 'patch', ...watching]),
    rule([''], ['events'], ['create', 'patch']),
    rule([''], ['namespaces'], ['get', ...watching]),
    rule([''], ['secrets'], all),
    // Upstream's core manager and ours exclude each other across namespaces.
    rule(['coordination.k8s.io'], ['leases'], ['list']),
    rule(['bootstrap.cluster.x-k8s.io', 'controlplane.cluster.x-k8s.io', 'infrastructure.cluster.x-k8s.io'], ['*'], all),
    rule([addons], ['clusterresourcesets'], changing),
    ...subresources(addons, ['clusterresourcesets']),
    rule([addons], ['clusterresourcesetbindings'], all),
    rule([core], ['clusters', 'clusterclasses'], ['get', ...watching]),
    rule([core], ['clusters'], ['patch']),
    rule([core], ['machinedrainrules'], watching),
    rule([core], workers, all),
    ...subresources(core, ['clusters', 'clusterclasses', ...workers]),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs'], changing),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs/status'], ['patch']),
    ...installing('core'),
    ...reviews,
  ]
}

const localGroups = [...new Set(localKinds.map(({ group }) => group))].sort()

/** Core's permissions for the local provider's kinds, as for those of any provider. */
export const localRulesForCore = (): PolicyRule[] => [rule(localGroups, ['*'], all)]

function localRules(): PolicyRule[] {
  const core = 'cluster.x-k8s.io'
  return [
    rule(['bootstrap.capstan.dev', 'infrastructure.capstan.dev'], ['*'], all),
    rule(['controlplane.capstan.dev'], ['*'], changing),
    // For owner references with blockOwnerDeletion; status is included above.
    rule(localGroups, ['*/finalizers'], ['update']),
    rule([''], ['events'], ['create', 'patch']),
    rule([''], ['secrets'], ['create', ...changing]),
    rule([core], ['clusters'], ['get', ...watching]),
    rule([core], ['machinepools'], ['patch', ...watching]),
    rule([core], ['machines'], all),
    rule([core], ['machines/status'], ['patch']),
    rule([core], ['machines/finalizers'], ['update']),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs'], watching),
    ...installing('local'),
    ...reviews,
  ]
}

/** Permissions in the namespace of the manager. `webhookSecret`: the Secret in which it keeps the certificate of its webhooks, if any. */
export const leaderElectionRules = (provider: ProviderName, webhookSecret: string | undefined): PolicyRule[] => [
  rule(['coordination.k8s.io'], ['leases'], ['create', 'get', 'update']),
  rule([''], ['events'], ['create']),
  ...(webhookSecret === undefined || provider === 'core'
    ? []
    : [rule([''], ['secrets'], ['create']), rule([''], ['secrets'], ['get', 'patch'], [webhookSecret])]),
]
