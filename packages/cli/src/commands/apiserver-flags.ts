/** Parses and checks the values of flags that `capstan apiserver` has in common with kube-apiserver and kube-controller-manager. */
import type { AuthorizationMode } from '@capstan/apiserver'
import type { AdmissionPlugin, ApiServerOptions } from '@capstan/kubernetes-kinds'
import { originPatternError, AuthorizationModes } from '@capstan/apiserver'
import { AdmissionPlugins, controllerPlugins, parsePortRange, parseRange, admissionPluginState } from '@capstan/kubernetes-kinds'
import { messageOf, parseDuration, seconds } from '@capstan/kube'
import { InvalidArgumentError } from 'commander'
import { UsageError } from '../io.ts'
import type { LogLevel } from '../logger.ts'

/** Collects the values of a flag that may be repeated. */
export const appendValue = (value: string, before: string[] = []): string[] => [...before, value]

/** Parses values separated by commas; ignores empty values. */
export const list = (text: string): string[] => text.split(',').filter(Boolean)

/** Parses --cors-allowed-origins, which may be repeated: regular expressions, separated by commas. */
export function origins(text: string, before: readonly string[] = []): readonly string[] {
  const patterns = list(text)
  for (const pattern of patterns) {
    const error = originPatternError(pattern)
    if (error !== undefined) throw new InvalidArgumentError(`invalid regular expression: ${error}`)
  }
  return [...before, ...patterns]
}

/** Parses the value of a boolean flag: `true`, `t` and `1` are true; `false`, `f` and `0` are false; upper case is accepted. */
export function flag(text: string): boolean {
  if (['true', 't', '1'].includes(text.toLowerCase())) return true
  if (['false', 'f', '0'].includes(text.toLowerCase())) return false
  throw new InvalidArgumentError('expected true or false.')
}

/** Parses --service-cluster-ip-range. Of two ranges, one for IPv4 and one for IPv6, the IPv4 range is used. */
export function clusterRange(text: string): string {
  const range = text.split(',').find((part) => !part.includes(':')) ?? text
  try {
    parseRange(range)
    return range
  } catch (err) {
    throw new InvalidArgumentError(messageOf(err))
  }
}

/** Validates --service-node-port-range. */
export function portRange(text: string): string {
  try {
    parsePortRange(text)
    return text
  } catch (err) {
    throw new InvalidArgumentError(messageOf(err))
  }
}

/** Parses a non-negative duration in Go's format. @returns milliseconds */
export function duration(text: string): number {
  try {
    const milliseconds = parseDuration(text)
    if (milliseconds >= 0) return milliseconds
  } catch {
    // Reported below.
  }
  throw new InvalidArgumentError('expected a duration such as 90s or 1h0m0s.')
}

/** Parses a whole number from 0 to 999,999,999. */
export function count(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number from 0 to 999999999.')
}

/** Parses a whole number of seconds. @returns milliseconds */
export const secondsCount = (text: string): number => seconds(count(text))

/** Parses -v of klog. From level 4 on, debug lines are logged. */
export function verbosity(text: string): LogLevel {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('expected a number.')
  return Number(text) >= 4 ? 'debug' : 'info'
}

