/**
 * Requests to check whether a user has a permission (access reviews), and to list the permissions of the requester (SelfSubjectRulesReview).
 * These objects are not stored; the response contains the result in its status.
 */
import { type FieldError, forbidden, invalid, required } from '../errors.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { labelKeyProblems, labelValueProblems } from '../names.ts'
import type { ObjectMeta } from '../object.ts'
import { type Infer, s } from '../schema.ts'

const group = 'authorization.k8s.io'

const selector = () =>
  s.object({
    rawSelector: s.string().optional(),
    requirements: s
      .list(
        s.object({
          key: s.string().optional(),
          operator: s.string().optional(),
          values: s.list(s.string()).atomic().optional(),
        }),
      )
      .atomic()
      .optional(),
  })
type Selector = Infer<ReturnType<typeof selector>>

const resourceAttributes = s.object({
  namespace: s.string().optional(),
  verb: s.string().optional(),
  group: s.string().optional(),
  version: s.string().optional(),
  resource: s.string().optional(),
  subresource: s.string().optional(),
  name: s.string().optional(),
  fieldSelector: selector().optional(),
  labelSelector: selector().optional(),
})
export type ResourceAttributes = Infer<typeof resourceAttributes>

const nonResourceAttributes = s.object({ path: s.string().optional(), verb: s.string().optional() })

const action = {
  resourceAttributes: resourceAttributes.optional(),
  nonResourceAttributes: nonResourceAttributes.optional(),
}

const subjectSpec = s.object({
  ...action,
  user: s.string().optional(),
  groups: s.list(s.string()).atomic().optional(),
  extra: s.map(s.list(s.string())).optional(),
  uid: s.string().optional(),
})

const decision = s.object({
  allowed: s.boolean(),
  denied: s.boolean().optional(),
  reason: s.string().optional(),
  evaluationError: s.string().optional(),
})
export type AccessDecision = Infer<typeof decision>

const review = { group, version: 'v1', statusSubresource: false } as const

export const SelfSubjectAccessReview = defineKind({
  ...review,
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  scope: 'Cluster',
  doc: 'Checks whether the requester is authorized for an action.',
  spec: s.object(action),
  status: decision,
  default: emptySpec,
  validate: ({ metadata, spec }) => [...actionErrors(spec), ...metadataErrors(metadata)],
})
export type SelfSubjectAccessReview = ObjectOf<typeof SelfSubjectAccessReview>

export const SubjectAccessReview = defineKind({
  ...review,
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  scope: 'Cluster',
  doc: 'Checks whether a user or group is authorized for an action.',
  spec: subjectSpec,
  status: decision,
  default: emptySpec,
  validate: ({ metadata, spec }) => [...subjectReviewErrors(spec), ...metadataErrors(metadata)],
})
export type SubjectAccessReview = ObjectOf<typeof SubjectAccessReview>

export const LocalSubjectAccessReview = defineKind({
  ...review,
  kind: 'LocalSubjectAccessReview',
  plural: 'localsubjectaccessreviews',
  scope: 'Namespaced',
  doc: 'Checks whether a user or group is authorized for an action in the namespace of the review.',
  spec: subjectSpec,
  status: decision,
  default: emptySpec,
  validate({ metadata, spec }) {
    const { namespace, managedFields: _, ...otherFields } = metadata
    const errors = subjectReviewErrors(spec)
    if (Object.keys(otherFields).length > 0)
      errors.push(invalid('metadata', { ...otherFields, namespace }, 'must be empty except for namespace'))
    if (spec.nonResourceAttributes)
      errors.push(
        invalid(
          'spec.nonResourceAttributes',
          printedNonResource(spec.nonResourceAttributes),
          'disallowed on this kind of request',
        ),
      )
    if (spec.resourceAttributes && spec.resourceAttributes.namespace !== namespace) {
      const requested = spec.resourceAttributes.namespace ?? ''
      errors.push(invalid('spec.resourceAttributes.namespace', requested, 'must match metadata.namespace'))
    }
    return errors
  },
})
export type LocalSubjectAccessReview = ObjectOf<typeof LocalSubjectAccessReview>

