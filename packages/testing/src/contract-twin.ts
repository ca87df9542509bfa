/**
 * Runs a test with contract v1beta1, although the test acts as a provider of contract v1beta2. Each kind of a provider is replaced by a
 * twin: the same kind with the label and the fields of contract v1beta1. The requests of the test's client and of the providers'
 * controllers (except JSON patches) are converted, and so are the responses. Core's requests are not converted, so core reads only contract
 * v1beta1.
 *
 * This file does not use the paths of `@capstan/api/contract`, because that module is under test.
 * Upstream: docs/book/src/developer/providers/contracts, v1.14, "Compatibility with the deprecated v1beta1 contract".
 */
import type { ContractVersion } from '@capstan/api/contract'
import type { DeclaredKind, JSONSchema, KubeObject, Transport, WatchEvent } from '@capstan/kube'

const newLabel = 'cluster.x-k8s.io/v1beta2'
const oldLabel = 'cluster.x-k8s.io/v1beta1'

/**
 * Contract version of the providers in tests. `npm run interop -- old-contract` runs environment tests of core and the local
 * provider a second time, with `v1beta1`.
 */
export const testContract = (): ContractVersion => (process.env.CAPSTAN_TEST_CONTRACT === 'v1beta1' ? 'v1beta1' : 'v1beta2')

/** Whether a kind belongs to a provider of contract v1beta2. Cluster API's own kinds also have the label; they are excluded. */
const isProvider = ({ group, labels }: DeclaredKind): boolean =>
  labels?.[newLabel] !== undefined && labels[oldLabel] === undefined && !/(^|\.)cluster\.x-k8s\.io$/.test(group)

