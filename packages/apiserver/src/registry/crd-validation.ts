/**
 * Validates CustomResourceDefinitions.
 * Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, v0.36.
 */
import { X509Certificate } from 'node:crypto'
import {
  appendAll,
  clientConfigErrors,
  type CustomResourceDefinition,
  type CustomResourceVersion,
  dns1035LabelProblems,
  duplicate,
  equal,
  type FieldError,
  forbidden,
  invalid,
  type JSONSchema,
  messageOf,
  notSupported,
  repeats,
  required,
  subdomainProblems,
  tooMany,
} from '@capstan/kube'
import { schemaErrors } from './schema-errors.ts'

export function validateCRD(crd: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const { spec } = crd
  const errors: FieldError[] = []
  if (spec.preserveUnknownFields === true) {
    const reason = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    errors.push(invalid('spec.preserveUnknownFields', true, reason))
  }
  if (!old && crd.metadata.name !== `${spec.names.plural}.${spec.group}`) {
    errors.push(invalid('metadata.name', crd.metadata.name, 'must be spec.names.plural+"."+spec.group'))
  }
  if (!spec.group) errors.push(required('spec.group'))
  else {
    const problems = subdomainProblems(spec.group)
    if (problems.length > 0) errors.push(invalid('spec.group', spec.group, problems.join(',')))
    else if (!spec.group.includes('.')) errors.push(invalid('spec.group', spec.group, 'should be a domain with at least one dot'))
  }
  if (spec.scope !== 'Namespaced' && spec.scope !== 'Cluster') {
    errors.push(spec.scope ? notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']) : required('spec.scope'))
  }
  appendAll(errors, approvalErrors(crd), nameErrors(spec.names), versionErrors(crd, old), conversionErrors(crd, old))
  if (old) appendAll(errors, updateErrors(crd, old))
  return errors
}

/** Returns an error when the API group belongs to Kubernetes, and the CRD has no approval annotation or an invalid one. */
function approvalErrors({ metadata, spec }: CustomResourceDefinition): FieldError[] {
  // Only `k8s.io`, `kubernetes.io` and their subdomains are protected; `x-k8s.io` is not.
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group)) return []
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
    else {
      const problems = dns1035LabelProblems(value)
      if (problems.length > 0) errors.push(invalid(`spec.names.${field}`, value, problems.join(',')))
    }
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
  for (const field of ['shortNames', 'categories'] as const) {
    names[field]?.forEach((value, index) => {
      const problems = dns1035LabelProblems(value)
      if (problems.length > 0) errors.push(invalid(`spec.names.${field}[${index}]`, value, problems.join(',')))
    })
  }
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalid('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'))
  }
  return errors
}

function versionErrors({ spec, status }: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const versionList = (spec as Partial<typeof spec>).versions
  const versions = versionList ?? []
  const errors: FieldError[] = []
  const storage = versions.filter((version) => version.storage)
  if (storage.length !== 1) {
    errors.push(
      invalid(
        'spec.versions',
        versionList ? goVersions(versionList) : null,
        'must have exactly one version marked as storage version',
      ),
    )
  }
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    errors.push(invalid('spec.versions', goVersions(versions), 'must contain unique version names'))
  }
  // Upstream validates the internal type of the CRD. There, a part that is equal in all versions is at the top level of the spec.
  const sharedParts = new Map<string, boolean>()
  const shared = (part: keyof CustomResourceVersion): boolean => {
    if (!sharedParts.has(part)) sharedParts.set(part, sameInAll(versions, part))
    return sharedParts.get(part)!
  }
  // Reversed, so that of several versions with the same name the first is found.
  const oldByName = new Map((old?.spec.versions ?? []).toReversed().map((version) => [version.name, version]))
  const isShared = { schema: shared('schema'), subresources: shared('subresources') }
  const hasStatus = versions.some(({ subresources }) => subresources?.status !== undefined)
  versions.forEach((version, index) => {
    const isFirst = index === 0
    const versionPath = `spec.versions[${index}]`
    const problems = dns1035LabelProblems(version.name)
    if (problems.length > 0) errors.push(invalid(`${versionPath}.name`, version.name, problems.join(',')))
    // Upstream validates the name of the first version twice, also as `spec.version`.
    if (problems.length > 0 && isFirst && version.name !== '')
      errors.push(invalid('spec.version', version.name, problems.join(',')))
    appendAll(errors, deprecationErrors(version, `${versionPath}.deprecationWarning`))
    // A shared part is validated once, with the first version.
    const pathOf = (part: keyof CustomResourceVersion) => (shared(part) ? (isFirst ? 'spec' : undefined) : versionPath)
    const schema = version.schema?.openAPIV3Schema
    const before = oldByName.get(version.name)
    if (!schema) errors.push(required(`${versionPath}.schema.openAPIV3Schema`))
    else if (!isShared.schema || isFirst) {
      appendAll(
        errors,
        schemaErrors(schema, `${isShared.schema ? 'spec.validation' : `${versionPath}.schema`}.openAPIV3Schema`, {
          isUnchanged: equal(schema, before?.schema?.openAPIV3Schema),
          hasStatus: isShared.schema ? hasStatus : version.subresources?.status !== undefined,
        }),
      )
    }
    const [scalePath, columnsPath, selectableFieldsPath] = [
      pathOf('subresources'),
      pathOf('additionalPrinterColumns'),
      pathOf('selectableFields'),
    ]
    if (scalePath !== undefined) appendAll(errors, scaleErrors(version, scalePath))
    if (columnsPath !== undefined) appendAll(errors, columnErrors(version, columnsPath))
    if (selectableFieldsPath !== undefined)
      appendAll(errors, selectableFieldErrors(version, before, selectableFieldsPath, isShared.schema))
  })
  appendAll(errors, storedVersionErrors(versions, old ? [] : storage, status?.storedVersions ?? undefined))
  return errors
}