export const SelfSubjectRulesReview = defineKind({
  ...review,
  kind: 'SelfSubjectRulesReview',
  plural: 'selfsubjectrulesreviews',
  scope: 'Cluster',
  doc: 'Lists the actions for which the requester is authorized in a namespace.',
  spec: s.object({ namespace: s.string().optional() }),
  default: emptySpec,
  status: s.object({
    resourceRules: s.list(
      s.object({
        verbs: s.list(s.string()),
        apiGroups: s.list(s.string()).optional(),
        resources: s.list(s.string()).optional(),
        resourceNames: s.list(s.string()).optional(),
      }),
    ),
    nonResourceRules: s.list(s.object({ verbs: s.list(s.string()), nonResourceURLs: s.list(s.string()).optional() })),
    incomplete: s.boolean(),
    evaluationError: s.string().optional(),
  }),
})
export type SelfSubjectRulesReview = ObjectOf<typeof SelfSubjectRulesReview>

/** Sets a missing spec to an empty object, as Go's decoder does. */
export function emptySpec(review: { spec?: object }): void {
  review.spec ??= {}
}

/**
 * Validates the attributes of an action: either those of a resource, with their selectors, or those of a path. Upstream:
 * pkg/apis/authorization/validation.
 */
function actionErrors({
  resourceAttributes: resource,
  nonResourceAttributes: nonResource,
}: Infer<typeof subjectSpec>): FieldError[] {
  if (resource && nonResource)
    return [
      invalid(
        'spec.nonResourceAttributes',
        printedNonResource(nonResource),
        'cannot be specified in combination with resourceAttributes',
      ),
    ]
  if (nonResource) return []
  if (resource) {
    const field = 'spec.resourceAttributes'
    return [
      ...selectorErrors(resource.fieldSelector, `${field}.fieldSelector`, fieldRequirementErrors),
      ...selectorErrors(resource.labelSelector, `${field}.labelSelector`, labelRequirementErrors),
    ]
  }
  const problem = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
  return [invalid('spec.resourceAttributes', null, problem)]
}

type Requirement = NonNullable<Selector['requirements']>[number]

function selectorErrors(
  selector: Selector | undefined,
  field: string,
  requirementErrors: (requirement: Requirement, field: string) => FieldError[],
): FieldError[] {
  if (!selector) return []
  const { rawSelector = '', requirements = [] } = selector
  const errors: FieldError[] = []
  if (rawSelector !== '' && requirements.length > 0)
    errors.push(invalid(`${field}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'))
  if (rawSelector === '' && requirements.length === 0)
    errors.push(required(`${field}.requirements`, `when ${field} is specified, requirements or rawSelector is required`))
  return [
    ...errors,
    ...requirements.flatMap((requirement, index) => requirementErrors(requirement, `${field}.requirements[${index}]`)),
  ]
}

const fieldRequirementErrors = ({ key = '', ...values }: Requirement, field: string): FieldError[] => [
  ...(key === '' ? [required(`${field}.key`, 'must be specified')] : []),
  ...valuesErrors(values, field),
]

const labelRequirementErrors = ({ key = '', ...values }: Requirement, field: string): FieldError[] => [
  ...valuesErrors(values, field),
  ...labelKeyProblems(key).map((problem) => invalid(`${field}.key`, key, problem)),
  ...(values.values ?? []).flatMap((value, index) =>
    labelValueProblems(value).map((problem) => invalid(`${field}.values[${index}]`, value, problem)),
  ),
]

/** Unknown operators are valid here: authorizers ignore them. */
function valuesErrors({ operator = '', values = [] }: Omit<Requirement, 'key'>, field: string): FieldError[] {
  if (['In', 'NotIn'].includes(operator) && values.length === 0)
    return [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
  if (['Exists', 'DoesNotExist'].includes(operator) && values.length > 0)
    return [forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
  return []
}

/** Metadata must be empty except for managedFields, because the object is not stored. */
function metadataErrors(metadata: Partial<ObjectMeta>): FieldError[] {
  const { managedFields: _, ...otherFields } = metadata
  return Object.keys(otherFields).length === 0 ? [] : [invalid('metadata', otherFields, 'must be empty')]
}

function subjectReviewErrors(spec: Infer<typeof subjectSpec>): FieldError[] {
  const errors = actionErrors(spec)
  if (!spec.user && (spec.groups ?? []).length === 0)
    errors.push(invalid('spec.user', '', 'at least one of user or group must be specified'))
  return errors
}

/** Returns non-resource attributes as upstream's errors print them: with the names of Go's fields. */
const printedNonResource = ({ path = '', verb = '' }: { readonly path?: string; readonly verb?: string }): unknown => ({
  Path: path,
  Verb: verb,
})
