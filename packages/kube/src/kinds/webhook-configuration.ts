/**
 * Configurations of admission webhooks.
 * Upstream: k8s.io/api/admissionregistration/v1 with its defaults, and pkg/apis/admissionregistration/validation, v1.36.
 */
import { appendAll, repeats } from '../lists.ts'
import type { AdmissionScope } from '../cel/admission-expression.ts'
import { matchConditionProblem } from '../cel/match-condition.ts'
import { duplicate, type FieldError, invalid, notSupported, required, tooMany } from '../errors.ts'
import { type DeclaredKind, defineKind } from '../kind.ts'
import { dns1035LabelProblems, qualifiedNameProblems, subdomainProblems } from '../names.ts'
import type { KubeObject } from '../object.ts'
import { s } from '../schema.ts'
import { type LabelSelector, labelSelectorErrors } from '../selector.ts'
import { labelSelector } from './label-selector.ts'
import { type WebhookClientConfig, webhookClientConfig } from './webhook-client-config.ts'

export interface WebhookRule {
  operations: string[]
  apiGroups: string[]
  apiVersions: string[]
  resources: string[]
  scope?: string
}

/** One webhook of a configuration. The API server sets the defaults of omitted fields before it stores the configuration. */
export interface Webhook {
  name: string
  clientConfig: WebhookClientConfig
  rules?: WebhookRule[]
  failurePolicy?: string
  matchPolicy?: string
  namespaceSelector?: LabelSelector
  objectSelector?: LabelSelector
  sideEffects: string
  timeoutSeconds?: number
  admissionReviewVersions: string[]
  matchConditions?: { name: string; expression: string }[]
  /** Only for mutating webhooks. */
  reinvocationPolicy?: string
}

const optionalStrings = () => s.list(s.string()).atomic().optional()

const webhook = {
  name: s.string().doc('Fully qualified name, such as default.widget.example.com.'),
  clientConfig: webhookClientConfig,
  rules: s
    .list(
      s.object({
        operations: optionalStrings(),
        apiGroups: optionalStrings(),
        apiVersions: optionalStrings(),
        resources: optionalStrings(),
        scope: s.string().optional(),
      }),
    )
    .atomic()
    .optional()
    .doc('Operations and resources for which the webhook is called.'),
  failurePolicy: s.string().optional().doc('Handling of failed webhook calls: Fail or Ignore.'),
  matchPolicy: s
    .string()
    .optional()
    .doc('Whether rules also match a resource in other API groups and versions: Equivalent or Exact.'),
  namespaceSelector: labelSelector.optional(),
  objectSelector: labelSelector.optional(),
  sideEffects: s.string().optional(),
  timeoutSeconds: s.int32().optional(),
  admissionReviewVersions: optionalStrings(),
  matchConditions: s
    .list(s.object({ name: s.string(), expression: s.string() }))
    .listMap('name')
    .optional(),
}

export interface MutatingWebhookConfiguration extends KubeObject {
  webhooks?: Webhook[]
}
export interface ValidatingWebhookConfiguration extends KubeObject {
  webhooks?: Omit<Webhook, 'reinvocationPolicy'>[]
}

const declaredMutating = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
  categories: ['api-extensions'],
  scope: 'Cluster',
  doc: 'Webhooks that can change objects in write requests.',
  fields: {
    webhooks: s
      .list(
        s.object({
          ...webhook,
          reinvocationPolicy: s
            .string()
            .optional()
            .doc('Never, or IfNeeded: the webhook is called again when a later plugin changed the object.'),
        }),
      )
      .listMap('name')
      .optional(),
  },
  default({ webhooks = [] }) {
    for (const webhook of webhooks as Webhook[]) {
      setDefaults(webhook)
      webhook.reinvocationPolicy ??= 'Never'
    }
  },
  validate: ({ webhooks = [] }) => webhookListErrors(webhooks as Webhook[], true),
})
export const MutatingWebhookConfiguration = declaredMutating as unknown as DeclaredKind<MutatingWebhookConfiguration>

const declaredValidating = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  categories: ['api-extensions'],
  scope: 'Cluster',
  doc: 'Webhooks that can reject write requests.',
  fields: { webhooks: s.list(s.object(webhook)).listMap('name').optional() },
  default({ webhooks = [] }) {
    for (const webhook of webhooks as Webhook[]) setDefaults(webhook)
  },
  validate: ({ webhooks = [] }) => webhookListErrors(webhooks as Webhook[], false),
})
export const ValidatingWebhookConfiguration = declaredValidating as unknown as DeclaredKind<ValidatingWebhookConfiguration>

function setDefaults(webhook: Webhook): void {
  webhook.failurePolicy ??= 'Fail'
  webhook.matchPolicy ??= 'Equivalent'
  webhook.namespaceSelector ??= {}
  webhook.objectSelector ??= {}
  webhook.timeoutSeconds ??= 10
  for (const rule of webhook.rules ?? []) rule.scope ??= '*'
  if (webhook.clientConfig?.service) webhook.clientConfig.service.port ??= 443
}

