/** Parses the query of a request to options, and validates what the engine could not see any more. */
import type { FieldError, RequestOptions, Verb } from '@capstan/kube'
import {
  badRequest,
  forbidden,
  invalid,
  invalidObject,
  isInt64,
  isNumeric,
  isRecord,
  jsonTypeName,
  notSupported,
  tooLong,
} from '@capstan/kube'

const kinds = { create: 'CreateOptions', update: 'UpdateOptions', patch: 'PatchOptions', delete: 'DeleteOptions' } as const

/** @throws StatusError BadRequest for an invalid number, Invalid for an unsupported value of an option */
export function optionsOf(verb: Verb, query: URLSearchParams, { apply = false } = {}): RequestOptions {
  if (query.size === 0) return {}
  switch (verb) {
    case 'get':
      return text(query, 'resourceVersion')
    case 'list':
    case 'watch':
    case 'deletecollection':
      return {
        ...text(query, 'labelSelector'),
        ...text(query, 'fieldSelector'),
        ...text(query, 'resourceVersion'),
        ...text(query, 'resourceVersionMatch'),
        ...text(query, 'continue'),
        ...integer(query, 'limit'),
        ...integer(query, 'timeoutSeconds'),
        ...boolean(query, 'allowWatchBookmarks'),
        ...boolean(query, 'sendInitialEvents'),
      }
    case 'delete':
      return {}
    case 'create':
    case 'update':
    case 'patch':
      return writeOptions(verb, query, apply)
  }
}

function writeOptions(verb: 'create' | 'update' | 'patch', query: URLSearchParams, apply: boolean): RequestOptions {
  const errors: FieldError[] = []
  const fieldManager = query.get('fieldManager') ?? ''
  const fieldValidation = query.get('fieldValidation') ?? ''
  if (Buffer.byteLength(fieldManager) > 128) errors.push(tooLong('fieldManager', 128))
  const control = fieldManager.search(/\p{C}/u)
  if (control >= 0) {
    const code = fieldManager.codePointAt(control)!.toString(16).toUpperCase().padStart(4, '0')
    errors.push({
      ...invalid('fieldManager', '', ''),
      text: `Invalid value: ${goQuoted(fieldManager)}: invalid character U+${code} (at position ${control})`,
    })
  }
  const dryRun = dryRunOf(verb, query.getAll('dryRun'), errors)
  if (!['', 'Ignore', 'Strict', 'Warn'].includes(fieldValidation)) {
    errors.push(notSupported('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']))
  }
  const force = query.has('force') ? asBoolean(query.get('force')) : undefined
  if (verb === 'patch' && !apply && force !== undefined) {
    errors.push(forbidden('force', 'may not be specified for non-apply patch'))
  }
  refuse(kinds[verb], errors)
  return {
    ...dryRun,
    ...(fieldManager === '' ? {} : { fieldManager }),
    ...(fieldValidation === '' ? {} : { fieldValidation: fieldValidation as NonNullable<RequestOptions['fieldValidation']> }),
    ...(force === undefined ? {} : { force }),
  }
}

/**
 * DeleteOptions from the body, or from the query when there is no body.
 * @returns the options as an object, and those that are options of the request
 */
