/** The kinds that the server has of its own: what upstream says of them, joined with what `kinds/` declares. */
import {
  apiVersionOf,
  parseApiVersion,
  resourceName,
  structural,
  subdomainProblems,
  type UnknownObject,
  type Verb,
} from '@capstan/kube'
import { admissionregistration } from '../kinds/admissionregistration.ts'
import { apiextensions } from '../kinds/apiextensions.ts'
import { apiregistration } from '../kinds/apiregistration.ts'
import { apps } from '../kinds/apps.ts'
import type { BuiltinKind, KindTable } from '../kinds/builtin-kind.ts'
import { autoscalingV1, autoscalingV2 } from '../kinds/autoscaling.ts'
import { batch } from '../kinds/batch.ts'
import { certificates } from '../kinds/certificates.ts'
import { componentName, recordOf, type ResourceRecord, schemaNamed } from '../kinds/catalog.ts'
import { coordination } from '../kinds/coordination.ts'
import { core } from '../kinds/core.ts'
import { discovery } from '../kinds/discovery.ts'
import { eventsGroup } from '../kinds/events.ts'
import { flowcontrol } from '../kinds/flowcontrol.ts'
import { networking } from '../kinds/networking.ts'
import { goForm } from '../kinds/go-form.ts'
import { node } from '../kinds/node.ts'
import { policy } from '../kinds/policy.ts'
import { rbac } from '../kinds/rbac.ts'
import { authentication, authorization, tokenRequests } from '../kinds/reviews.ts'
import { resource } from '../kinds/resource.ts'
import { scheduling } from '../kinds/scheduling.ts'
import { storage } from '../kinds/storage.ts'
import type { Definition } from './definition.ts'

/** In the order in which discovery lists the groups. */
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

interface Builtins {
  readonly all: readonly Definition[]
  readonly byId: ReadonlyMap<string, Definition>
}

function definitionOf(groupVersion: string, plural: string, record: ResourceRecord, declared: BuiltinKind): Definition {
  const { group, version } = parseApiVersion(groupVersion)
  const { kind, subresources = [] } = record
  const component = componentName(group, version, kind)
  const stored = parseApiVersion(declared.storedAs ?? groupVersion)
  const names = declared.names ?? subdomainProblems
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
    statusSubresource: subresources.some(({ name }) => name === 'status'),
    subresources,
    completesOnRead: false,
    statusOnCreate: declared.statusOnCreate === true,
    scale: declared.scale,
    storageVersion: stored.version,
    ...(stored.group === group ? {} : { storageGroup: stored.group }),
    deprecation: declared.deprecation,
    get stored() {
      return declared.storedAs === undefined ? undefined : builtins.byId.get(idOf(stored.group, stored.version, plural))
    },
    ...(declared.from ? { from: declared.from } : {}),
    conversion: undefined,
    storage: resourceName({ group: stored.group, plural }),
    apiVersion: apiVersionOf({ group, version }),
    get structural() {
      return structural(this.schema)
    },
    createsOnUpdate: declared.createsOnUpdate === true,
    returnsDeleted: declared.returnsDeleted === true,
    generation: declared.generation ?? false,
    fields: declared.fields ?? {},
    verbs: record.verbs as readonly Verb[],
    nameProblems: (name: string, isPrefix: boolean) => names(isPrefix ? maskTrailingDash(name) : name),
    ...(declared.schema ? {} : { normalize: (object: UnknownObject) => goForm(component, object) }),
    ...(declared.order ? { order: declared.order } : {}),
    ...(declared.orphans === undefined ? {} : { orphans: declared.orphans }),
    ...(declared.unknownField ? { unknownField: declared.unknownField } : {}),
    ...(declared.tidy ? { tidy: declared.tidy.bind(declared) } : {}),
    ...(declared.default ? { default: declared.default.bind(declared) } : {}),
    ...(declared.share ? { share: declared.share.bind(declared) } : {}),
    ...(declared.prepare ? { prepare: declared.prepare.bind(declared) } : {}),
    ...(declared.warnings ? { warnings: declared.warnings.bind(declared) } : {}),
    ...(declared.gracePeriod ? { gracePeriod: declared.gracePeriod.bind(declared) } : {}),
    ...(declared.markDeleted ? { markDeleted: declared.markDeleted.bind(declared) } : {}),
    ...(declared.resets ? { resets: declared.resets } : {}),
    ...(declared.writes ? { writes: declared.writes } : {}),
    validate: (object, old, context) => declared.validate?.(object, old, context) ?? [],
    refusesCreates: undefined,
  } satisfies Definition)
}

const idOf = (group: string, version: string, plural: string): string => `${group}/${version}/${plural}`

/** A prefix ends where the random suffix will begin, so it may end in a dash. */
export const maskTrailingDash = (name: string): string => (name.length > 1 && name.endsWith('-') ? `${name.slice(0, -1)}a` : name)

/** What is sent to and answered by `serviceaccounts/token`: no resource, so nobody finds it by name. */
export const tokenRequest: Definition = definitionOf(
  'authentication.k8s.io/v1',
  'tokenrequests',
  { kind: 'TokenRequest', singular: 'tokenrequest', namespaced: true, verbs: ['create'] },
  tokenRequests as BuiltinKind,
)

/** What `scale` shows of objects inside of a namespace, and of others: no resource either. */
export const scaleIn: { readonly [scope in 'namespace' | 'cluster']: Definition } = {
  namespace: scaleOfScope(true),
  cluster: scaleOfScope(false),
}

function scaleOfScope(namespaced: boolean): Definition {
  return definitionOf(
    'autoscaling/v1',
    'scales',
    { kind: 'Scale', singular: 'scale', namespaced, verbs: ['get', 'update', 'patch'] },
    {},
  )
}

const all = Object.entries(groups).flatMap(([groupVersion, table]) =>
  Object.entries(table).map(([plural, kind]) =>
    definitionOf(groupVersion, plural, recordOf(groupVersion, plural), kind as BuiltinKind),
  ),
)

/** Shared by all planes of a process: nothing in them belongs to one. */
export const builtins: Builtins = {
  all,
  byId: new Map(all.map((one) => [idOf(one.group, one.version, one.plural), one])),
}