/** Parses --tls-min-version. Versions before TLS 1.2 select TLS 1.2. */
export function tlsVersion(text: string): 'TLSv1.2' | 'TLSv1.3' {
  if (text === 'VersionTLS13') return 'TLSv1.3'
  if (['', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12'].includes(text)) return 'TLSv1.2'
  throw new InvalidArgumentError('expected VersionTLS12 or VersionTLS13.')
}

/** Parses the value of a boolean flag that can only be true. */
export function onlyTrue(text: string): true {
  if (flag(text)) return true
  throw new InvalidArgumentError('it cannot be turned off.')
}

/** Validates --service-account-jwks-uri. */
export function jwksUri(text: string): string {
  if (URL.canParse(text) && new URL(text).protocol === 'https:') return text
  throw new InvalidArgumentError('service-account-jwks-uri requires https scheme.')
}

/** Entry of --runtime-config. */
export interface ApiSwitch {
  /** `apps/v1`, `v1`, a resource such as `batch/v1/jobs`, or a name for several versions such as `api/all`. */
  readonly version: string
  readonly isOn: boolean
}

/** Parses --runtime-config, such as `apps/v1=true,batch/v1/jobs=false`. */
export const apiSwitches = (text: string): ApiSwitch[] =>
  list(text).map((entry) => {
    const [version = '', value = ''] = entry.split('=', 2)
    return { version, isOn: value === '' || flag(value) }
  })

/**
 * Validates --runtime-config: served versions cannot be disabled and others cannot be enabled. A switch that changes nothing is
 * accepted. Names for several versions, such as `api/all`, are accepted and ignored.
 *
 * @param served API versions that the server serves, such as `apps/v1`
 * @throws UsageError
 */
export function checkApiSwitches(switches: readonly ApiSwitch[], served: ReadonlySet<string>): void {
  for (const { version, isOn } of switches) {
    if (/^api\/(all|ga|beta|alpha|legacy)$/.test(version)) continue
    const groupVersion = /^[^/]+\/v[^/]+|^v[^/]+/.exec(version)?.[0]
    if (groupVersion === undefined) throw new UsageError(`--runtime-config: unknown api ${JSON.stringify(version)}`)
    if (isOn !== served.has(groupVersion))
      throw new UsageError(`--runtime-config: ${version} ${isOn ? 'is not served here' : 'cannot be turned off'}`)
  }
}

/** Parses --authorization-mode: each mode at most once. Modes that only upstream supports are rejected with an error that names them. */
export function authorizationModes(text: string): AuthorizationMode[] {
  const modes = text.split(',')
  return modes.map((mode, index) => {
    const supported = AuthorizationModes.find((candidate) => candidate === mode)
    if (modes.indexOf(mode) !== index)
      throw new InvalidArgumentError(`authorization-mode ${JSON.stringify(mode)} has mode specified more than once.`)
    if (supported) return supported
    throw new InvalidArgumentError(
      ['ABAC', 'Webhook'].includes(mode)
        ? `${mode} is not supported; use ${AuthorizationModes.join(', ')}.`
        : `authorization-mode ${JSON.stringify(mode)} is not a valid mode.`,
    )
  })
}

/** Parses --disable-admission-plugins. Plugins that are not implemented here are ignored: they are disabled already. */
export function disabledPlugins(text: string): AdmissionPlugin[] {
  return list(text).flatMap((plugin) => {
    const state = pluginStateOf('disable-admission-plugins', plugin)
    return state === 'on' || state === 'off' ? [plugin as AdmissionPlugin] : []
  })
}

/**
 * Parses --enable-admission-plugins. Of the plugins that are not implemented here, those that upstream enables by default are ignored, and
 * all others are rejected.
 */
export function enabledPlugins(text: string): AdmissionPlugin[] {
  return list(text).flatMap((plugin) => {
    const state = pluginStateOf('enable-admission-plugins', plugin)
    if (state === 'rejected') throw new InvalidArgumentError(`${plugin} is not supported; use ${AdmissionPlugins.join(', ')}.`)
    return state === 'absent' ? [] : [plugin as AdmissionPlugin]
  })
}

function pluginStateOf(flag: string, plugin: string): NonNullable<ReturnType<typeof admissionPluginState>> {
  const state = admissionPluginState(plugin)
  if (state !== undefined) return state
  throw new InvalidArgumentError(`${flag} plugin ${JSON.stringify(plugin)} is unknown.`)
}

/**
 * Combines --enable-admission-plugins and --disable-admission-plugins. Plugins that rely on controllers are enabled by default, as
 * in upstream.
 *
 * @throws UsageError when a plugin is both enabled and disabled
 */
export function pluginSwitches(enable: readonly AdmissionPlugin[] = [], disable: readonly AdmissionPlugin[] = []) {
  const conflicting = enable.filter((plugin) => disable.includes(plugin))
  if (conflicting.length > 0)
    throw new UsageError(`[${conflicting.join(' ')}] in enable-admission-plugins and disable-admission-plugins overlapped`)
  return { enable: [...enable, ...controllerPlugins.filter((plugin) => !disable.includes(plugin))], disable }
}

type Controllers = NonNullable<ApiServerOptions['controllers']>

/** Maps the controller names of kube-controller-manager to our options. */
const controllerNames = {
  'clusterrole-aggregation-controller': 'clusterRoles',
  'garbage-collector-controller': 'garbageCollector',
  'namespace-controller': 'namespaces',
  'root-ca-certificate-publisher-controller': 'rootCA',
  'serviceaccount-controller': 'serviceAccounts',
  'serviceaccount-token-controller': 'tokenSecrets',
} as const satisfies { readonly [name: string]: keyof Controllers }

type ControllerName = (typeof controllerNames)[keyof typeof controllerNames]
/** Whether each controller is enabled, by its name in the options of `createApiServer`. */
export type EnabledControllers = { readonly [name in ControllerName]: boolean }

/** Names of controllers that --controllers accepts. */
export const knownControllers: readonly string[] = Object.keys(controllerNames)

/** Parses --controllers of kube-controller-manager. `*` enables all controllers; `*,-x` all except x. */
export function controllers(text: string): EnabledControllers {
  const names = list(text)
  const unknown = names.find((name) => name !== '*' && !knownControllers.includes(name.replace(/^-/, '')))
  if (unknown !== undefined)
    throw new InvalidArgumentError(
      `${JSON.stringify(unknown)} is not in the list of known controllers: ${knownControllers.join(', ')}.`,
    )
  const isOn = (name: string) => names.includes(name) || (names.includes('*') && !names.includes(`-${name}`))
  return Object.fromEntries(Object.entries(controllerNames).map(([name, member]) => [member, isOn(name)])) as EnabledControllers
}
