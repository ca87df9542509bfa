/** Arguments of every verb: `ServerContext` (state and services of one API server) and `RequestContext` (one request). */
import {
  type Admission,
  type ApiRequest,
  type KubeObject,
  notFound,
  type ObjectList,
  type Reader,
  type RequestOptions,
  type Status,
} from '@capstan/kube'
import type { Plugin } from '../admission/plugin.ts'
import type { Policies } from '../admission/policies.ts'
import type { Webhooks } from '../admission/webhooks.ts'
import type { AuthenticateToken } from '../auth/token.ts'
import type { Converter } from '../conversion/converter.ts'
import type { Caller } from '../auth/user.ts'
import type { ResourceInfo } from '../registry/resource-info.ts'
import type { WriteContext, WriteServices } from '../registry/strategy.ts'
import type { Registry } from '../registry/registry.ts'
import type { StoreKey } from '../store/store.ts'

export interface ServerContext extends WriteServices {
  readonly registry: Registry
  /** In-process admission: functions of the program that embeds the server. */
  readonly admission: readonly Admission[]
  /** Mutating and validating webhooks, configured through the API. */
  readonly webhooks: Webhooks
  /** Admission policies in CEL. */
  readonly policies: Policies
  /** Converts objects to the version of a request. */
  readonly converter: Converter
  /** Reads objects for admission. */
  readonly reader: Reader
  /** Enabled admission plugins, by upstream's names. */
  readonly enabled: ReadonlySet<string>
  /** Returns the enabled plugins that this server implements and that apply to a resource. */
  readonly pluginsFor: (info: ResourceInfo) => readonly Plugin[]
  /** Returns the handler of a kind or subresource that implements its verbs itself; `undefined` for all others. */
  readonly handlerFor: (context: RequestContext) => Handler | undefined
  /** Whether a Pod that is bound to a node stays until the kubelet confirms its deletion. */
  readonly gracefulDeletion: boolean
  readonly authenticateToken: AuthenticateToken
  /** Token audiences that this server accepts. */
  readonly apiAudiences: readonly string[]
}

/** One request and its resource. */
export interface RequestContext {
  readonly info: ResourceInfo
  readonly request: ApiRequest
  readonly options: RequestOptions
  readonly caller: Caller
  /** Warnings to send with the response. */
  readonly warnings: string[]
  /** Returns a signal that aborts when no client waits for the response any more; `undefined` if `execute` was called without it. */
  readonly ended: (() => AbortSignal) | undefined
  /** Internal write: skips admission webhooks and policies. */
  readonly isInternal?: true
}

/** Handles requests for a kind that is not stored, or for a subresource that the generic verbs do not implement. */
export type Handler = (server: ServerContext, context: RequestContext) => Result | Promise<Result>
type Result = KubeObject | ObjectList | Status

/** Context of a write, for strategies and plugins. */
export const writeContext = (server: ServerContext, { request, caller, warnings }: RequestContext): WriteContext => ({
  subresource: request.subresource,
  verb: request.verb,
  namespace: request.namespace,
  server,
  caller,
  warn: (text) => warnings.push(text),
})

export const keyFor = (info: ResourceInfo, namespace: string | undefined, name: string): StoreKey => ({
  resource: info.storage,
  namespace: info.namespaced ? (namespace ?? '') : '',
  name,
})

/** Reports whether the object that a request names exists. */
export const exists = ({ store }: ServerContext, { info, request }: RequestContext): boolean =>
  store.get(keyFor(info, request.namespace, request.name!)) !== undefined

/** Returns the stored object. @throws StatusError NotFound */
export function stored({ store }: ServerContext, info: ResourceInfo, key: StoreKey): KubeObject {
  const object = store.get(key)
  if (!object) throw notFound(info, key.name)
  return object
}