function webhookListErrors(webhooks: readonly Webhook[], mutating: boolean): FieldError[] {
  const seenNames = new Set<string>()
  return webhooks.flatMap((webhook, index) => {
    const path = `webhooks[${index}]`
    const errors = webhookErrors(webhook, path, mutating)
    if (seenNames.has(webhook.name)) errors.push(duplicate(`${path}.name`, webhook.name))
    seenNames.add(webhook.name)
    return errors
  })
}

function webhookErrors(webhook: Webhook, path: string, mutating: boolean): FieldError[] {
  const errors: FieldError[] = [...qualifiedNameErrors(webhook.name, `${path}.name`)]
  const checkEnum = (field: keyof Webhook, values: readonly string[]) => {
    const value = webhook[field]
    if (value !== undefined && !values.includes(value as string)) errors.push(notSupported(`${path}.${field}`, value, values))
  }
  appendAll(errors, reviewVersionErrors(webhook.admissionReviewVersions ?? [], `${path}.admissionReviewVersions`))
  webhook.rules?.forEach((rule, index) => appendAll(errors, admissionRuleErrors(rule, `${path}.rules[${index}]`)))
  checkEnum('failurePolicy', ['Fail', 'Ignore'])
  checkEnum('matchPolicy', ['Equivalent', 'Exact'])
  if (!webhook.sideEffects) errors.push(required(`${path}.sideEffects`, 'must specify one of None, NoneOnDryRun'))
  else checkEnum('sideEffects', ['None', 'NoneOnDryRun'])
  if (webhook.timeoutSeconds !== undefined && (webhook.timeoutSeconds > 30 || webhook.timeoutSeconds < 1)) {
    errors.push(invalid(`${path}.timeoutSeconds`, webhook.timeoutSeconds, 'the timeout value must be between 1 and 30 seconds'))
  }
  for (const field of ['namespaceSelector', 'objectSelector'] as const) {
    appendAll(errors, labelSelectorErrors(webhook[field], `${path}.${field}`))
  }
  if (mutating) checkEnum('reinvocationPolicy', ['IfNeeded', 'Never'])
  appendAll(errors, clientConfigErrors(webhook.clientConfig, `${path}.clientConfig`))
  appendAll(errors, matchConditionErrors(webhook.matchConditions ?? [], `${path}.matchConditions`))
  return errors
}

function qualifiedNameErrors(name: string, field: string): FieldError[] {
  if (!name) return [required(field)]
  const problems = subdomainProblems(name)
  if (problems.length > 0) return problems.map((problem) => invalid(field, name, problem))
  if (name.split('.').length >= 3) return []
  return [invalid(field, name, 'should be a domain with at least three segments separated by dots')]
}

/** Versions of AdmissionReview that the API server can send. */
export const AdmissionReviewVersions: readonly string[] = ['v1', 'v1beta1']

function reviewVersionErrors(versions: readonly string[], field: string): FieldError[] {
  const knownVersions = AdmissionReviewVersions.join(', ')
  if (versions.length === 0) return [required(field, `must specify one of ${knownVersions}`)]
  const errors: FieldError[] = []
  const repeated = repeats(versions)
  versions.forEach((version, index) => {
    if (repeated[index]) errors.push(invalid(`${field}[${index}]`, version, 'duplicate version'))
    else for (const problem of dns1035LabelProblems(version)) errors.push(invalid(`${field}[${index}]`, version, problem))
  })
  if (!versions.some((version) => AdmissionReviewVersions.includes(version))) {
    errors.push(invalid(field, versions, `must include at least one of ${knownVersions}`))
  }
  return errors
}

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']

/** Validation errors of a rule of an admission webhook or policy. */
export function admissionRuleErrors(rule: WebhookRule, path: string): FieldError[] {
  const errors: FieldError[] = []
  const checkWildcard = (field: 'apiGroups' | 'apiVersions' | 'operations', noun: string) => {
    const values = rule[field] ?? []
    if (values.length === 0) errors.push(required(`${path}.${field}`))
    else if (values.length > 1 && values.includes('*')) {
      errors.push(invalid(`${path}.${field}`, values, `if '*' is present, must not specify other ${noun}`))
    }
  }
  checkWildcard('apiGroups', 'API groups')
  checkWildcard('apiVersions', 'API versions')
  rule.apiVersions?.forEach((version, index) => {
    if (version === '') errors.push(required(`${path}.apiVersions[${index}]`))
  })
  appendAll(errors, resourceErrors(rule.resources ?? [], `${path}.resources`))
  if (rule.scope !== undefined && !['*', 'Cluster', 'Namespaced'].includes(rule.scope)) {
    errors.push(notSupported(`${path}.scope`, rule.scope, ['*', 'Cluster', 'Namespaced']))
  }
  checkWildcard('operations', 'operations')
  rule.operations?.forEach((operation, index) => {
    if (!operations.includes(operation)) errors.push(notSupported(`${path}.operations[${index}]`, operation, operations))
  })
  return errors
}

