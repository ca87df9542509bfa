/** Content negotiation. Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation, v0.36. */
import { notAcceptable, unknownMediaTypes } from './errors.ts'

export interface Representation {
  readonly format: 'json' | 'yaml'
  /** Kind that objects are transformed to; `undefined`: objects are not transformed. */
  readonly as: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' | undefined
  /** Version of that kind in the group meta.k8s.io. */
  readonly version: 'v1' | 'v1beta1'
  readonly pretty: boolean
}

interface Clause {
  readonly type: string
  readonly parameters: { readonly [name: string]: string }
}

/**
 * Returns the representation for the Accept header: of the clauses that can be served, the one with the highest quality applies. `tables`:
 * whether objects can be sent as tables. `builtin` (a built-in kind) and `collection` (a path without a name) only select the error text.
 * @throws StatusError NotAcceptable when no clause can be served
 */
export function representationOf(
  accept: string | undefined,
  { pretty = false, builtin = false, collection = false, tables = true } = {},
): Representation {
  const clauses = parseAccept(accept)
  for (const { type, parameters } of clauses) {
    const format = formats[type]
    if (format === undefined) continue
    const { as, v, g } = parameters
    if (as === undefined) return { format, as: undefined, version: 'v1', pretty }
    if (!isTransform(as) || g !== 'meta.k8s.io' || (v !== 'v1' && v !== 'v1beta1')) continue
    if (as === 'Table' && !tables) continue
    return { format, as, version: v, pretty }
  }
  // Upstream's router rejects unknown types before its handlers run, except for custom resources.
  const isKnown = clauses.some(({ type }) => formats[type] !== undefined || type === 'application/vnd.kubernetes.protobuf')
  throw builtin && !isKnown ? unknownMediaTypes(collection) : notAcceptable(accept ?? '', builtin)
}

const formats: { readonly [type: string]: Representation['format'] } = {
  '*/*': 'json',
  'application/json': 'json',
  'application/yaml': 'yaml',
}

const isTransform = (as: string): as is NonNullable<Representation['as']> =>
  as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList'

/** Parses an Accept header; returns its clauses by descending quality. */
export function parseAccept(accept: string | undefined): Clause[] {
  if (accept === undefined || accept.trim() === '') return [{ type: '*/*', parameters: {} }]
  const clauses = accept.split(',').map((clause) => {
    const [type = '', ...parameters] = clause.split(';').map((part) => part.trim())
    const pairs = parameters.map((parameter) => {
      const equals = parameter.indexOf('=')
      return equals < 0 ? [parameter, ''] : [parameter.slice(0, equals), parameter.slice(equals + 1)]
    })
    return { type: type.toLowerCase(), parameters: Object.fromEntries(pairs) as { [name: string]: string } }
  })
  // Upstream: an invalid quality counts as 1, and 0 is the last choice instead of an exclusion.
  const quality = ({ parameters: { q } }: Clause) => (q === undefined || !(Number(q) >= 0) ? 1 : Number(q))
  return clauses.sort((a, b) => quality(b) - quality(a))
}

/** Reports whether the client accepts only protobuf. */
export const acceptsOnlyProtobuf = (accept: string | undefined): boolean =>
  parseAccept(accept).every(({ type }) => type === 'application/vnd.kubernetes.protobuf')

/** Reports whether the client accepts aggregated discovery, version v2, as JSON. */
export const acceptsAggregatedDiscovery = (accept: string | undefined): boolean =>
  parseAccept(accept).some(
    ({ type, parameters: { g, v, as } }) =>
      type === 'application/json' && g === 'apidiscovery.k8s.io' && v === 'v2' && as === 'APIGroupDiscoveryList',
  )

/** Reports whether to pretty-print: as the query parameter `pretty` requests; without it, only for curl, Wget and browsers. */
export const wantsPretty = (query: URLSearchParams, userAgent = ''): boolean => {
  const pretty = query.get('pretty')
  if (pretty !== null) return pretty !== 'false' && pretty !== '0'
  return userAgent.startsWith('curl') || userAgent.startsWith('Wget') || userAgent.startsWith('Mozilla/5.0')
}
