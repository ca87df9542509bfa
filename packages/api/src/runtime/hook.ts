/**
 * A hook's declaration: group, version and name identify it; request and response give static types, wire validation, OpenAPI,
 * docs and fixtures. Upstream: api/runtime/hooks/v1alpha1 and exp/runtime/catalog, v1.14.
 */
import type { JSONSchema, ObjectOfShape, Schema, Shape } from '@capstan/kube'
import { s } from '@capstan/kube'

export interface Hook<Request = unknown, Response = unknown> {
  readonly group: string
  readonly version: string
  /** Such as BeforeClusterCreate: path segment in lower case, kinds are `<name>Request` and `<name>Response`. */
  readonly name: string
  /** Under which heading documents list it. Upstream: the tags of its OpenAPI document. */
  readonly tag: string
  /** Whether a response may block with `retryAfterSeconds`. */
  readonly blocking: boolean
  /** True for Discovery alone: an extension server has one of it, without a name. */
  readonly singleton: boolean
  /** When core calls it and what the answers do, in words for authors of extensions. */
  readonly doc: string
  readonly request: Schema
  readonly response: Schema
  /** Since when the version should no longer be used. */
  readonly deprecated?: Deprecation
  /** How to do with handlers of this version what core does with the next newer one. */
  readonly newer?: NewerVersion
  /** Phantoms: exist for the type checker only. */
  readonly _request?: Request
  readonly _response?: Response
}

export interface Deprecation {
  /** The release that announced it, such as v1.15.0. */
  readonly release: string
  /** Day of that release: 2027-04-20. */
  readonly date: string
}

/** Conversion between a version of a hook and the next newer one: requests go down, responses go up. */
export interface NewerVersion {
  readonly hook: Hook
  /** The request of the newer version as this one has it: what this one does not know is left out. */
  requestDown(request: never): object
  /** The response of this version as the newer one has it. */
  responseUp(response: never): object
}

const typeMeta = { apiVersion: s.string(), kind: s.string() }

/** Every request carries the settings of its ExtensionConfig, merged with those of the call. */
export const commonRequest = {
  ...typeMeta,
  settings: s.map(s.string()).optional().doc('Settings of the ExtensionConfig, overridden by those of the call.'),
}

export const commonResponse = {
  // Go servers leave both out.
  apiVersion: s.string().optional(),
  kind: s.string().optional(),
  status: s.enum('Success', 'Failure').doc('Failure is an error under every failure policy.'),
  message: s.string().optional().doc('Shown to users: the error if status is Failure, otherwise the reason why the hook blocks.'),
}

/** A blocking response: call again after `retryAfterSeconds`, or proceed for 0. */
export const retryResponse = {
  ...commonResponse,
  retryAfterSeconds: s.int32().default(0).doc('Seconds until the next call; 0 allows the next step.'),
}

export const HooksGroup = 'hooks.runtime.cluster.x-k8s.io'
export const HooksVersion = 'v1alpha1'

/** A request without what is the same in all versions. */
export type RequestBody<H extends Hook> = Omit<RequestOf<H>, 'apiVersion' | 'kind'>
export type ResponseBody<H extends Hook> = Omit<ResponseOf<H>, 'apiVersion' | 'kind'>

/** Declares the next newer version of the hook that is being declared. */
export const newerVersion = <Newer extends Hook, Request extends object, Response extends object>(
  hook: Newer,
  convert: {
    requestDown(request: RequestBody<Newer>): Request
    responseUp(response: Response): ResponseBody<Newer>
  },
): NewerVersion => ({ hook, ...convert })

export function defineHook<Req extends Shape, Res extends Shape>(options: {
  name: string
  group?: string
  version?: string
  tag: string
  blocking: boolean
  singleton?: boolean
  doc: string
  request: Req
  response: Res
  /** Schemas of the response that hold themselves: what `$ref` of `#/definitions/NAME` stands for. */
  definitions?: { [name: string]: JSONSchema }
  deprecated?: Deprecation
  newer?: NewerVersion
}): Hook<ObjectOfShape<typeof commonRequest> & ObjectOfShape<Req>, ObjectOfShape<Res>> {
  return {
    group: options.group ?? HooksGroup,
    version: options.version ?? HooksVersion,
    name: options.name,
    tag: options.tag,
    blocking: options.blocking,
    singleton: options.singleton ?? false,
    doc: options.doc,
    request: s.object({ ...(options.singleton ? typeMeta : commonRequest), ...options.request }),
    response: options.definitions
      ? s.of({ ...s.object(options.response).json, definitions: options.definitions })
      : s.object(options.response),
    ...(options.deprecated ? { deprecated: options.deprecated } : {}),
    ...(options.newer ? { newer: options.newer } : {}),
  }
}

export type RequestOf<H extends Hook> = NonNullable<H['_request']>
export type ResponseOf<H extends Hook> = NonNullable<H['_response']>

/** Group and version of a hook, as `apiVersion` of its requests and in discovery. */
export const hookApiVersion = ({ group, version }: Hook): string => `${group}/${version}`

/** Path of a hook's handler on an extension server, below the prefix of its URL. Hook and handler are in lower case. */
export const hookPath = (hook: Hook, handler?: string): string =>
  ['', hook.group, hook.version, hook.name.toLowerCase(), ...(hook.singleton ? [] : [(handler ?? '').toLowerCase()])].join('/')
