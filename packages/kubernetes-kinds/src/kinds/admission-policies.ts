/** ValidatingAdmissionPolicy and its binding. Upstream: pkg/apis/admissionregistration, v1.36. */
import {
  admissionExpression,
  admissionRuleErrors,
  type AdmissionScope,
  appendAll,
  dns1035LabelProblems,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  type LabelSelector,
  labelSelectorErrors,
  matchConditionErrors,
  notSupported,
  parseApiVersion,
  pathSegmentProblems,
  qualifiedNameProblems,
  repeats,
  required,
  subdomainProblems,
  type WebhookRule,
} from '@capstan/kube'
import { variablesOf } from '@capstan/apiserver/kinds'
import type { BuiltinKind } from './builtin-kind.ts'
import { oneOf, problems } from './checks.ts'
import { ageColumn, at, column, list, nameColumn, text } from './columns.ts'
import type {
  AuditAnnotation,
  MatchResources,
  ParamRef,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  Validation,
} from './schemas/types.ts'

export const validatingadmissionpolicies: BuiltinKind<ValidatingAdmissionPolicy> = {
  generation: true,
  columns: [
    nameColumn,
    column('Validations', (o) => list(o, 'spec', 'validations').length, { type: 'integer' }),
    column('ParamKind', (o) =>
      at(o, 'spec', 'paramKind') === undefined
        ? '<unset>'
        : `${text(o, 'spec', 'paramKind', 'apiVersion')}/${text(o, 'spec', 'paramKind', 'kind')}`,
    ),
    ageColumn,
  ],
  default({ spec }) {
    spec.failurePolicy ??= 'Fail'
    defaultMatch(spec.matchConstraints)
  },
  validate({ spec, metadata }, _old, { subresource }) {
    if (subresource === 'status') return []
    const errors = [...oneOf('spec.failurePolicy', spec.failurePolicy, ['Fail', 'Ignore'])]
    const { paramKind, matchConstraints, matchConditions = [], validations = [], auditAnnotations = [] } = spec
    const hasParams = paramKind !== undefined
    if (paramKind) appendAll(errors, paramKindErrors(paramKind))
    if (!matchConstraints) errors.push(required('spec.matchConstraints'))
    else {
      appendAll(errors, matchErrors(matchConstraints, 'spec.matchConstraints'))
      if (!matchConstraints.resourceRules?.length) errors.push(required('spec.matchConstraints.resourceRules'))
    }
    appendAll(errors, matchConditionErrors(matchConditions, 'spec.matchConditions', { hasParams }))
    const variables = variablesOf(spec)
    appendAll(errors, variables.errors)
    if (validations.length === 0 && auditAnnotations.length === 0) {
      const problem = 'validations or auditAnnotations must contain at least one item'
      return [...errors, required('spec.validations', problem), required('spec.auditAnnotations', problem)]
    }
    const scope = { hasParams, variables: variables.known }
    validations.forEach((validation, index) =>
      appendAll(errors, validationErrors(validation, `spec.validations[${index}]`, scope)),
    )
    if (auditAnnotations.length > 20)
      errors.push(invalid('spec.auditAnnotations', auditAnnotations, 'must not have more than 20 auditAnnotations'))
    const repeated = repeats(auditAnnotations.map(({ key }) => key))
    auditAnnotations.forEach((annotation, index) => {
      const field = `spec.auditAnnotations[${index}]`
      appendAll(errors, annotationErrors(annotation, field, metadata.name ?? '', scope))
      if (repeated[index]) errors.push(duplicate(`${field}.key`, annotation.key))
    })
    return errors
  },
}

export const validatingadmissionpolicybindings: BuiltinKind<ValidatingAdmissionPolicyBinding> = {
  generation: true,
  columns: [
    nameColumn,
    column('PolicyName', (o) => text(o, 'spec', 'policyName')),
    column('ParamRef', (o) => {
      if (at(o, 'spec', 'paramRef') === undefined) return '<unset>'
      const [namespace, name] = [text(o, 'spec', 'paramRef', 'namespace') || '*', text(o, 'spec', 'paramRef', 'name')]
      return name ? `${namespace}/${name}` : namespace
    }),
    ageColumn,
  ],
  default({ spec }) {
    defaultMatch(spec.matchResources)
  },
  validate({ spec }) {
    const errors = spec.policyName
      ? problems('spec.policyName', spec.policyName, subdomainProblems(spec.policyName))
      : [required('spec.policyName')]
    if (spec.paramRef) appendAll(errors, paramRefErrors(spec.paramRef))
    if (spec.matchResources) appendAll(errors, matchErrors(spec.matchResources, 'spec.matchResources'))
    return [...errors, ...actionErrors(spec.validationActions ?? [])]
  },
}

function defaultMatch(match: MatchResources | undefined): void {
  if (!match) return
  match.matchPolicy ??= 'Equivalent'
  match.namespaceSelector ??= {}
  match.objectSelector ??= {}
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) rule.scope ??= '*'
}

function matchErrors(match: MatchResources, field: string): FieldError[] {
  const errors = [...oneOf(`${field}.matchPolicy`, match.matchPolicy, ['Equivalent', 'Exact'])]
  for (const selector of ['namespaceSelector', 'objectSelector'] as const)
    appendAll(errors, labelSelectorErrors(match[selector] as LabelSelector | undefined, `${field}.${selector}`))
  for (const rules of ['resourceRules', 'excludeResourceRules'] as const) {
    match[rules]?.forEach((rule, index) => {
      const rulePath = `${field}.${rules}[${index}]`
      const { resourceNames = [] } = rule
      const repeated = repeats(resourceNames)
      resourceNames.forEach((name, nameIndex) => {
        appendAll(errors, problems(`${rulePath}.resourceNames[${nameIndex}]`, name, pathSegmentProblems(name)))
        if (repeated[nameIndex]) errors.push(duplicate(`${rulePath}.resourceNames[${nameIndex}]`, name))
      })
      appendAll(errors, admissionRuleErrors(rule as unknown as WebhookRule, rulePath))
    })
  }
  return errors
}

