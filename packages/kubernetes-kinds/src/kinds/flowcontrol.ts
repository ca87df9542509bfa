/** The kinds of `flowcontrol.apiserver.k8s.io/v1`. Upstream: pkg/apis/flowcontrol and pkg/registry/flowcontrol, v1.36. */
import {
  appendAll,
  dnsLabelProblems,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  subdomainProblems,
  type UnknownObject,
} from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { oneOf, problems } from './checks.ts'
import { ageColumn, at, column, list, nameColumn, number, orNone, text } from './columns.ts'
import { unique } from './same.ts'
import type {
  FlowSchema,
  FlowSchemaCondition,
  FlowSchemaSpec,
  FlowcontrolV1Subject as Subject,
  LimitedPriorityLevelConfiguration,
  PolicyRulesWithSubjects,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
} from './schemas/types.ts'

const precedenceOf = (schema: UnknownObject): number => number(schema, 'spec', 'matchingPrecedence')

const MaxPrecedence = 10_000
const MaxQueues = 10_000_000

const flowschemas: BuiltinKind<FlowSchema> = {
  generation: true,
  // Sorted by the order in which requests are matched.
  order: (a, b) => precedenceOf(a) - precedenceOf(b) || (a.metadata.name < b.metadata.name ? -1 : 1),
  columns: [
    nameColumn,
    column('PriorityLevel', (o) => text(o, 'spec', 'priorityLevelConfiguration', 'name')),
    column('MatchingPrecedence', (o) => number(o, 'spec', 'matchingPrecedence')),
    column('DistinguisherMethod', (o) => orNone(text(o, 'spec', 'distinguisherMethod', 'type'))),
    ageColumn,
    column(
      'MissingPL',
      (o) => list<FlowSchemaCondition>(o, 'status', 'conditions').find(({ type }) => type === 'Dangling')?.status ?? '?',
    ),
  ],
  default({ spec }) {
    spec.matchingPrecedence ||= 1000
  },
  validate({ metadata: { name }, spec, status }, _, { subresource }) {
    return [...(subresource === 'status' ? [] : schemaErrors(name, spec)), ...conditionErrors(status.conditions ?? [])]
  },
}

const conditionErrors = (conditions: readonly { type?: string }[]): FieldError[] => [
  ...unique(
    conditions.map(({ type }) => type),
    (index) => `status.conditions[${index}].type`,
  ),
  ...conditions.flatMap(({ type }, index) => (type ? [] : [required(`status.conditions[${index}].type`)])),
]