/** A field that has a different path or type in contract v1beta1. */
interface MovedField {
  /** Path in contract v1beta2. */
  readonly newPath: string
  /** Path in contract v1beta1. */
  readonly oldPath: string
  /** Converts a value to contract v1beta1. Default: the same value. */
  toOld?(value: Any, object: Any): unknown
  /** Converts a value to contract v1beta2. Default: the same value. */
  toNew?(value: Any, object: Any): unknown
  /** The schema of the field in contract v1beta1. Default: the same schema. */
  schema?(schema: JSONSchema): JSONSchema
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any shape
type Any = any

const initializationField = (name: string, oldName = 'ready'): MovedField => ({
  newPath: `status.initialization.${name}`,
  oldPath: `status.${oldName}`,
})

const withoutUndefined = (object: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

const failureDomains: MovedField = {
  newPath: 'status.failureDomains',
  oldPath: 'status.failureDomains',
  // A value that is not a list is invalid in contract v1beta2, and is not converted.
  toOld: (list: Any) => (Array.isArray(list) ? Object.fromEntries(list.map(({ name, ...domain }) => [name, domain])) : list),
  toNew: (map: Any) => Object.entries(map).map(([name, domain]) => ({ name, ...(domain as object) })),
  schema: ({ items }) => {
    const { name: _, ...properties } = items?.properties ?? {}
    return { type: 'object', additionalProperties: { type: 'object', properties } }
  },
}

const timeoutField = (name: string): MovedField => ({
  newPath: `spec.machineTemplate.spec.deletion.${name}Seconds`,
  oldPath: `spec.machineTemplate.${name}`,
  toOld: (value: number) => `${value}s`,
  schema: () => ({ type: 'string' }),
  toNew: (text: string) =>
    [...text.matchAll(/(\d+)([hms])/g)].reduce((sum, [, number, unit]) => sum + Number(number) * unitSeconds[unit!]!, 0),
})
const unitSeconds: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1 }

const movesByKindSuffix: readonly (readonly [RegExp, readonly MovedField[]])[] = [
  [/Cluster$/, [initializationField('provisioned'), failureDomains]],
  [/Machine$/, [initializationField('provisioned')]],
  [/MachinePool$/, [initializationField('provisioned')]],
  [/Config$/, [initializationField('dataSecretCreated')]],
  [
    /ControlPlane$/,
    [
      initializationField('controlPlaneInitialized', 'initialized'),
      { newPath: 'status.upToDateReplicas', oldPath: 'status.updatedReplicas' },
      {
        newPath: 'status.availableReplicas',
        oldPath: 'status.unavailableReplicas',
        // In v1beta1 the field is the number of unavailable replicas, which also depends on the spec.
        toOld: (available: number, { spec, status }: Any) => (spec?.replicas ?? status?.replicas ?? available) - available,
        toNew: (unavailable: number, { spec, status }: Any) => (spec?.replicas ?? status?.replicas ?? unavailable) - unavailable,
      },
      ...['nodeDrainTimeout', 'nodeVolumeDetachTimeout', 'nodeDeletionTimeout'].map(timeoutField),
      ...['readinessGates', 'taints'].map((name) => ({
        newPath: `spec.machineTemplate.spec.${name}`,
        oldPath: `spec.machineTemplate.${name}`,
      })),
    ],
  ],
]

/** Reference to the machine template of a control plane. In contract v1beta1 it has a version and a namespace. */
const infrastructureRef = (kinds: readonly DeclaredKind[]): MovedField => ({
  newPath: 'spec.machineTemplate.spec.infrastructureRef',
  oldPath: 'spec.machineTemplate.infrastructureRef',
  toOld: ({ apiGroup, kind, name }: Any, { metadata }: Any) => {
    const version = kinds.find((candidate) => candidate.group === apiGroup && candidate.kind === kind)?.version
    return withoutUndefined({ apiVersion: `${apiGroup}/${version}`, kind, name, namespace: metadata?.namespace })
  },
  toNew: ({ apiVersion, kind, name }: Any) => withoutUndefined({ apiGroup: apiVersion?.split('/')[0], kind, name }),
  schema: () => ({
    type: 'object',
    properties: Object.fromEntries(['apiVersion', 'kind', 'name', 'namespace'].map((name) => [name, { type: 'string' }])),
  }),
})

/** Removes the value at the path, and parents that become empty. Returns the value. */
function take(object: Any, path: readonly string[]): unknown {
  const [name, ...rest] = path
  const value = object?.[name!]
  if (rest.length === 0) {
    if (value !== undefined) delete object[name!]
    return value
  }
  if (typeof value !== 'object' || value === null) return undefined
  const oldValue = take(value, rest)
  if (oldValue !== undefined && Object.keys(value).length === 0) delete object[name!]
  return oldValue
}

function put(object: Any, path: readonly string[], value: unknown): void {
  const [name, ...rest] = path
  if (rest.length === 0) object[name!] = value
  else put((object[name!] ??= {}), rest, value)
}

/** Converts an object, or a part of one, to the other contract version. */
function translate(object: Any, moves: readonly MovedField[], to: ContractVersion): Any {
  const draft = structuredClone(object)
  for (const { newPath, oldPath, toOld, toNew } of moves) {
    const [from, into] = to === 'v1beta1' ? [newPath, oldPath] : [oldPath, newPath]
    const change = to === 'v1beta1' ? toOld : toNew
    const value = take(draft, from.split('.'))
    if (value === undefined) continue
    // Values of other types are invalid, and stay the same.
    const isConvertible = value !== null && ['object', 'number', 'string'].includes(typeof value)
    const changed = change && isConvertible ? change(value, object) : value
    if (changed !== undefined) put(draft, into.split('.'), changed)
  }
  return draft
}

/** Whether the body is an object or a part of an object, unlike JSON patches and DeleteOptions. */
const hasFields = (verb: string, patchType: string | undefined): boolean =>
  verb === 'create' || verb === 'update' || (verb === 'patch' && patchType !== 'application/json-patch+json')

/** Returns the moved fields of a provider's kind. */
const movesOf = (kind: DeclaredKind, kinds: readonly DeclaredKind[]): readonly MovedField[] => [
  ...(movesByKindSuffix.find(([end]) => end.test(kind.kind))?.[1] ?? []),
  ...(kind.kind.endsWith('ControlPlane') ? [infrastructureRef(kinds)] : []),
]

const schemaPath = (path: string): string[] => path.split('.').flatMap((name) => ['properties', name])

function oldSchema(schema: JSONSchema, moves: readonly MovedField[]): JSONSchema {
  const draft: Any = structuredClone(schema)
  for (const { newPath, oldPath, schema: change } of moves) {
    const names = schemaPath(newPath)
    const field = take(draft, names)
    if (field === undefined) continue
    // The parents must not require the moved field, or a minimum number of fields.
    for (let end = names.length - 2; end > 0; end -= 2) {
      const parent = names.slice(0, end).reduce((schemaNode, name) => schemaNode?.[name], draft)
      if (!parent) continue
      delete parent.required
      delete parent.minProperties
    }
    put(draft, schemaPath(oldPath), change ? change(field as JSONSchema) : field)
  }
  return draft
}

function oldTwin(kind: DeclaredKind, kinds: readonly DeclaredKind[]): DeclaredKind {
  const moves = movesOf(kind, kinds)
  const { [newLabel]: versions, ...labels } = kind.labels
  const asNew = (object: KubeObject): KubeObject => translate(object, moves, 'v1beta2')
  const { default: setDefaults, validate } = kind
  return {
    ...kind,
    labels: { ...labels, [oldLabel]: versions! },
    schema: oldSchema(kind.schema, moves),
    columns: kind.columns.map((column) => ({
      ...column,
      jsonPath: moves.reduce((path, { newPath, oldPath }) => path.replace(`.${newPath}`, `.${oldPath}`), column.jsonPath),
    })),
    ...(setDefaults && {
      default(object: KubeObject, context: Any) {
        const draft = asNew(object)
        setDefaults.call(kind, draft, context)
        Object.assign(object, translate(draft, moves, 'v1beta1'))
      },
    }),
    ...(validate && {
      validate(object: KubeObject, context: Any) {
        const { oldObject } = context
        return validate.call(kind, asNew(object), oldObject ? { ...context, oldObject: asNew(oldObject) } : context)
      },
    }),
  }
}

/** Returns the kinds, with each kind of a provider replaced by its twin of contract v1beta1. */
export const oldTwins = (kinds: readonly DeclaredKind[]): DeclaredKind[] =>
  kinds.map((kind) => (isProvider(kind) ? oldTwin(kind, kinds) : kind))

/**
 * Wraps the transport of a client that uses contract v1beta2, for a server that has the twins of `kinds`: converts requests to contract
 * v1beta1, and responses and watch events to contract v1beta2. JSON patches are sent unchanged.
 */
export function translateRequests(transport: Transport, kinds: readonly DeclaredKind[]): Transport {
  const providers = kinds.filter(isProvider)
  const moves = new Map(providers.map((kind) => [`${kind.plural}.${kind.group}`, movesOf(kind, providers)]))
  const movesFor = ({ plural, group }: { plural: string; group: string }) => moves.get(`${plural}.${group}`) ?? []
  return {
    close: () => transport.close(),
    async send(request, signal) {
      const requestMoves = movesFor(request)
      if (requestMoves.length === 0) return transport.send(request, signal)
      const sent = hasFields(request.verb, request.patchType)
        ? { ...request, body: translate(request.body, requestMoves, 'v1beta1') }
        : request
      const response = (await transport.send(sent, signal)) as Any
      if (Array.isArray(response?.items))
        return { ...response, items: response.items.map((item: Any) => translate(item, requestMoves, 'v1beta2')) }
      return translate(response, requestMoves, 'v1beta2')
    },
    async watch(request, signal) {
      const events = await transport.watch(request, signal)
      const requestMoves = movesFor(request)
      if (requestMoves.length === 0) return events
      return (async function* inNewContract(): AsyncGenerator<WatchEvent> {
        for await (const event of events) yield { ...event, object: translate(event.object, requestMoves, 'v1beta2') }
      })()
    },
  }
}
