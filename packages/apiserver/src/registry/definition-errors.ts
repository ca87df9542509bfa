/**
 * What is wrong with a CustomResourceDefinition.
 * Upstream: apiextensions/validation/validation.go, v0.36.
 */
import {
  clientConfigErrors,
  equal,
  type CustomResourceDefinition,
  type CustomResourceVersion,
  dns1035LabelProblems,
  type FieldError,
  invalid,
  notSupported,
  required,
  subdomainProblems,
} from '@capstan/kube'
import { schemaErrors } from './schema-errors.ts'

export function definitionErrors(crd: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const { spec } = crd
  const errors: FieldError[] = []
  if (spec.preserveUnknownFields === true) {
    const why = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    errors.push(invalid('spec.preserveUnknownFields', true, why))
  }
  if (!old && crd.metadata.name !== `${spec.names.plural}.${spec.group}`) {
    errors.push(invalid('metadata.name', crd.metadata.name, 'must be spec.names.plural+"."+spec.group'))
  }
  if (!spec.group) errors.push(required('spec.group'))
  else {
    for (const problem of subdomainProblems(spec.group)) errors.push(invalid('spec.group', spec.group, problem))
    if (!spec.group.includes('.')) errors.push(invalid('spec.group', spec.group, 'should be a domain with at least one dot'))
  }
  if (spec.scope !== 'Namespaced' && spec.scope !== 'Cluster') {
    errors.push(spec.scope ? notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']) : required('spec.scope'))
  }
  errors.push(
    ...approvalErrors(crd),
    ...nameErrors(spec.names),
    ...versionErrors(crd, old !== undefined),
    ...conversionErrors(crd),
  )
  if (old) errors.push(...updateErrors(crd, old))
  return errors
}

/** Groups that belong to Kubernetes need somebody's approval. */
function approvalErrors({ metadata, spec }: CustomResourceDefinition): FieldError[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group)) return []
  // `x-k8s.io` is for everybody; only `k8s.io` itself and what is below it are protected.
  const key = 'api-approved.kubernetes.io'
  const approval = metadata.annotations?.[key]
  if (approval === undefined) {
    return [
      required(
        `metadata.annotations[${key}]`,
        `protected groups must have approval annotation "${key}", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    ]
  }
  if (approval.startsWith('unapproved') || URL.canParse(approval)) return []
  return [
    invalid(
      `metadata.annotations[${key}]`,
      approval,
      `protected groups must have approval annotation "${key}" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
    ),
  ]
}

function nameErrors(names: CustomResourceDefinition['spec']['names']): FieldError[] {
  const errors: FieldError[] = []
  const check = (field: string, value: string | undefined) => {
    if (!value) errors.push(required(`spec.names.${field}`))
    else for (const problem of dns1035LabelProblems(value)) errors.push(invalid(`spec.names.${field}`, value, problem))
  }
  const checkKind = (field: string, value: string | undefined) => {
    const problems = value ? dns1035LabelProblems(value.toLowerCase()) : []
    const text = `may have mixed case, but should otherwise match: ${problems.join(',')}`
    if (!value) errors.push(required(`spec.names.${field}`))
    else if (problems.length > 0) errors.push(invalid(`spec.names.${field}`, value, text))
  }
  check('plural', names.plural)
  check('singular', names.singular)
  checkKind('kind', names.kind)
  checkKind('listKind', names.listKind)
  names.shortNames?.forEach((value, index) => check(`shortNames[${index}]`, value))
  names.categories?.forEach((value, index) => check(`categories[${index}]`, value))
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'))
  }
  return errors
}

function versionErrors({ spec, status }: CustomResourceDefinition, isUpdate: boolean): FieldError[] {
  const { versions } = spec
  const errors: FieldError[] = []
  const storage = versions.filter((version) => version.storage)
  if (storage.length !== 1) {
    errors.push(invalid('spec.versions', printedVersions(versions), 'must have exactly one version marked as storage version'))
  }
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    errors.push(invalid('spec.versions', printedVersions(versions), 'must contain unique version names'))
  }
  versions.forEach(({ name }, index) => {
    for (const problem of dns1035LabelProblems(name)) errors.push(invalid(`spec.versions[${index}].name`, name, problem))
  })
  versions.forEach((version, index) => {
    // Upstream: what all versions have in common has moved to the top by the time it is looked at.
    const isFirst = index === 0
    const at = `spec.versions[${index}]`
    if (!version.schema?.openAPIV3Schema) errors.push(required(`${at}.schema.openAPIV3Schema`))
    else if (!sameInAll(versions, 'schema')) {
      errors.push(...schemaErrors(version.schema.openAPIV3Schema, `${at}.schema.openAPIV3Schema`))
    } else if (isFirst) errors.push(...schemaErrors(version.schema.openAPIV3Schema, 'spec.validation.openAPIV3Schema'))
    if (!sameInAll(versions, 'subresources')) errors.push(...scaleErrors(version, at))
    else if (isFirst) errors.push(...scaleErrors(version, 'spec'))
    if (!sameInAll(versions, 'additionalPrinterColumns')) errors.push(...columnErrors(version, at))
    else if (isFirst) errors.push(...columnErrors(version, 'spec'))
  })
  errors.push(...storedVersionErrors(versions, isUpdate ? [] : storage, status?.storedVersions ?? undefined))
  return errors
}

const sameInAll = (versions: readonly CustomResourceVersion[], part: keyof CustomResourceVersion): boolean =>
  versions.every((version) => equal(version[part], versions[0]![part]))