function schemaErrors(name: string, spec: FlowSchemaSpec): FieldError[] {
  const { matchingPrecedence: precedence, distinguisherMethod, priorityLevelConfiguration, rules } = spec
  const level = priorityLevelConfiguration.name
  const path = 'spec.matchingPrecedence'
  return [
    ...(precedence <= 0 ? [invalid(path, precedence, 'must be a positive value')] : []),
    ...(precedence > MaxPrecedence ? [invalid(path, precedence, `must not be greater than ${MaxPrecedence}`)] : []),
    ...(precedence === 1 && name !== 'exempt'
      ? [invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")]
      : []),
    ...(distinguisherMethod && !['ByNamespace', 'ByUser'].includes(distinguisherMethod.type)
      ? [notSupported('spec.distinguisherMethod.type', { Type: distinguisherMethod.type }, ['ByNamespace', 'ByUser'])]
      : []),
    ...(level
      ? problems('spec.priorityLevelConfiguration.name', level, subdomainProblems(level))
      : [required('spec.priorityLevelConfiguration.name', 'must reference a priority level')]),
    ...(rules ?? []).flatMap((rule, index) => ruleErrors(`spec.rules[${index}]`, rule)),
  ]
}

function ruleErrors(path: string, { subjects, resourceRules, nonResourceRules }: PolicyRulesWithSubjects): FieldError[] {
  const isEmpty = !resourceRules?.length && !nonResourceRules?.length
  return [
    ...(subjects?.length ? [] : [required(`${path}.subjects`, 'subjects must contain at least one value')]),
    ...(subjects ?? []).flatMap((subject, index) => subjectErrors(`${path}.subjects[${index}]`, subject)),
    ...(isEmpty ? [required(path, 'at least one of resourceRules and nonResourceRules has to be non-empty')] : []),
    ...(resourceRules ?? []).flatMap((rule, index) => {
      const rulePath = `${path}.resourceRules[${index}]`
      return [
        ...someOf(`${rulePath}.verbs`, rule.verbs, 'verbs must contain at least one value', 'verbs'),
        ...someOf(`${rulePath}.apiGroups`, rule.apiGroups, 'resource rules must supply at least one api group', 'api groups'),
        ...someOf(`${rulePath}.resources`, rule.resources, 'resource rules must supply at least one resource', 'resources'),
        ...namespaceErrors(`${rulePath}.namespaces`, rule.namespaces ?? [], rule.clusterScope === true),
      ]
    }),
    ...(nonResourceRules ?? []).flatMap((rule, index) => {
      const rulePath = `${path}.nonResourceRules[${index}]`
      const none = 'nonResourceURLs must contain at least one value'
      return [
        ...someOf(`${rulePath}.verbs`, rule.verbs, 'verbs must contain at least one value', 'verbs'),
        ...someOf(`${rulePath}.nonResourceURLs`, rule.nonResourceURLs, none, 'non-resource URLs'),
      ]
    }),
  ]
}

/** Requires at least one entry, and no other entries beside `*`. `none` is the error text for an empty list, `noun` names the entries. */
function someOf(path: string, values: readonly string[] = [], none: string, noun: string): FieldError[] {
  if (values.length === 0) return [required(path, none)]
  if (values.length === 1 || !values.includes('*')) return []
  return [invalid(path, values, `if '*' is present, must not specify other ${noun}`)]
}

function namespaceErrors(path: string, namespaces: readonly string[], isClusterScope: boolean): FieldError[] {
  if (namespaces.length === 0 && isClusterScope) return []
  const none = 'resource rules that are not cluster scoped must supply at least one namespace'
  if (namespaces.length === 0 || namespaces.includes('*')) return someOf(path, namespaces, none, 'namespaces')
  return namespaces.flatMap((namespace, index) =>
    dnsLabelProblems(namespace).map((problem) =>
      invalid(`${path}[${index}]`, namespace, `each member of this list must be '*' or a DNS-1123 label; ${problem}`),
    ),
  )
}

/** Member of a subject for each kind of subject. */
const members = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const

function subjectErrors(path: string, subject: Subject): FieldError[] {
  const { kind } = subject
  if (kind !== 'ServiceAccount' && kind !== 'User' && kind !== 'Group') {
    return [notSupported(`${path}.kind`, kind, ['Group', 'ServiceAccount', 'User'])]
  }
  const member = members[kind]
  const named = subject[member]
  const errors: FieldError[] = []
  if (!named) errors.push(required(`${path}.${member}`, `${member} is required when subject kind is '${kind}'`))
  else {
    if (!named.name) errors.push(required(`${path}.${member}.name`))
    if (kind === 'ServiceAccount' && !subject.serviceAccount!.namespace) {
      errors.push(required(`${path}.${member}.namespace`, 'must specify namespace for service account'))
    }
  }
  for (const [otherKind, field] of Object.entries(members)) {
    if (field === member || !subject[field]) continue
    errors.push(forbidden(`${path}.${field}`, `${field} is forbidden when subject kind is not '${otherKind}'`))
  }
  return errors
}

const queuingValue =
  (field: string) =>
  (object: Parameters<typeof at>[0]): number | string =>
    (at(object, 'spec', 'limited', 'limitResponse', 'queuing', field) as number | undefined) ?? '<none>'

const prioritylevelconfigurations: BuiltinKind<PriorityLevelConfiguration> = {
  generation: true,
  columns: [
    nameColumn,
    column('Type', (o) => text(o, 'spec', 'type')),
    column(
      'NominalConcurrencyShares',
      (o) => (at(o, 'spec', 'limited', 'nominalConcurrencyShares') as number | undefined) ?? '<none>',
    ),
    column('Queues', queuingValue('queues')),
    column('HandSize', queuingValue('handSize')),
    column('QueueLengthLimit', queuingValue('queueLengthLimit')),
    ageColumn,
  ],
  default({ spec: { exempt, limited } }) {
    if (exempt) {
      exempt.nominalConcurrencyShares ??= 0
      exempt.lendablePercent ??= 0
    }
    if (!limited) return
    limited.nominalConcurrencyShares ??= 30
    limited.lendablePercent ??= 0
    const { queuing } = limited.limitResponse
    if (!queuing) return
    queuing.handSize ||= 8
    queuing.queues ||= 64
    queuing.queueLengthLimit ||= 50
  },
  validate({ metadata: { name }, spec, status }, _, { subresource }) {
    return [...(subresource === 'status' ? [] : levelErrors(name, spec)), ...conditionErrors(status.conditions ?? [])]
  },
}

function levelErrors(name: string, { type, limited, exempt }: PriorityLevelConfigurationSpec): FieldError[] {
  const errors: FieldError[] = []
  if ((name === 'exempt') !== (type === 'Exempt')) {
    errors.push(invalid('spec.type', type, "must be 'Exempt' if and only if `name` is 'exempt'"))
  }
  if (type === 'Exempt') {
    if (limited) errors.push(forbidden('spec.limited', 'must be nil if the type is not Limited'))
  } else if (type === 'Limited') {
    if (exempt) errors.push(forbidden('spec.exempt', 'must be nil if the type is Limited'))
    if (limited) appendAll(errors, limitErrors('spec.limited', limited))
    else errors.push(required('spec.limited', 'must not be empty when type is Limited'))
  } else errors.push(notSupported('spec.type', type, ['Exempt', 'Limited']))
  return errors
}

function limitErrors(path: string, limited: LimitedPriorityLevelConfiguration): FieldError[] {
  const { nominalConcurrencyShares: shares = 0, lendablePercent: percent = 0, limitResponse } = limited
  const { type, queuing } = limitResponse
  const queuingPath = `${path}.limitResponse.queuing`
  const errors: FieldError[] = []
  if (shares < 0) errors.push(invalid(`${path}.nominalConcurrencyShares`, shares, 'must be a non-negative integer'))
  appendAll(errors, oneOf(`${path}.limitResponse.type`, type, ['Queue', 'Reject']))
  if (type === 'Reject' && queuing)
    errors.push(forbidden(queuingPath, 'must be nil if limited.limitResponse.type is not Limited'))
  if (type === 'Queue' && !queuing) {
    errors.push(required(queuingPath, 'must not be empty if limited.limitResponse.type is Limited'))
  }
  for (const field of ['queueLengthLimit', 'queues', 'handSize'] as const) {
    const value = queuing?.[field]
    if (value === undefined) continue
    if (value <= 0) errors.push(invalid(`${queuingPath}.${field}`, value, 'must be positive'))
    if (field === 'queues' && value > MaxQueues) {
      errors.push(invalid(`${queuingPath}.${field}`, value, `must not be greater than ${MaxQueues}`))
    }
    if (field === 'handSize' && value > (queuing!.queues ?? 0)) {
      errors.push(invalid(`${queuingPath}.${field}`, value, `should not be greater than queues (${queuing!.queues})`))
    }
  }
  if (percent < 0 || percent > 100) {
    errors.push(invalid(`${path}.lendablePercent`, percent, 'must be between 0 and 100, inclusive'))
  }
  return errors
}

export const flowcontrol: KindTable = { flowschemas, prioritylevelconfigurations }
