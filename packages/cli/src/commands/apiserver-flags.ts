/** Values of flags that kube-apiserver and kube-controller-manager have, read as they read them. */
import type { ApiServerOptions, AuthorizationMode } from '@capstan/apiserver'
import { AuthorizationModes } from '@capstan/apiserver'
import { InvalidArgumentError } from 'commander'

/** A flag that may be given several times. */
export const several = (value: string, before: string[] = []): string[] => [...before, value]

export const list = (text: string): string[] => text.split(',').filter(Boolean)

/** `--flag`, `--flag=true` and `--flag=false`. */
export function flag(text: string): boolean {
  if (['true', 't', '1'].includes(text.toLowerCase())) return true
  if (['false', 'f', '0'].includes(text.toLowerCase())) return false
  throw new InvalidArgumentError('expected true or false.')
}

/** Upstream: --authorization-mode. Each mode at most once; those that there are upstream and not here are refused by name. */
export function authorizationModes(text: string): AuthorizationMode[] {
  const modes = text.split(',')
  return modes.map((mode, index) => {
    const known = AuthorizationModes.find((one) => one === mode)
    if (modes.indexOf(mode) !== index)
      throw new InvalidArgumentError(`authorization-mode ${JSON.stringify(mode)} has mode specified more than once.`)
    if (known) return known
    throw new InvalidArgumentError(
      ['ABAC', 'Webhook', 'Node'].includes(mode)
        ? `${mode} is not supported; use ${AuthorizationModes.join(', ')}.`
        : `authorization-mode ${JSON.stringify(mode)} is not a valid mode.`,
    )
  })
}

/** Upstream: the plugins that kube-apiserver knows, v1.36. Only few of them are part of this server. */
const admissionPlugins = list(
  'AlwaysAdmit,AlwaysDeny,AlwaysPullImages,CertificateApproval,CertificateSigning,CertificateSubjectRestriction,' +
    'ClusterTrustBundleAttest,DefaultIngressClass,DefaultStorageClass,DefaultTolerationSeconds,DenyServiceExternalIPs,' +
    'EventRateLimit,ExtendedResourceToleration,ImagePolicyWebhook,LimitPodHardAntiAffinityTopology,LimitRanger,' +
    'MutatingAdmissionPolicy,MutatingAdmissionWebhook,NamespaceAutoProvision,NamespaceExists,NamespaceLifecycle,NodeRestriction,' +
    'OwnerReferencesPermissionEnforcement,PersistentVolumeClaimResize,PodNodeSelector,PodSecurity,PodTolerationRestriction,' +
    'PodTopologyLabels,Priority,ResourceQuota,RuntimeClass,ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition,' +
    'ValidatingAdmissionPolicy,ValidatingAdmissionWebhook',
)
const alwaysOn = ['MutatingAdmissionWebhook', 'ValidatingAdmissionWebhook']

/** Upstream: --disable-admission-plugins. What does not run here is off already. */
export function disabledPlugins(text: string): string[] {
  return list(text).map((plugin) => {
    if (!admissionPlugins.includes(plugin))
      throw new InvalidArgumentError(`disable-admission-plugins plugin ${JSON.stringify(plugin)} is unknown.`)
    if (alwaysOn.includes(plugin)) throw new InvalidArgumentError(`${plugin} cannot be turned off.`)
    return plugin
  })
}

/** Upstream: --enable-admission-plugins. What is not part of this server cannot be turned on. */
export function enabledPlugins(text: string): string[] {
  return list(text).map((plugin) => {
    if (!admissionPlugins.includes(plugin))
      throw new InvalidArgumentError(`enable-admission-plugins plugin ${JSON.stringify(plugin)} is unknown.`)
    if (plugin !== 'NamespaceLifecycle' && !alwaysOn.includes(plugin))
      throw new InvalidArgumentError(`${plugin} is not supported; there are ${['NamespaceLifecycle', ...alwaysOn].join(', ')}.`)
    return plugin
  })
}

type Controllers = NonNullable<ApiServerOptions['controllers']>

/** Controllers by the names that kube-controller-manager has for them. */
const controllerNames = {
  'clusterrole-aggregation-controller': 'clusterRoles',
  'garbage-collector-controller': 'garbageCollector',
  'namespace-controller': 'namespaces',
  'root-ca-certificate-publisher-controller': 'rootCA',
  'serviceaccount-controller': 'serviceAccounts',
} as const satisfies { readonly [name: string]: keyof Controllers }

type ControllerName = (typeof controllerNames)[keyof typeof controllerNames]
export type EnabledControllers = { readonly [name in ControllerName]: boolean }

export const knownControllers: readonly string[] = Object.keys(controllerNames)

/** Upstream: --controllers of kube-controller-manager. `*` is all, `-x` all but x when `*` is there, too. */
export function controllers(text: string): EnabledControllers {
  const wanted = list(text)
  const unknown = wanted.find((name) => name !== '*' && !knownControllers.includes(name.replace(/^-/, '')))
  if (unknown !== undefined)
    throw new InvalidArgumentError(
      `${JSON.stringify(unknown)} is not in the list of known controllers: ${knownControllers.join(', ')}.`,
    )
  const isOn = (name: string) => wanted.includes(name) || (wanted.includes('*') && !wanted.includes(`-${name}`))
  return Object.fromEntries(Object.entries(controllerNames).map(([name, member]) => [member, isOn(name)])) as EnabledControllers
}