function paramKindErrors({
  apiVersion = '',
  kind = '',
}: NonNullable<ValidatingAdmissionPolicy['spec']['paramKind']>): FieldError[] {
  const errors: FieldError[] = []
  const field = 'spec.paramKind.apiVersion'
  if (apiVersion === '') errors.push(required(field))
  else if (apiVersion.split('/').length > 2)
    errors.push(invalid(field, apiVersion, `unexpected GroupVersion string: ${apiVersion}`))
  else {
    const { group, version } = parseApiVersion(apiVersion)
    const groupProblems = group === '' ? [] : subdomainProblems(group)
    if (groupProblems.length > 0) errors.push(invalid(field, group, groupProblems.join(',')))
    const versionProblems = dns1035LabelProblems(version)
    if (version === '') errors.push(invalid(field, apiVersion, 'version must be specified'))
    else if (versionProblems.length > 0) errors.push(invalid(field, version, versionProblems.join(',')))
  }
  const kindProblems = dns1035LabelProblems(kind.toLowerCase())
  if (kind === '') errors.push(required('spec.paramKind.kind'))
  else if (kindProblems.length > 0) {
    const problem = `may have mixed case, but should otherwise match: ${kindProblems.join(',')}`
    errors.push(invalid('spec.paramKind.kind', kind, problem))
  }
  return errors
}

const hasLineBreak = (value: string): boolean => /[\n\r]/.test(value)
const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']

function validationErrors(
  { expression, message = '', messageExpression = '', reason }: Validation,
  field: string,
  scope: AdmissionScope,
): FieldError[] {
  const errors: FieldError[] = []
  const check = (member: string, source: string, scopeChanges: AdmissionScope, returns: 'bool' | 'string') => {
    const compiled = admissionExpression(source, { ...scope, ...scopeChanges }, [returns])
    if (typeof compiled === 'string') errors.push(invalid(`${field}.${member}`, source, compiled))
  }
  if (!expression?.trim()) errors.push(required(`${field}.expression`, 'expression is not specified'))
  else check('expression', expression, {}, 'bool')
  if (messageExpression !== '') {
    if (messageExpression.trim() === '')
      errors.push(invalid(`${field}.messageExpression`, messageExpression, 'must be non-empty if specified'))
    else check('messageExpression', messageExpression, { hasAuthorizer: false }, 'string')
  }
  if (message !== '' && message.trim() === '') errors.push(invalid(`${field}.message`, message, 'must be non-empty if specified'))
  else if (hasLineBreak(message.trim())) errors.push(invalid(`${field}.message`, message, 'must not contain line breaks'))
  if (reason !== undefined && !reasons.includes(reason)) errors.push(notSupported(`${field}.reason`, reason, reasons))
  return errors
}

function annotationErrors(
  { key, valueExpression }: AuditAnnotation,
  field: string,
  policy: string,
  scope: AdmissionScope,
): FieldError[] {
  const name = `${policy}/${key}`
  const errors = problems(`${field}.key`, name, qualifiedNameProblems(name))
  const valueField = `${field}.valueExpression`
  const source = valueExpression.trim()
  if (source === '') return [...errors, required(valueField, 'valueExpression is not specified')]
  if (Buffer.byteLength(source) > 5 * 1024) return [...errors, required(valueField, 'must not exceed 5120 bytes in length')]
  const compiled = admissionExpression(source, scope, ['string', 'null'])
  return typeof compiled === 'string' ? [...errors, invalid(valueField, valueExpression, compiled)] : errors
}

function paramRefErrors({ name = '', selector, parameterNotFoundAction: action }: ParamRef): FieldError[] {
  const field = 'spec.paramRef'
  const errors = name === '' ? [] : problems(`${field}.name`, name, pathSegmentProblems(name))
  const exclusive = 'name and selector are mutually exclusive'
  if (name !== '' && selector) errors.push(forbidden(`${field}.name`, exclusive))
  if (selector) appendAll(errors, labelSelectorErrors(selector as LabelSelector, `${field}.selector`))
  if (name !== '' && selector) errors.push(forbidden(`${field}.selector`, exclusive))
  if (name === '' && !selector) errors.push(required(field, 'one of name or selector must be specified'))
  const actions = ['Deny', 'Allow']
  if (!action) errors.push(required(`${field}.parameterNotFoundAction`))
  else if (!actions.includes(action)) errors.push(notSupported(`${field}.parameterNotFoundAction`, action, actions))
  return errors
}

function actionErrors(actions: readonly string[]): FieldError[] {
  const field = 'spec.validationActions'
  const errors: FieldError[] = []
  const repeated = repeats(actions)
  actions.forEach((action, index) => {
    if (!['Audit', 'Deny', 'Warn'].includes(action))
      errors.push(notSupported(`${field}[${index}]`, action, ['Audit', 'Deny', 'Warn']))
    if (repeated[index]) errors.push(duplicate(`${field}[${index}]`, action))
  })
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const problem =
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)'
    errors.push(invalid(field, actions, problem))
  }
  if (actions.length === 0) errors.push(required(field, 'at least one validation action is required'))
  return errors
}
