/** The kinds that the server has of its own. Declared in `@capstan/kube`; what only a server knows of them is said here. */
import {
  apiVersionOf,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  CustomResourceDefinition,
  DaemonSet,
  type DeclaredKind,
  Deployment,
  dns1035LabelProblems,
  dnsLabelProblems,
  Event,
  type KubeObject,
  Lease,
  MutatingWebhookConfiguration,
  LocalSubjectAccessReview,
  Namespace,
  Node,
  pathSegmentProblems,
  Pod,
  resourceName,
  Role,
  RoleBinding,
  Secret,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  Service,
  ServiceAccount,
  structural,
  SubjectAccessReview,
  subdomainProblems,
  TokenRequest,
  TokenReview,
  type UnknownObject,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import type { PrinterColumn } from '../engine.ts'
import { printers } from '../kinds/printers.ts'
import { definitionHooks } from './definition-hooks.ts'
import type { Definition } from './definition.ts'
import { memberAt, memberText } from './member.ts'

interface Extras {
  generation?: boolean
  names?: (name: string) => string[]
  fields?: Definition['fields']
  prepare?: Definition['prepare']
  default?: Definition['default']
  validate?: Definition['validate']
  markDeleted?: Definition['markDeleted']
  statusOnCreate?: boolean
  verbs?: Definition['verbs']
}

interface Builtins {
  readonly all: readonly Definition[]
  readonly byId: ReadonlyMap<string, Definition>
}

const at = (object: UnknownObject, ...path: string[]): unknown => memberAt(object, path)
const field =
  (...path: string[]) =>
  (object: UnknownObject): string =>
    memberText(object, path)

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const kinds: readonly (readonly [DeclaredKind, Extras])[] = [
  [
    Namespace,
    {
      names: dnsLabelProblems,
      fields: { 'status.phase': field('status', 'phase'), name: field('metadata', 'name') },
      prepare(namespace, old) {
        if (old) return
        const finalizers = (at(namespace, 'spec', 'finalizers') as string[] | undefined) ?? []
        namespace.spec = { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] }
        namespace.status = { phase: 'Active' }
      },
      markDeleted(namespace) {
        namespace.status = { ...(namespace.status as object), phase: 'Terminating' }
      },
    },
  ],
  [ConfigMap, {}],
  [Secret, { fields: { type: field('type') } }],
  [
    Event,
    {
      names: pathSegmentProblems,
      fields: {
        ...Object.fromEntries(involved.map((member) => [`involvedObject.${member}`, field('involvedObject', member)])),
        reason: field('reason'),
        reportingComponent: field('reportingComponent'),
        source: (event) => memberText(event, ['source', 'component']) || memberText(event, ['reportingComponent']),
        type: field('type'),
      },
    },
  ],
  [ServiceAccount, {}],
  [
    Node,
    { fields: { 'spec.unschedulable': (node) => String(at(node, 'spec', 'unschedulable') === true) }, statusOnCreate: true },
  ],
  [
    Pod,
    {
      generation: true,
      fields: {
        'spec.nodeName': field('spec', 'nodeName'),
        'spec.restartPolicy': field('spec', 'restartPolicy'),
        'spec.schedulerName': field('spec', 'schedulerName'),
        'spec.serviceAccountName': field('spec', 'serviceAccountName'),
        'spec.hostNetwork': (pod) => String(at(pod, 'spec', 'hostNetwork') === true),
        'status.phase': field('status', 'phase'),
        'status.podIP': field('status', 'podIP'),
        'status.nominatedNodeName': field('status', 'nominatedNodeName'),
      },
      prepare(pod, old) {
        if (!old) pod.status = { phase: 'Pending' }
      },
    },
  ],
  [
    Service,
    {
      names: dns1035LabelProblems,
      fields: { 'spec.clusterIP': field('spec', 'clusterIP'), 'spec.type': field('spec', 'type') },
      prepare(service, old) {
        if (!old) service.status = { loadBalancer: {} }
      },
    },
  ],
  [Deployment, { generation: true }],
  [DaemonSet, { generation: true }],
  [Lease, {}],
  [MutatingWebhookConfiguration, { generation: true }],
  [ValidatingWebhookConfiguration, { generation: true }],
  [Role, { names: pathSegmentProblems }],
  [ClusterRole, { names: pathSegmentProblems }],
  [RoleBinding, { names: pathSegmentProblems }],
  [ClusterRoleBinding, { names: pathSegmentProblems }],
  [SelfSubjectAccessReview, { verbs: ['create'] }],
  [SubjectAccessReview, { verbs: ['create'] }],
  [LocalSubjectAccessReview, { verbs: ['create'] }],
  [SelfSubjectRulesReview, { verbs: ['create'] }],
  [SelfSubjectReview, { verbs: ['create'] }],
  [TokenReview, { verbs: ['create'] }],
  [CustomResourceDefinition, { generation: true, ...definitionHooks }],
]

function definitionOf(kind: DeclaredKind, extras: Extras): Definition {
  const columns: readonly PrinterColumn[] | undefined = printers[resourceName(kind)]
  const names = extras.names ?? subdomainProblems
  const context = (old: KubeObject | undefined) => ({
    operation: old ? ('UPDATE' as const) : ('CREATE' as const),
    oldObject: old,
    dryRun: false,
  })
  return Object.freeze({
    group: kind.group,
    version: kind.version,
    plural: kind.plural,
    singular: kind.singular,
    kind: kind.kind,
    listKind: kind.listKind,
    shortNames: kind.shortNames,
    categories: kind.categories,
    namespaced: kind.scope === 'Namespaced',
    builtin: true,
    schema: kind.schema,
    columns: kind.columns,
    printer: columns,
    statusSubresource: kind.statusSubresource,
    completesOnRead: false,
    statusOnCreate: extras.statusOnCreate === true,
    scale: kind.scale,
    storageVersion: kind.version,
    deprecation: undefined,
    stored: undefined,
    conversion: undefined,
    storage: resourceName(kind),
    apiVersion: apiVersionOf(kind),
    get structural() {
      return structural(kind.schema)
    },
    generation: extras.generation === true,
    fields: extras.fields ?? {},
    nameProblems: (name: string, isPrefix: boolean) => names(isPrefix ? maskTrailingDash(name) : name),
    default(object: UnknownObject, old: UnknownObject | undefined) {
      kind.default?.(object, context(old))
      extras.default?.(object, old)
    },
    ...(extras.verbs ? { verbs: extras.verbs } : {}),
    ...(extras.prepare ? { prepare: extras.prepare } : {}),
    ...(extras.markDeleted ? { markDeleted: extras.markDeleted } : {}),
    validate: (object: UnknownObject, old: UnknownObject | undefined) => [
      ...(kind.validate?.(object, context(old)) ?? []),
      ...(extras.validate?.(object, old) ?? []),
    ],
    refusesCreates: undefined,
  })
}

/** A prefix ends where the random suffix will begin, so it may end in a dash. */
export const maskTrailingDash = (name: string): string => (name.length > 1 && name.endsWith('-') ? `${name.slice(0, -1)}a` : name)

/** What is sent to and answered by `serviceaccounts/token`: no resource, so nobody finds it by name. */
export const tokenRequest: Definition = definitionOf(TokenRequest, {})

const all = kinds.map(([kind, extras]) => definitionOf(kind, extras))

/** Shared by all planes of a process: nothing in them belongs to one. */
export const builtins: Builtins = {
  all,
  byId: new Map(all.map((one) => [`${one.group}/${one.version}/${one.plural}`, one])),
}
