/** Built-in resources: upstream's discovery data and schemas (`kinds/catalog.ts`), joined with the declarations in `kinds/`. */
import {
  apiVersionOf,
  maskTrailingDash,
  parseApiVersion,
  resourceName,
  structural,
  subdomainProblems,
  type Verb,
} from '@capstan/kube'
import { admissionregistration } from './kinds/admissionregistration.ts'
import { apiextensions } from './kinds/apiextensions.ts'
import { apiregistration } from './kinds/apiregistration.ts'
import { apps } from './kinds/apps.ts'
import type { BuiltinKind, KindTable } from './kinds/builtin-kind.ts'
import { autoscalingV1, autoscalingV2 } from './kinds/autoscaling.ts'
import { batch } from './kinds/batch.ts'
import { certificates } from './kinds/certificates.ts'
import { priorityOf } from './group-priority.ts'
import {
  zeroValueOf,
  closureOf,
  componentName,
  recordedColumns,
  recordOf,
  type ResourceRecord,
  schemaNamed,
} from './kinds/catalog.ts'
import { coordination } from './kinds/coordination.ts'
import { core } from './kinds/core.ts'
import { discovery } from './kinds/discovery.ts'
import { eventsGroup } from './kinds/events.ts'
import { flowcontrol } from './kinds/flowcontrol.ts'
import { networking } from './kinds/networking.ts'
import { goForm } from './kinds/go-form.ts'
import { readNulls } from './kinds/go-nulls.ts'
import { convertedTypeProblem, jsonTypeProblem } from './kinds/go-types.ts'
import { node } from './kinds/node.ts'
import { policy } from './kinds/policy.ts'
import { rbac } from './kinds/rbac.ts'
import { authentication, authorization, tokenRequests } from './kinds/reviews.ts'
import { resource } from './kinds/resource.ts'
import { scheduling } from './kinds/scheduling.ts'
import { storage } from './kinds/storage.ts'
import { flowTable } from './flow-table.ts'
import { messages } from './protobuf-messages.ts'
import { isConnection } from './subresources/connect.ts'
import { type BuiltinResources, type ResourceInfo, type GoType, type Strategy } from '@capstan/apiserver/kinds'

/** Declarations by group and version, in the order in which discovery lists the groups. */
const groups: { readonly [groupVersion: string]: KindTable } = {
  v1: core,
  'apiregistration.k8s.io/v1': apiregistration,
  'apps/v1': apps,
  'events.k8s.io/v1': eventsGroup,
  'authentication.k8s.io/v1': authentication,
  'authorization.k8s.io/v1': authorization,
  'autoscaling/v2': autoscalingV2,
  'autoscaling/v1': autoscalingV1,
  'batch/v1': batch,
  'certificates.k8s.io/v1': certificates,
  'networking.k8s.io/v1': networking,
  'policy/v1': policy,
  'rbac.authorization.k8s.io/v1': rbac,
  'storage.k8s.io/v1': storage,
  'admissionregistration.k8s.io/v1': admissionregistration,
  'apiextensions.k8s.io/v1': apiextensions,
  'scheduling.k8s.io/v1': scheduling,
  'coordination.k8s.io/v1': coordination,
  'node.k8s.io/v1': node,
  'discovery.k8s.io/v1': discovery,
  'resource.k8s.io/v1': resource,
  'flowcontrol.apiserver.k8s.io/v1': flowcontrol,
}

function infoOf(groupVersion: string, plural: string, record: ResourceRecord, declared: BuiltinKind): ResourceInfo {
  const { group, version } = parseApiVersion(groupVersion)
  const { kind, subresources = [] } = record
  const component = componentName(group, version, kind)
  const stored = parseApiVersion(declared.storedAs ?? groupVersion)
  return Object.freeze({
    group,
    version,
    plural,
    singular: record.singular,
    kind,
    listKind: `${kind}List`,
    shortNames: record.shortNames ?? [],
    categories: record.categories ?? [],
    namespaced: record.namespaced,
    builtin: true,
    component,
    get schema() {
      return declared.schema ?? schemaNamed(component)
    },
    validatesSchema: declared.schema !== undefined,
    columns: [],
    printer: declared.columns,
    get publishedColumns() {
      return recordedColumns(groupVersion, plural)
    },
    groupPriority: priorityOf(`${group}/${version}`).group,
    goType: goTypeOf(component),
    ...(storagePaths[`${plural}.${group}`] ? { storagePath: storagePaths[`${plural}.${group}`]! } : {}),
    statusSubresource: subresources.some(({ name }) => name === 'status'),
    subresources,
    defaultsOnRead: false,
    scale: declared.scale,
    storageVersion: stored.version,
    ...(stored.group === group ? {} : { storageGroup: stored.group }),
    deprecation: declared.deprecation,
    get stored() {
      return declared.storedAs === undefined ? undefined : byId.get(idOf(stored.group, stored.version, plural))
    },
    ...(declared.convertFrom ? { convertFrom: declared.convertFrom } : {}),
    conversion: undefined,
    storage: resourceName({ group: stored.group, plural }),
    apiVersion: apiVersionOf({ group, version }),
    get structural() {
      return structural(this.schema)
    },
    selectableFields: declared.selectableFields ?? {},
    verbs: record.verbs as readonly Verb[],
    ...(declared.order ? { order: declared.order } : {}),
    ...(declared.unknownFieldSelector ? { unknownFieldSelector: declared.unknownFieldSelector } : {}),
    strategy: strategyOf(component, declared),
    createForbidden: undefined,
  } satisfies ResourceInfo)
}

