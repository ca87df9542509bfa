/**
 * What is wrong with a CustomResourceDefinition, CEL rules left unread.
 * Upstream: apiextensions/validation/validation.go, v0.36.
 */
import {
  type CustomResourceDefinition,
  type CustomResourceVersion,
  dns1035LabelProblems,
  type FieldError,
  invalid,
  notSupported,
  required,
  subdomainProblems,
} from '@capstan/kube'

export function definitionErrors(crd: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const { spec } = crd
  const errors: FieldError[] = []
  if (crd.metadata.name !== `${spec.names.plural}.${spec.group}`) {
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
  errors.push(...approvalErrors(crd), ...nameErrors(spec.names), ...versionErrors(crd), ...conversionErrors(crd))
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
    else
      for (const problem of dns1035LabelProblems(value.toLowerCase())) errors.push(invalid(`spec.names.${field}`, value, problem))
  }
  check('plural', names.plural)
  check('singular', names.singular)
  check('kind', names.kind)
  check('listKind', names.listKind)
  names.shortNames?.forEach((value, index) => check(`shortNames[${index}]`, value))
  names.categories?.forEach((value, index) => check(`categories[${index}]`, value))
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'))
  }
  return errors
}

function versionErrors({ spec, status }: CustomResourceDefinition): FieldError[] {
  const errors: FieldError[] = []
  const storage = spec.versions.filter((version) => version.storage)
  if (storage.length !== 1) {
    errors.push(invalid('spec.versions', spec.versions, 'must have exactly one version marked as storage version'))
  }
  const seen = new Set<string>()
  spec.versions.forEach((version, index) => {
    const path = `spec.versions[${index}]`
    for (const problem of dns1035LabelProblems(version.name)) errors.push(invalid(`${path}.name`, version.name, problem))
    if (seen.has(version.name)) errors.push(invalid(`${path}.name`, version.name, 'must be unique'))
    seen.add(version.name)
    if (!version.schema?.openAPIV3Schema) errors.push(required(`${path}.schema.openAPIV3Schema`))
    errors.push(...columnErrors(version, path), ...scaleErrors(version, path))
  })
  const names = spec.versions.map((version) => version.name)
  status?.storedVersions?.forEach((version, index) => {
    if (names.includes(version)) return
    errors.push(
      invalid(
        `status.storedVersions[${index}]`,
        version,
        `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`,
      ),
    )
  })
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

function conversionErrors({ spec }: CustomResourceDefinition): FieldError[] {
  const { conversion } = spec
  if (!conversion) return []
  const errors: FieldError[] = []
  if (conversion.strategy === 'Webhook') {
    if (!conversion.webhook?.clientConfig) {
      errors.push(
        required('spec.conversion.webhookClientConfig', 'required when strategy is set to Webhook'),
        required('spec.conversion.conversionReviewVersions'),
      )
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
  same('spec.group', spec.group, old.spec.group)
  same('spec.names.plural', spec.names.plural, old.spec.names.plural)
  if (established) {
    same('spec.scope', spec.scope, old.spec.scope)
    same('spec.names.kind', spec.names.kind, old.spec.names.kind)
  }
  return errors
}