export function deleteOptionsOf(body: unknown, query: URLSearchParams): { body: object; options: RequestOptions } {
  const fromQuery = () => ({
    ...text(query, 'propagationPolicy'),
    ...integer(query, 'gracePeriodSeconds'),
    ...boolean(query, 'orphanDependents'),
  })
  const given: Record<string, unknown> = isRecord(body) ? { ...body } : { ...fromQuery(), dryRun: query.getAll('dryRun') }
  const problem = deleteOptionsProblem(given)
  if (problem !== undefined) throw badRequest(problem)
  const dryRun = (given.dryRun ?? []) as readonly unknown[]
  const { propagationPolicy: policy, orphanDependents, gracePeriodSeconds } = given
  const errors: FieldError[] = []
  const options = dryRunOf('delete', dryRun, errors)
  if (policy !== undefined && policy !== null && orphanDependents !== undefined && orphanDependents !== null) {
    errors.push(invalid('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'))
  } else if (policy !== undefined && policy !== null && !['Foreground', 'Background', 'Orphan'].includes(policy as string)) {
    const supported = '"Foreground", "Background", "Orphan", "nil"'
    errors.push({
      ...notSupported('propagationPolicy', policy, []),
      text: `Unsupported value: ${JSON.stringify(policy)}: supported values: ${supported}`,
    })
  }
  if (isNumeric(gracePeriodSeconds) && gracePeriodSeconds < 0) given.gracePeriodSeconds = 1
  refuse('DeleteOptions', errors)
  delete given.dryRun
  return { body: given, options }
}

/** Error for DeleteOptions whose fields do not have their Go types. */
function deleteOptionsProblem({
  gracePeriodSeconds,
  orphanDependents,
  propagationPolicy,
  dryRun,
  preconditions,
}: Record<string, unknown>): string | undefined {
  const wrong = (field: string, value: unknown, type: string) =>
    `json: cannot unmarshal ${jsonTypeName(value, type)} into Go struct field DeleteOptions.${field} of type ${type}`
  const isText = (value: unknown) => value === undefined || value === null || typeof value === 'string'
  if (gracePeriodSeconds !== undefined && gracePeriodSeconds !== null && !isInt64(gracePeriodSeconds))
    return wrong('gracePeriodSeconds', gracePeriodSeconds, 'int64')
  if (orphanDependents !== undefined && orphanDependents !== null && typeof orphanDependents !== 'boolean')
    return wrong('orphanDependents', orphanDependents, 'bool')
  if (!isText(propagationPolicy)) return wrong('propagationPolicy', propagationPolicy, 'v1.DeletionPropagation')
  if (dryRun !== undefined && dryRun !== null && !Array.isArray(dryRun)) return wrong('dryRun', dryRun, '[]string')
  if (preconditions === undefined || preconditions === null) return undefined
  if (!isRecord(preconditions)) return wrong('preconditions', preconditions, 'v1.Preconditions')
  if (!isText(preconditions.uid)) return wrong('preconditions.uid', preconditions.uid, 'types.UID')
  return isText(preconditions.resourceVersion)
    ? undefined
    : wrong('preconditions.resourceVersion', preconditions.resourceVersion, 'string')
}

function dryRunOf(verb: keyof typeof kinds, values: readonly unknown[], errors?: FieldError[]): RequestOptions {
  if (values.length === 0) return {}
  if (values.every((value) => value === 'All')) return { dryRun: true }
  const error = notSupported('dryRun', values, ['All'])
  if (!errors) refuse(kinds[verb], [error])
  errors?.push(error)
  return {}
}

function refuse(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind }, '', errors)
}

const text = (query: URLSearchParams, name: string): object => {
  const value = query.get(name)
  return value === null || value === '' ? {} : { [name]: value }
}

const integer = (query: URLSearchParams, name: string): object => {
  const value = query.get(name)
  if (value === null) return {}
  const refuse = (why: string) => badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: ${why}`)
  if (!/^[+-]?\d+$/.test(value)) throw refuse('invalid syntax')
  if (Math.abs(Number(value)) >= 2 ** 63) throw refuse('value out of range')
  return { [name]: Number(value) }
}

const boolean = (query: URLSearchParams, name: string): object => (query.has(name) ? { [name]: asBoolean(query.get(name)) } : {})

/** Upstream: every value other than false and 0 counts as true. */
const asBoolean = (value: string | null): boolean => value !== null && value.toLowerCase() !== 'false' && value !== '0'

/** A string as Go quotes it. */
const goQuoted = (value: string): string => JSON.stringify(value).replace(/\\u00([0-9a-f]{2})/g, (_, hex: string) => `\\x${hex}`)