/** The list as Go prints it. */
const printedVersions = (versions: readonly CustomResourceVersion[]): unknown =>
  versions.map((version) => {
    const own = (part: keyof CustomResourceVersion) => (sameInAll(versions, part) ? null : (version[part] ?? null))
    return {
      Name: version.name,
      Served: version.served,
      Storage: version.storage,
      Deprecated: version.deprecated ?? false,
      DeprecationWarning: version.deprecationWarning ?? null,
      Schema: own('schema'),
      Subresources: own('subresources'),
      AdditionalPrinterColumns: own('additionalPrinterColumns'),
      SelectableFields: version.selectableFields ?? null,
    }
  })

function storedVersionErrors(
  versions: readonly CustomResourceVersion[],
  storage: readonly CustomResourceVersion[],
  stored: readonly string[] | undefined,
): FieldError[] {
  const field = 'status.storedVersions'
  if (!stored || stored.length === 0) return [invalid(field, null, 'must have at least one stored version')]
  const errors: FieldError[] = []
  stored.forEach((version, index) => {
    if (versions.some(({ name }) => name === version)) return
    errors.push(
      invalid(
        `${field}[${index}]`,
        version,
        `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`,
      ),
    )
  })
  for (const { name } of storage.slice(-1)) {
    if (!stored.includes(name)) errors.push(invalid(field, stored, `must have the storage version ${name}`))
  }
  return errors
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']

function columnErrors({ additionalPrinterColumns = [] }: CustomResourceVersion, path: string): FieldError[] {
  return additionalPrinterColumns.flatMap((column, index) => {
    const at = `${path}.additionalPrinterColumns[${index}]`
    const errors: FieldError[] = []
    if (!column.name) errors.push(required(`${at}.name`))
    if (!columnTypes.includes(column.type)) {
      errors.push(invalid(`${at}.type`, column.type, `must be one of ${columnTypes.join(',')}`))
    }
    if (!column.jsonPath) errors.push(required(`${at}.JSONPath`))
    else if (!simplePath(column.jsonPath)) {
      errors.push(invalid(`${at}.JSONPath`, column.jsonPath, 'must be a simple json path starting with .'))
    }
    return errors
  })
}

function scaleErrors({ subresources }: CustomResourceVersion, path: string): FieldError[] {
  const scale = subresources?.scale
  if (!scale) return []
  const errors: FieldError[] = []
  const check = (field: 'specReplicasPath' | 'statusReplicasPath' | 'labelSelectorPath', roots: string[]) => {
    const value = scale[field]
    const at = `${path}.subresources.scale.${field}`
    if (!value) {
      if (field !== 'labelSelectorPath') errors.push(required(at))
    } else if (!/^(\.[A-Za-z_][\w-]*)+$/.test(value)) {
      errors.push(invalid(at, value, 'should be a json path without array notation'))
    } else if (!roots.some((root) => value.startsWith(`${root}.`))) {
      errors.push(invalid(at, value, `should be a json path under ${roots.join(' or ')}`))
    }
  }
  check('specReplicasPath', ['.spec'])
  check('statusReplicasPath', ['.status'])
  check('labelSelectorPath', ['.spec', '.status'])
  return errors
}

const simplePath = (path: string): boolean => /^\.[^{}]+$/.test(path)

/** Versions of ConversionReview that this server can send. */
export const ConversionReviewVersions: readonly string[] = ['v1', 'v1beta1']

function conversionErrors({ spec }: CustomResourceDefinition): FieldError[] {
  const { conversion } = spec
  if (!conversion) return []
  const errors: FieldError[] = []
  if (conversion.strategy === 'Webhook') {
    const at = 'spec.conversion.webhookClientConfig'
    const { clientConfig, conversionReviewVersions = [] } = conversion.webhook ?? {}
    if (clientConfig) errors.push(...clientConfigErrors(clientConfig, at))
    else errors.push(required(at, 'required when strategy is set to Webhook'))
    const versionsAt = 'spec.conversion.conversionReviewVersions'
    if (conversionReviewVersions.length === 0) errors.push(required(versionsAt))
    else if (!conversionReviewVersions.some((version) => ConversionReviewVersions.includes(version))) {
      const known = ConversionReviewVersions.join(', ')
      errors.push(invalid(versionsAt, conversionReviewVersions, `must include at least one of ${known}`))
    }
  } else if (conversion.strategy !== 'None') {
    errors.push(notSupported('spec.conversion.strategy', conversion.strategy, ['None', 'Webhook']))
  } else if (conversion.webhook) {
    errors.push({
      type: 'FieldValueForbidden',
      field: 'spec.conversion.webhookClientConfig',
      text: 'Forbidden: should not be set when strategy is not set to Webhook',
    })
  }
  return errors
}

/** Clients rely on these once the resource has been served. */
function updateErrors({ spec }: CustomResourceDefinition, old: CustomResourceDefinition): FieldError[] {
  const established = old.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')
  const errors: FieldError[] = []
  const same = (field: string, now: string, was: string) => {
    if (now !== was) errors.push(invalid(field, now, 'field is immutable'))
  }
  if (established) {
    same('spec.group', spec.group, old.spec.group)
    same('spec.names.plural', spec.names.plural, old.spec.names.plural)
    same('spec.scope', spec.scope, old.spec.scope)
    same('spec.names.kind', spec.names.kind, old.spec.names.kind)
  }
  return errors
}
