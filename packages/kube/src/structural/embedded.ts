/**
 * Validates apiVersion, kind and metadata of embedded resources. Upstream:
 * apiextensions-apiserver/pkg/apiserver/schema/objectmeta, v0.36.
 */
import { appendAll } from '../lists.ts'
import type { FieldError } from '../errors.ts'
import { invalid, required } from '../errors.ts'
import { isRecord } from '../json.ts'
import { dns1035LabelProblems, dnsLabelProblems, labelKeyProblems, labelValueProblems, qualifiedNameProblems } from '../names.ts'
import type { JSONSchema } from '../schema.ts'
import { type Check, compileChecks } from './checks.ts'

/** Compiles the check of embedded resources. Returns `undefined` when the schema embeds no resources. */
export const compileEmbedded = (schema: JSONSchema): Check | undefined =>
  compileChecks(schema, (inner) => (inner['x-kubernetes-embedded-resource'] === true ? checkResource : undefined))

function checkResource(value: unknown, path: string, errors: FieldError[]): void {
  if (!isRecord(value)) return
  const { apiVersion, kind, metadata } = value
  if (apiVersion === undefined) errors.push(required(`${path}.apiVersion`))
  else if (typeof apiVersion !== 'string') errors.push(invalid(`${path}.apiVersion`, apiVersion, 'must be a string'))
  else if (apiVersion === '') errors.push(invalid(`${path}.apiVersion`, apiVersion, 'must not be empty'))
  else if (apiVersion.split('/').length > 2) {
    errors.push(invalid(`${path}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`))
  }
  if (kind === undefined) errors.push(required(`${path}.kind`))
  else if (typeof kind !== 'string') errors.push(invalid(`${path}.kind`, kind, 'must be a string'))
  else if (kind === '') errors.push(invalid(`${path}.kind`, kind, 'must not be empty'))
  else {
    const problems = dns1035LabelProblems(kind.toLowerCase())
    if (problems.length > 0) {
      errors.push(invalid(`${path}.kind`, kind, `may have mixed case, but should otherwise match: ${problems.join(',')}`))
    }
  }
  if (isRecord(metadata)) checkMetadata(metadata, `${path}.metadata`, errors)
  else if (metadata !== undefined) errors.push(invalid(`${path}.metadata`, metadata, 'must be an object'))
}

/**
 * Validates namespace, labels, annotation keys and the required fields of owner references of an embedded resource. Upstream:
 * ValidateObjectMetaAccessor, which also validates the size of annotations, name, generateName, generation, finalizers and managedFields,
 * and has more rules for owner references.
 */
function checkMetadata(metadata: Record<string, unknown>, path: string, errors: FieldError[]): void {
  const { namespace, labels, annotations, ownerReferences } = metadata
  const check = (field: string, value: unknown, problems: readonly string[]) =>
    appendAll(
      errors,
      problems.map((problem) => invalid(`${path}.${field}`, value, problem)),
    )
  if (typeof namespace === 'string' && namespace !== '') check('namespace', namespace, dnsLabelProblems(namespace))
  for (const [key, value] of Object.entries(isRecord(labels) ? labels : {})) {
    check('labels', key, labelKeyProblems(key))
    if (typeof value === 'string') check('labels', value, labelValueProblems(value))
  }
  for (const key of Object.keys(isRecord(annotations) ? annotations : {}))
    check('annotations', key, qualifiedNameProblems(key.toLowerCase()))
  for (const owner of Array.isArray(ownerReferences) ? ownerReferences.filter(isRecord) : []) {
    if (!owner.apiVersion) check('ownerReferences.apiVersion', '', ['version must not be empty'])
    for (const field of ['kind', 'name', 'uid']) if (!owner[field]) check(`ownerReferences.${field}`, '', ['must not be empty'])
  }
}
