/**
 * Names of kube-apiserver's admission plugins: which are implemented here, and which upstream enables by default. Upstream:
 * pkg/kubeapiserver/options/plugins.go, v1.36.
 */

/**
 * `on` and `off`: implemented, and enabled or disabled by default upstream. `absent`: enabled by default upstream, not implemented here,
 * see docs/reference/gaps.md. `rejected`: disabled by default upstream, not implemented here; enabling it is an error.
 */
const plugins = {
  AlwaysAdmit: 'off',
  AlwaysDeny: 'off',
  AlwaysPullImages: 'rejected',
  CertificateApproval: 'on',
  CertificateSigning: 'on',
  CertificateSubjectRestriction: 'on',
  ClusterTrustBundleAttest: 'absent',
  DefaultIngressClass: 'on',
  DefaultStorageClass: 'on',
  DefaultTolerationSeconds: 'on',
  DenyServiceExternalIPs: 'rejected',
  EventRateLimit: 'rejected',
  ExtendedResourceToleration: 'rejected',
  ImagePolicyWebhook: 'rejected',
  JobValidation: 'absent',
  LimitPodHardAntiAffinityTopology: 'rejected',
  LimitRanger: 'on',
  MutatingAdmissionPolicy: 'absent',
  MutatingAdmissionWebhook: 'on',
  NamespaceAutoProvision: 'rejected',
  NamespaceExists: 'rejected',
  NamespaceLifecycle: 'on',
  NodeDeclaredFeatureValidator: 'absent',
  NodeRestriction: 'rejected',
  OwnerReferencesPermissionEnforcement: 'off',
  PersistentVolumeClaimResize: 'on',
  PodGroupProtection: 'absent',
  PodGroupWorkloadExists: 'absent',
  PodNodeSelector: 'rejected',
  PodResizeValidator: 'absent',
  PodSecurity: 'on',
  PodTolerationRestriction: 'rejected',
  PodTopologyLabels: 'absent',
  Priority: 'on',
  ResourceQuota: 'on',
  RuntimeClass: 'on',
  ServiceAccount: 'on',
  StorageObjectInUseProtection: 'on',
  TaintNodesByCondition: 'on',
  ValidatingAdmissionPolicy: 'on',
  ValidatingAdmissionWebhook: 'on',
} as const satisfies { readonly [name: string]: 'on' | 'off' | 'absent' | 'rejected' }

type Plugins = typeof plugins
type Name = keyof Plugins

/** Name of an implemented plugin. */
export type AdmissionPlugin = { [N in Name]: Plugins[N] extends 'on' | 'off' ? N : never }[Name]

const isImplemented = (name: Name): name is AdmissionPlugin => plugins[name] === 'on' || plugins[name] === 'off'

/** Names of the implemented plugins. */
export const AdmissionPlugins: readonly AdmissionPlugin[] = (Object.keys(plugins) as Name[]).filter(isImplemented)

/** Returns the state of a plugin; `undefined` for a name that does not exist upstream. */
export const admissionPluginState = (name: string): 'on' | 'off' | 'absent' | 'rejected' | undefined =>
  Object.hasOwn(plugins, name) ? plugins[name as Name] : undefined

/** Enables and disables plugins, in addition to the defaults. A plugin in both lists is enabled. */
export interface AdmissionPluginSwitches {
  readonly enable?: readonly AdmissionPlugin[]
  readonly disable?: readonly AdmissionPlugin[]
}

/** Returns the enabled plugins: the implemented ones that upstream enables by default, as changed by the lists. */
export const enabledPlugins = ({ enable = [], disable = [] }: AdmissionPluginSwitches = {}): ReadonlySet<AdmissionPlugin> =>
  new Set(AdmissionPlugins.filter((name) => enable.includes(name) || (plugins[name] === 'on' && !disable.includes(name))))

/**
 * Plugins that rely on controllers. `createApiServer` disables them by default, except ServiceAccount when `controllers.serviceAccounts` is
 * set.
 */
export const controllerPlugins = ['ServiceAccount', 'StorageObjectInUseProtection', 'TaintNodesByCondition'] as const
