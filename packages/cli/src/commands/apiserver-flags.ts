/** Values of flags that kube-apiserver and kube-controller-manager have, read as they read them. */
import type { AdmissionPlugin, ApiServerOptions, AuthorizationMode } from '@capstan/apiserver'
import { AdmissionPlugins, admissionPluginState, AuthorizationModes } from '@capstan/apiserver'
import { InvalidArgumentError } from 'commander'
import { UsageError } from '../io.ts'

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

/** Upstream: --disable-admission-plugins. What does not run here is off already. */
export function disabledPlugins(text: string): AdmissionPlugin[] {
  return list(text).flatMap((plugin) => {
    const state = stateOf('disable-admission-plugins', plugin)
    return state === 'on' || state === 'off' ? [plugin as AdmissionPlugin] : []
  })
}

/** Upstream: --enable-admission-plugins. What upstream runs unless told otherwise and has no work here may be named all the same. */
export function enabledPlugins(text: string): AdmissionPlugin[] {
  return list(text).flatMap((plugin) => {
    const state = stateOf('enable-admission-plugins', plugin)
    if (state === 'refused')
      throw new InvalidArgumentError(`${plugin} is not supported; there are ${AdmissionPlugins.join(', ')}.`)
    return state === 'absent' ? [] : [plugin as AdmissionPlugin]
  })
}

function stateOf(flag: string, plugin: string): NonNullable<ReturnType<typeof admissionPluginState>> {
  const state = admissionPluginState(plugin)
  if (state !== undefined) return state
  throw new InvalidArgumentError(`${flag} plugin ${JSON.stringify(plugin)} is unknown.`)
}

/**
 * Upstream: both flags together. ServiceAccount runs whoever makes service accounts.
 *
 * @throws Error when a plugin is to be on and off
 */
export function pluginSwitches(enable: readonly AdmissionPlugin[] = [], disable: readonly AdmissionPlugin[] = []) {
  const both = enable.filter((plugin) => disable.includes(plugin))
  if (both.length > 0)
    throw new UsageError(`[${both.join(' ')}] in enable-admission-plugins and disable-admission-plugins overlapped`)
  return { enable: disable.includes('ServiceAccount') ? enable : [...enable, 'ServiceAccount' as const], disable }
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
