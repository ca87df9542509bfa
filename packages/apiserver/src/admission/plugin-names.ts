/**
 * Admission plugins by the names that kube-apiserver has for them: which there are here, and which run unless told otherwise.
 * Upstream: pkg/kubeapiserver/options/plugins.go, v1.36.
 */

/**
 * `on` and `off`: part of this server, and whether it runs unless told otherwise. `absent`: upstream runs it unless told otherwise,
 * and here it does nothing: docs/reference/gaps.md. `refused`: whoever names it wants something that nobody here would do.
 */
const plugins = {
  AlwaysAdmit: 'off',
  AlwaysDeny: 'off',
  AlwaysPullImages: 'refused',
  CertificateApproval: 'on',
  CertificateSigning: 'on',
  CertificateSubjectRestriction: 'on',
  ClusterTrustBundleAttest: 'absent',
  DefaultIngressClass: 'on',
  DefaultStorageClass: 'on',
  DefaultTolerationSeconds: 'on',
  DenyServiceExternalIPs: 'refused',
  EventRateLimit: 'refused',
  ExtendedResourceToleration: 'refused',
  ImagePolicyWebhook: 'refused',
  JobValidation: 'absent',
  LimitPodHardAntiAffinityTopology: 'refused',
  LimitRanger: 'on',
  MutatingAdmissionPolicy: 'absent',
  MutatingAdmissionWebhook: 'on',
  NamespaceAutoProvision: 'refused',
  NamespaceExists: 'refused',
  NamespaceLifecycle: 'on',
  NodeDeclaredFeatureValidator: 'absent',
  NodeRestriction: 'refused',
  OwnerReferencesPermissionEnforcement: 'off',
  PersistentVolumeClaimResize: 'on',
  PodGroupProtection: 'absent',
  PodGroupWorkloadExists: 'absent',
  PodNodeSelector: 'refused',
  PodResizeValidator: 'absent',
  PodSecurity: 'on',
  PodTolerationRestriction: 'refused',
  PodTopologyLabels: 'absent',
  Priority: 'on',
  ResourceQuota: 'on',
  RuntimeClass: 'on',
  ServiceAccount: 'on',
  StorageObjectInUseProtection: 'on',
  TaintNodesByCondition: 'on',
  ValidatingAdmissionPolicy: 'on',
  ValidatingAdmissionWebhook: 'on',
} as const satisfies { readonly [name: string]: 'on' | 'off' | 'absent' | 'refused' }

type Plugins = typeof plugins
type Name = keyof Plugins

/** A plugin that is part of this server. */
export type AdmissionPlugin = { [N in Name]: Plugins[N] extends 'on' | 'off' ? N : never }[Name]

const isHere = (name: Name): name is AdmissionPlugin => plugins[name] === 'on' || plugins[name] === 'off'

/** Those that are part of this server. */
export const AdmissionPlugins: readonly AdmissionPlugin[] = (Object.keys(plugins) as Name[]).filter(isHere)

/** What there is of a plugin of this name; `undefined` for a name that upstream does not have either. */
export const admissionPluginState = (name: string): 'on' | 'off' | 'absent' | 'refused' | undefined =>
  Object.hasOwn(plugins, name) ? plugins[name as Name] : undefined

/** Which plugins run, beside those that run unless told otherwise. */
export interface AdmissionPluginSwitches {
  readonly enable?: readonly AdmissionPlugin[]
  readonly disable?: readonly AdmissionPlugin[]
}

export const enabledPlugins = ({ enable = [], disable = [] }: AdmissionPluginSwitches = {}): ReadonlySet<AdmissionPlugin> =>
  new Set(AdmissionPlugins.filter((name) => enable.includes(name) || (plugins[name] === 'on' && !disable.includes(name))))

/** Plugins that leave work to controllers that do not run in this server: they run where somebody else does that work. */
export const controllerPlugins = ['ServiceAccount', 'StorageObjectInUseProtection', 'TaintNodesByCondition'] as const