/**
 * Converts a declaration to a strategy. Objects of a kind are normalized to the form of Go's JSON encoder, unless its declaration replaces the
 * published schema.
 */
const strategyOf = (component: string, declared: BuiltinKind): Strategy =>
  Object.freeze({
    ...declared,
    nameProblems: (name, isPrefix) => (declared.names ?? subdomainProblems)(isPrefix ? maskTrailingDash(name) : name),
    ...(declared.schema ? {} : { normalize: (object) => goForm(component, object) }),
  } satisfies Strategy)

const idOf = (group: string, version: string, plural: string): string => `${group}/${version}/${plural}`

/** Paths of resources in upstream's etcd, by `plural.group`, where the path is not the plural. */
const storagePaths: { readonly [resource: string]: string } = {
  'services.': 'services/specs',
  'endpoints.': 'services/endpoints',
  'nodes.': 'minions',
  'replicationcontrollers.': 'controllers',
  'ingresses.networking.k8s.io': 'ingress',
  'customresourcedefinitions.apiextensions.k8s.io': 'apiextensions.k8s.io/customresourcedefinitions',
  'apiservices.apiregistration.k8s.io': 'apiregistration.k8s.io/apiservices',
}

/** Go type of a kind, from its published schema. */
const goTypeOf = (component: string): GoType => ({
  isRegistered: (apiVersion, kind) => all.some((info) => info.kind === kind && info.apiVersion === apiVersion),
  jsonProblem: (object) => jsonTypeProblem(component, object),
  convertedProblem: (object) => convertedTypeProblem(component, object),
  readNulls: (object) => readNulls(component, object),
  zeroValue: () => zeroValueOf(component),
})

/** Kind TokenRequest of the subresource `serviceaccounts/token`. Not in `builtins.all`, because it is not a resource of its own. */
export const tokenRequest: ResourceInfo = infoOf(
  'authentication.k8s.io/v1',
  'tokenrequests',
  { kind: 'TokenRequest', singular: 'tokenrequest', namespaced: true, verbs: ['create'] },
  tokenRequests as BuiltinKind,
)

/**
 * Kind Scale of the subresource `scale`, for namespaced and for cluster-scoped resources. Not in `all`, because it is not a resource of its
 * own.
 */
const scaleIn: { readonly [scope in 'namespace' | 'cluster']: ResourceInfo } = {
  namespace: scaleOfScope(true),
  cluster: scaleOfScope(false),
}

function scaleOfScope(namespaced: boolean): ResourceInfo {
  return infoOf(
    'autoscaling/v1',
    'scales',
    { kind: 'Scale', singular: 'scale', namespaced, verbs: ['get', 'update', 'patch'] },
    {},
  )
}

const all = Object.entries(groups).flatMap(([groupVersion, table]) =>
  Object.entries(table).map(([plural, kind]) =>
    infoOf(groupVersion, plural, recordOf(groupVersion, plural), kind as BuiltinKind),
  ),
)

const byId: ReadonlyMap<string, ResourceInfo> = new Map(all.map((info) => [idOf(info.group, info.version, info.plural), info]))

/** Returns the built-in resource of `group/version/plural`. */
export const builtinResource = (id: string): ResourceInfo | undefined => byId.get(id)

/** All built-in resources. Immutable, and shared by all servers of a process. */
export const builtins: BuiltinResources = {
  all,
  scale: scaleIn,
  protobufMessages: messages,
  schemas: closureOf,
  isConnection,
  flowTable,
}