function deprecationErrors({ deprecated, deprecationWarning: warning }: CustomResourceVersion, field: string): FieldError[] {
  if (warning === undefined) return []
  const problems: string[] = []
  if (deprecated !== true) problems.push('can only be set for deprecated versions')
  else {
    if (warning.length > 256) problems.push('must be <= 256 characters long')
    if (warning === '') problems.push('must not be an empty string')
    const index = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.exec(warning)?.index
    if (index !== undefined) {
      const byteIndex = Buffer.byteLength(warning.slice(0, index))
      problems.push(`must only contain printable UTF-8 characters; non-printable character found at index ${byteIndex}`)
    }
  }
  return problems.map((problem) => invalid(field, warning, problem))
}

/** Upstream: MaxSelectableFields. */
const MaxSelectableFields = 8

function selectableFieldErrors(
  { selectableFields = [], schema }: CustomResourceVersion,
  before: CustomResourceVersion | undefined,
  path: string,
  isSchemaShared: boolean,
): FieldError[] {
  if (selectableFields.length === 0) return []
  // Upstream: selectable fields must be at the same level as the schema; the error texts are upstream's.
  const where = `${path}.selectableFields`
  if (path === 'spec' && !isSchemaShared) return [invalid(where, '', 'may only be set when validations.schema is included')]
  if (path !== 'spec' && isSchemaShared)
    return [invalid(where, '', 'may only be set when `version.schema.openAPIV3Schema` is not included')]
  const errors: FieldError[] = []
  const seenPaths = new Set<string>()
  selectableFields.forEach(({ jsonPath }, index) => {
    const fieldPath = `${path}.selectableFields[${index}].jsonPath`
    if (!jsonPath) {
      errors.push(required(fieldPath))
      return
    }
    const selected = schemaAt(schema?.openAPIV3Schema ?? {}, jsonPath)
    if (typeof selected === 'string') {
      errors.push(invalid(fieldPath, jsonPath, `is an invalid path: ${selected}`))
      return
    }
    if (/^\.metadata(\.|$)/.test(jsonPath)) errors.push(invalid(fieldPath, jsonPath, 'must not point to fields in metadata'))
    if (!['string', 'boolean', 'integer'].includes(selected.type ?? '')) {
      const reason =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      errors.push(invalid(fieldPath, jsonPath, reason))
    }
    if (seenPaths.has(jsonPath)) errors.push(duplicate(fieldPath, jsonPath))
    seenPaths.add(jsonPath)
  })
  const hadTooMany = (before?.selectableFields?.length ?? 0) > MaxSelectableFields
  if (seenPaths.size > MaxSelectableFields && !(hadTooMany && equal(selectableFields, before?.selectableFields)))
    errors.push(tooMany(`${path}.selectableFields`, seenPaths.size, MaxSelectableFields))
  return errors
}

