/**
 * Declares hooks. Group, version and name identify a hook. Static types, validation of messages, the OpenAPI document and the
 * reference page are derived from the schemas of request and response. Upstream: api/runtime/hooks/v1alpha1 and api/runtime/catalog, v1.14.
 */
import type { JSONSchema, ObjectOfShape, Schema, Shape } from '@capstan/kube'
import { s } from '@capstan/kube'

export interface Hook<Request = unknown, Response = unknown> {
  readonly group: string
  readonly version: string
  /** Name such as BeforeClusterCreate. The path contains it in lower case; the kinds are `<name>Request` and `<name>Response`. */
  readonly name: string
  /** Heading in documents. Upstream: the tags of its OpenAPI document. */
  readonly tag: string
  /** Whether a response may block with `retryAfterSeconds`. */
  readonly blocking: boolean
  /** True only for Discovery, for which an extension server has one handler without a name. */
  readonly singleton: boolean
  /** Documentation for authors of extensions: when core calls the hook, and the effects of responses. */
  readonly doc: string
  readonly request: Schema
  readonly response: Schema
  /** Present when the version is deprecated. */
  readonly deprecated?: Deprecation
  /** Conversions from and to the next newer version; absent for the newest version. */
  readonly newer?: NewerVersion
  /** Never set: exist only for the type checker. */
  readonly _request?: Request
  readonly _response?: Response
}

export interface Deprecation {
  /** The release that announced the deprecation, such as v1.15.0. */
  readonly release: string
  /** Day of that release, such as 2027-04-20. */
  readonly date: string
}

/**
 * Conversion between a version of a hook and the next newer version. Requests are converted to the older version, responses to the newer.
 */
export interface NewerVersion {
  /** The newer version. */
  readonly hook: Hook
  /** Converts a request of the newer version to this version. Drops fields that this version does not have. */
  requestDown(request: never): object
  /** Converts a response of this version to the newer version. */
  responseUp(response: never): object
}

const typeMeta = { apiVersion: s.string(), kind: s.string() }

/**
 * Fields of all requests except those of Discovery, which have no settings. The settings are those of the ExtensionConfig, overridden by
 * those of the call, such as the settings of an external patch in a ClusterClass.
 */
export const commonRequest = {
  ...typeMeta,
  settings: s.map(s.string()).optional().doc('Settings of the ExtensionConfig, overridden by those of the call.'),
}

export const commonResponse = {
  // Go servers omit apiVersion and kind.
  apiVersion: s.string().optional(),
  kind: s.string().optional(),
  status: s.enum('Success', 'Failure').doc('Failure is an error under every failure policy.'),
  message: s.string().optional().doc('Shown to users: the error if status is Failure, or the reason if the hook blocks.'),
}

/** Fields of responses that can block. Core calls the hook again after `retryAfterSeconds`; 0 does not block. */
export const retryResponse = {
  ...commonResponse,
  retryAfterSeconds: s.int32().default(0).doc('Seconds until the next call; 0 allows the next step.'),
}

export const HooksGroup = 'hooks.runtime.cluster.x-k8s.io'
export const HooksVersion = 'v1alpha1'

/** A request without apiVersion and kind. */
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

/** Declares a version of a hook. `group` and `version` default to those of Cluster API's hooks. */
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
  /** Recursive schemas of the response, the targets of `$ref: '#/definitions/NAME'`. */
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

/** Returns the `apiVersion` of a hook as it appears in its requests and in Discovery responses: `<group>/<version>`. */
export const hookApiVersion = ({ group, version }: Hook): string => `${group}/${version}`

/** Returns the path of a hook's handler below the URL of the extension server. Hook and handler are in lower case. */
export const hookPath = (hook: Hook, handler?: string): string =>
  ['', hook.group, hook.version, hook.name.toLowerCase(), ...(hook.singleton ? [] : [(handler ?? '').toLowerCase()])].join('/')
