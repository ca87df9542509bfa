/** What every verb works with: the state and the services of one API server, and the call it is to answer. */
import {
  type Admission,
  type ApiRequest,
  type Clock,
  type KubeObject,
  notFound,
  type Random,
  type Reader,
  type RequestOptions,
} from '@capstan/kube'
import type { AdmissionPlugin } from '../admission/plugin-names.ts'
import type { Plugin } from '../admission/plugin.ts'
import type { Policies } from '../admission/policies.ts'
import type { Webhooks } from '../admission/webhooks.ts'
import type { Authorizer } from '../auth/authorizer.ts'
import type { ServiceAccountTokens } from '../auth/service-account-tokens.ts'
import type { AuthenticateToken } from '../auth/token.ts'
import type { Converter } from '../conversion/converter.ts'
import type { Caller } from '../engine.ts'
import type { WriteContext } from '../kinds/builtin-kind.ts'
import type { ServiceAddresses } from '../kinds/service/addresses.ts'
import type { Definition } from '../registry/definition.ts'

import type { Registry } from '../registry/registry.ts'
import type { PendingWrites } from '../store/pending.ts'
import type { Store, StoreKey } from '../store/store.ts'

export interface Plane {
  readonly store: Store
  readonly pending: PendingWrites
  readonly registry: Registry
  readonly clock: Clock
  readonly random: Random
  readonly admission: readonly Admission[]
  /** Those that are configured through the API. */
  readonly webhooks: Webhooks
  /** Those in CEL. */
  readonly policies: Policies
  /** Shows objects in the version of a request. */
  readonly converter: Converter
  /** Reads for admission. */
  readonly reader: Reader
  /** Admission plugins that are on, by upstream's names. */
  readonly enabled: ReadonlySet<AdmissionPlugin>
  /** Those of them that are code of this server and have a say in writes of a resource. */
  readonly pluginsFor: (definition: Definition) => readonly Plugin[]
  readonly serviceAddresses: ServiceAddresses
  /** Whether what has a node of its own waits until that lets it go. */
  readonly gracefulDeletion: boolean
  readonly authorizer: Authorizer
  readonly authenticateToken: AuthenticateToken
  readonly tokens: ServiceAccountTokens
  /** Whom tokens for this server are meant for. */
  readonly apiAudiences: readonly string[]
}

/** One request, its resource found. */
export interface Call {
  readonly definition: Definition
  readonly request: ApiRequest
  readonly options: RequestOptions
  readonly caller: Caller
  /** What the client shall be told beside the answer. */
  readonly warnings: string[]
  readonly signal: AbortSignal | undefined
  /** The server writes by itself, and nobody who watches over writes hears of it. */
  readonly isOwn?: true
}

/** What a kind is told of a write. */
export const writeContext = (plane: Plane, { request, caller, warnings }: Call): WriteContext => ({
  subresource: request.subresource,
  verb: request.verb,
  plane,
  caller,
  warn: (text) => warnings.push(text),
})

export const keyFor = (definition: Definition, namespace: string | undefined, name: string): StoreKey => ({
  resource: definition.storage,
  namespace: definition.namespaced ? (namespace ?? '') : '',
  name,
})

/** Whether what a request names is there. */
export const isThere = ({ store }: Plane, { definition, request }: Call): boolean =>
  store.get(keyFor(definition, request.namespace, request.name!)) !== undefined

/** @throws StatusError NotFound */
export function stored({ store }: Plane, definition: Definition, key: StoreKey): KubeObject {
  const object = store.get(key)
  if (!object) throw notFound(definition, key.name)
  return object
}
