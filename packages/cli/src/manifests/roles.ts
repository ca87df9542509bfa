/**
 * Permissions of the managers: the roles of `capstan manifests`. `npm run interop -- manifests` checks that managers need no other
 * permissions and use all of these, apart from the exceptions that the suite lists with reasons. `capstan doctor` checks whether a user has
 * the permissions of `managerRules`, and of `leaderElectionRules` without a webhook Secret.
 */
import type { PolicyRule } from '@capstan/kube'
import { resourceName } from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { webhookConfiguration } from './names.ts'

/**
 * All verbs that managers use except `update`, which only Leases and `/finalizers` need. A server-side apply that creates an object needs
 * `create` and `patch`.
 */
const allVerbs = ['create', 'delete', 'get', 'list', 'patch', 'watch']
const patchVerbs = ['get', 'list', 'patch', 'watch']
const watchVerbs = ['list', 'watch']
const rule = (apiGroups: string[], resources: string[], verbs: string[], resourceNames?: string[]): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
  ...(resourceNames ? { resourceNames } : {}),
})

/**
 * Permissions to patch the status, and to set owner references with blockOwnerDeletion (plugin
 * OwnerReferencesPermissionEnforcement).
 */
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

/**
 * Permissions to patch the CustomResourceDefinitions, which the manifests create, and to create and patch webhook configurations.
 * The manager sets `caBundle` in both.
 */
const installing = (provider: ProviderName): PolicyRule[] => [
  rule(['apiextensions.k8s.io'], ['customresourcedefinitions'], ['get', ...watchVerbs]),
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
    // Resources of ClusterResourceSets get an owner reference. OwnerReferencesPermissionEnforcement allows this only with permission to
    // delete the resources.
    rule([''], ['configmaps'], ['delete', 'patch', ...watchVerbs]),
    rule([''], ['events'], ['create', 'patch']),
    rule([''], ['namespaces'], ['get', ...watchVerbs]),
    rule([''], ['secrets'], allVerbs),
    // At the start, the manager looks for Leases of upstream's core manager in all namespaces.
    rule(['coordination.k8s.io'], ['leases'], ['list']),
    rule(['bootstrap.cluster.x-k8s.io', 'controlplane.cluster.x-k8s.io', 'infrastructure.cluster.x-k8s.io'], ['*'], allVerbs),
    rule([addons], ['clusterresourcesets'], patchVerbs),
    ...subresources(addons, ['clusterresourcesets']),
    rule([addons], ['clusterresourcesetbindings'], allVerbs),
    rule([core], ['clusters', 'clusterclasses'], ['get', ...watchVerbs]),
    rule([core], ['clusters'], ['patch']),
    rule([core], ['machinedrainrules'], watchVerbs),
    rule([core], workers, allVerbs),
    ...subresources(core, ['clusters', 'clusterclasses', ...workers]),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs'], patchVerbs),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs/status'], ['patch']),
    ...installing('core'),
    ...reviews,
  ]
}

const localGroups = [...new Set(localKinds.map(({ group }) => group))].sort()

/**
 * Core's permissions for the local provider's kinds. The manifests of every provider with kinds in groups other than upstream's must contain
 * such permissions. The provider contract includes the verb `update`, which Capstan's core does not need.
 */
export const localRulesForCore = (): PolicyRule[] => [rule(localGroups, ['*'], [...allVerbs, 'update'])]

function localRules(): PolicyRule[] {
  const core = 'cluster.x-k8s.io'
  return [
    rule(['bootstrap.capstan.dev', 'infrastructure.capstan.dev'], ['*'], allVerbs),
    rule(['controlplane.capstan.dev'], ['*'], patchVerbs),
    // Permits owner references with blockOwnerDeletion. The resource `*` of the rules above includes the status.
    rule(localGroups, ['*/finalizers'], ['update']),
    rule([''], ['events'], ['create', 'patch']),
    rule([''], ['secrets'], ['create', ...patchVerbs]),
    rule([core], ['clusters'], ['get', ...watchVerbs]),
    rule([core], ['machinepools'], ['patch', ...watchVerbs]),
    rule([core], ['machines'], allVerbs),
    rule([core], ['machines/status'], ['patch']),
    rule([core], ['machines/finalizers'], ['update']),
    rule(['runtime.cluster.x-k8s.io'], ['extensionconfigs'], watchVerbs),
    ...installing('local'),
    ...reviews,
  ]
}

/**
 * Permissions in the manager's namespace. `webhookSecret`: name of the Secret in which the manager keeps the certificate of its webhooks;
 * `undefined` if it keeps none. Core needs no rule for this Secret, because its cluster-wide rules include Secrets.
 */
export const leaderElectionRules = (provider: ProviderName, webhookSecret: string | undefined): PolicyRule[] => [
  rule(['coordination.k8s.io'], ['leases'], ['create', 'get', 'update']),
  rule([''], ['events'], ['create']),
  ...(webhookSecret === undefined || provider === 'core'
    ? []
    : [rule([''], ['secrets'], ['create']), rule([''], ['secrets'], ['get', 'patch'], [webhookSecret])]),
]