/** Returns the schema at a path of names, or an error text. Upstream: ValidFieldPath without array notation. */
function schemaAt(schema: JSONSchema, path: string): JSONSchema | string {
  let current = schema
  const tokens = path.match(/[.[\]]|[^.[\]]+/g) ?? []
  for (let index = 0; index < tokens.length; ) {
    const separator = tokens[index++]!
    if (separator === '[') return 'array notation is not allowed'
    if (separator !== '.') return `expected [ or . but got: ${separator}`
    const token = tokens[index++]
    if (token === undefined) return 'unexpected end of JSON path'
    const { properties, additionalProperties } = current
    let next: JSONSchema | undefined
    if (properties) next = Object.hasOwn(properties, token) ? properties[token] : undefined
    else if (typeof additionalProperties === 'object') next = additionalProperties
    if (!next) return 'does not refer to a valid field'
    current = next
  }
  return current
}

const sameInAll = (versions: readonly CustomResourceVersion[], part: keyof CustomResourceVersion): boolean =>
  versions.every((version) => equal(version[part], versions[0]![part]))

/** Returns versions in the form of upstream's internal Go type, for error texts. */
function goVersions(versions: readonly CustomResourceVersion[]): unknown {
  const shared = new Set(
    (['schema', 'subresources', 'additionalPrinterColumns'] as const).filter((part) => sameInAll(versions, part)),
  )
  return versions.map((version) => {
    const valueOf = (part: 'schema' | 'subresources' | 'additionalPrinterColumns') =>
      shared.has(part) ? null : (version[part] ?? null)
    return {
      Name: version.name,
      Served: version.served,
      Storage: version.storage,
      Deprecated: version.deprecated ?? false,
      DeprecationWarning: version.deprecationWarning ?? null,
      Schema: valueOf('schema'),
      Subresources: valueOf('subresources'),
      AdditionalPrinterColumns: valueOf('additionalPrinterColumns'),
      SelectableFields: version.selectableFields ?? null,
    }
  })
}