function resourceErrors(resources: readonly string[], field: string): FieldError[] {
  if (resources.length === 0) return [required(field)]
  const errors: FieldError[] = []
  const allSubresourcesOf = new Set<string>()
  const subresourcesOfAll = new Set<string>()
  resources.forEach((text, index) => {
    const [resource = '', subresource] = text.split('/', 2)
    if (text === '') errors.push(required(`${field}[${index}]`))
    else if (resource === '') errors.push(invalid(`${field}[${index}]`, text, 'resource name cannot be empty'))
    if (allSubresourcesOf.has(resource)) {
      errors.push(invalid(`${field}[${index}]`, text, `if '${resource}/*' is present, must not specify ${text}`))
    }
    if (subresource !== undefined && subresourcesOfAll.has(subresource)) {
      errors.push(invalid(`${field}[${index}]`, text, `if '*/${subresource}' is present, must not specify ${text}`))
    }
    if (subresource === '*') allSubresourcesOf.add(resource)
    if (resource === '*' && subresource !== undefined) subresourcesOfAll.add(subresource)
  })
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(field, resources, "if '*/*' is present, must not specify other resources"))
  }
  if (resources.includes('*') && resources.some((text) => text !== '*' && !text.includes('/'))) {
    errors.push(invalid(field, resources, "if '*' is present, must not specify other resources without subresources"))
  }
  return errors
}

const MaxConditions = 64

/** Validation errors of the match conditions of an admission webhook or policy. `scope` lists further variables of the expressions. */
export function matchConditionErrors(
  conditions: NonNullable<Webhook['matchConditions']>,
  field: string,
  scope?: AdmissionScope,
): FieldError[] {
  if (conditions.length > MaxConditions) return [tooMany(field, conditions.length, MaxConditions)]
  const seenNames = new Set<string>()
  return conditions.flatMap(({ name, expression }, index) => {
    const path = `${field}[${index}]`
    const errors: FieldError[] = []
    if (!expression?.trim()) errors.push(required(`${path}.expression`))
    else {
      const problem = matchConditionProblem(expression, scope)
      if (problem !== undefined) errors.push(invalid(`${path}.expression`, expression, problem))
    }
    if (!name) errors.push(required(`${path}.name`))
    else for (const problem of qualifiedNameProblems(name)) errors.push(invalid(`${path}.name`, name, problem))
    if (seenNames.has(name)) errors.push(duplicate(`${path}.name`, name))
    seenNames.add(name)
    return errors
  })
}

/** Validation errors of the address of an admission or conversion webhook. */
export function clientConfigErrors(config: WebhookClientConfig | undefined, path: string): FieldError[] {
  const { url, service } = config ?? {}
  if ((url === undefined) === (service === undefined)) return [required(path, 'exactly one of url or service is required')]
  if (url !== undefined) return urlErrors(url, `${path}.url`)
  const errors: FieldError[] = []
  if (!service?.name) errors.push(required(`${path}.service.name`))
  if (!service?.namespace) errors.push(required(`${path}.service.namespace`))
  const { port, path: servicePath } = service ?? {}
  if (port !== undefined && (port < 1 || port > 65535)) {
    errors.push(invalid(`${path}.service.port`, port, 'port is not valid: must be between 1 and 65535, inclusive'))
  }
  return [...errors, ...pathProblems(servicePath ?? '').map((problem) => invalid(`${path}.service.path`, servicePath, problem))]
}

function pathProblems(path: string): string[] {
  if (path === '' || path === '/') return []
  if (path === '//') return ['segment[0] may not be empty']
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  return [
    ...(path.startsWith('/') ? [] : ["must start with a '/'"]),
    ...segments.flatMap((segment, index) =>
      segment === ''
        ? [`segment[${index}] may not be empty`]
        : subdomainProblems(segment).map((problem) => `segment[${index}]: ${problem}`),
    ),
  ]
}

function urlErrors(text: string, field: string): FieldError[] {
  const formHint = '; desired format: https://host[/path]'
  const url = URL.parse(text)
  if (!url && !/^[a-z][a-z0-9+.-]*:/i.test(text)) {
    const schemeError = invalid(field, '', `'https' is the only allowed URL scheme${formHint}`)
    return [schemeError, invalid(field, '', `host must be specified${formHint}`)]
  }
  if (!url) return [required(field, `url must be a valid URL: ${JSON.stringify(text)} cannot be parsed${formHint}`)]
  const errors: FieldError[] = []
  const scheme = url.protocol.slice(0, -1)
  if (scheme !== 'https') errors.push(invalid(field, scheme, `'https' is the only allowed URL scheme${formHint}`))
  if (url.host === '') errors.push(invalid(field, url.host, `host must be specified${formHint}`))
  if (url.username !== '' || url.password !== '') {
    const user = url.password === '' ? url.username : `${url.username}:${url.password}`
    errors.push(invalid(field, user, 'user information is not permitted in the URL'))
  }
  if (url.hash !== '') errors.push(invalid(field, url.hash.slice(1), 'fragments are not permitted in the URL'))
  if (url.search !== '') errors.push(invalid(field, url.search.slice(1), 'query parameters are not permitted in the URL'))
  return errors
}