function storedVersionErrors(
  versions: readonly CustomResourceVersion[],
  storage: readonly CustomResourceVersion[],
  stored: readonly string[] | undefined,
): FieldError[] {
  const field = 'status.storedVersions'
  if (!stored || stored.length === 0) return [invalid(field, null, 'must have at least one stored version')]
  const errors: FieldError[] = []
  const names = new Set(versions.map(({ name }) => name))
  stored.forEach((version, index) => {
    if (names.has(version)) return
    errors.push(
      invalid(
        `${field}[${index}]`,
        version,
        `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`,
      ),
    )
  })
  const lastStorage = storage.at(-1)
  if (lastStorage && !stored.includes(lastStorage.name))
    errors.push(invalid(field, stored, `must have the storage version ${lastStorage.name}`))
  return errors
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

function columnErrors({ additionalPrinterColumns = [] }: CustomResourceVersion, path: string): FieldError[] {
  return additionalPrinterColumns.flatMap(({ name, type, format, jsonPath }, index) => {
    const columnPath = `${path}.additionalPrinterColumns[${index}]`
    const errors: FieldError[] = []
    if (!name) errors.push(required(`${columnPath}.name`))
    const types = `must be one of ${columnTypes.join(',')}`
    if (!type) errors.push(required(`${columnPath}.type`, types))
    else if (!columnTypes.includes(type)) errors.push(invalid(`${columnPath}.type`, type, types))
    if (format && !columnFormats.includes(format))
      errors.push(invalid(`${columnPath}.format`, format, `must be one of ${columnFormats.join(',')}`))
    if (!jsonPath) errors.push(required(`${columnPath}.JSONPath`))
    else if (!jsonPath.startsWith('.')) errors.push(invalid(`${columnPath}.JSONPath`, jsonPath, notSimple))
    return errors
  })
}

const notSimple = 'must be a simple json path starting with .'

function scaleErrors({ subresources }: CustomResourceVersion, path: string): FieldError[] {
  const scale = subresources?.scale
  if (!scale) return []
  const errors: FieldError[] = []
  const check = (field: keyof typeof scale, roots: readonly string[], where: string) => {
    const value = scale[field]
    const fieldPath = `${path}.subresources.scale.${field}`
    if (!value) {
      if (field !== 'labelSelectorPath') errors.push(required(fieldPath))
    } else if (!value.startsWith('.')) errors.push(invalid(fieldPath, value, notSimple))
    else if (!roots.some((root) => value.startsWith(`${root}.`)))
      errors.push(invalid(fieldPath, value, `should be a json path under ${where}`))
  }
  check('specReplicasPath', ['.spec'], '.spec')
  check('statusReplicasPath', ['.status'], '.status')
  check('labelSelectorPath', ['.spec', '.status'], 'either .spec or .status')
  return errors
}

/** Versions of ConversionReview that this server can send. */
export const ConversionReviewVersions: readonly string[] = ['v1', 'v1beta1']

function conversionErrors({ spec }: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const { conversion } = spec
  if (!conversion) return []
  const errors: FieldError[] = []
  const { clientConfig, conversionReviewVersions: versions = [] } = conversion.webhook ?? {}
  const [configPath, versionsPath] = ['spec.conversion.webhookClientConfig', 'spec.conversion.conversionReviewVersions']
  if (!conversion.strategy) errors.push(required('spec.conversion.strategy'))
  else if (!['None', 'Webhook'].includes(conversion.strategy))
    errors.push(notSupported('spec.conversion.strategy', conversion.strategy, ['None', 'Webhook']))
  if (conversion.strategy === 'Webhook') {
    if (!clientConfig) errors.push(required(configPath, 'required when strategy is set to Webhook'))
    else {
      appendAll(errors, clientConfigErrors(clientConfig, configPath))
      const before = old?.spec.conversion?.webhook?.clientConfig?.caBundle
      if (old && isEstablished(old) && !(before && caBundleProblem(before))) {
        const problem = clientConfig.caBundle && caBundleProblem(clientConfig.caBundle)
        if (problem) errors.push(invalid(`${configPath}.caBundle`, clientConfig.caBundle, problem))
      }
    }
    appendAll(errors, reviewVersionErrors(versions, versionsPath))
    return errors
  }
  const reason = 'should not be set when strategy is not set to Webhook'
  if (clientConfig) errors.push(forbidden(configPath, reason))
  if (versions.length > 0) errors.push(forbidden(versionsPath, reason))
  return errors
}

/**
 * Returns the problem of a CA bundle. Upstream validates the bundle only for an established CRD whose stored bundle is valid or empty,
 * because a controller may set the bundle after the creation of the CRD.
 */
function caBundleProblem(bundle: string): string | undefined {
  const text = Buffer.from(bundle, 'base64').toString()
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
  } catch (err) {
    return `unable to load root certificates: ${messageOf(err)}`
  }
  return blocks.length > 0 ? undefined : 'unable to load root certificates: unable to parse bytes as PEM block'
}

function reviewVersionErrors(versions: readonly string[], path: string): FieldError[] {
  if (versions.length === 0) return [required(path)]
  const repeated = repeats(versions)
  const errors = versions.flatMap((version, index) =>
    repeated[index]
      ? [invalid(`${path}[${index}]`, version, 'duplicate version')]
      : dns1035LabelProblems(version).map((problem) => invalid(`${path}[${index}]`, version, problem)),
  )
  if (!versions.some((version) => ConversionReviewVersions.includes(version))) {
    errors.push(invalid(path, versions, `must include at least one of ${ConversionReviewVersions.join(', ')}`))
  }
  return errors
}

const isEstablished = ({ status }: CustomResourceDefinition): boolean =>
  status?.conditions?.some(({ type, status: conditionStatus }) => type === 'Established' && conditionStatus === 'True') === true

/** Group and plural are immutable; scope and kind become immutable when the CRD is established. */
function updateErrors({ spec }: CustomResourceDefinition, old: CustomResourceDefinition): FieldError[] {
  const errors: FieldError[] = []
  const requireSame = (field: string, value: string, oldValue: string) => {
    if (value !== oldValue) errors.push(invalid(field, value, 'field is immutable'))
  }
  if (isEstablished(old)) {
    requireSame('spec.scope', spec.scope, old.spec.scope)
    requireSame('spec.names.kind', spec.names.kind, old.spec.names.kind)
  }
  requireSame('spec.group', spec.group, old.spec.group)
  requireSame('spec.names.plural', spec.names.plural, old.spec.names.plural)
  return errors
}
