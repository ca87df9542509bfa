/** Parses the query of a request into options of the engine, and validates the options of writes. */
import type { FieldError, RequestOptions, Verb } from '@capstan/kube'
import { badRequest, forbidden, invalid, invalidObject, notSupported, parseGoInteger, quotedGo, tooLong } from '@capstan/kube'

const kinds = { create: 'CreateOptions', update: 'UpdateOptions', patch: 'PatchOptions' } as const

/**
 * Parses the options of a verb. `apply`: whether a patch is an apply patch; default false.
 * @throws StatusError BadRequest for an invalid number, Invalid for an invalid option of a write
 */
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
      // `deleteOptionsOf` reads DeleteOptions, because they may be in the body.
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
  const controlIndex = fieldManager.search(/\p{C}/u)
  if (controlIndex >= 0) {
    const code = fieldManager.codePointAt(controlIndex)!.toString(16).toUpperCase().padStart(4, '0')
    errors.push({
      ...invalid('fieldManager', '', ''),
      text: `Invalid value: ${quotedGo(fieldManager)}: invalid character U+${code} (at position ${controlIndex})`,
    })
  }
  const dryRun = dryRunOf(query.getAll('dryRun'), errors)
  if (!['', 'Ignore', 'Strict', 'Warn'].includes(fieldValidation)) {
    errors.push(notSupported('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']))
  }
  const force = query.has('force') ? asBoolean(query.get('force')) : undefined
  if (verb === 'patch' && !apply && force !== undefined) {
    errors.push(forbidden('force', 'may not be specified for non-apply patch'))
  }
  reject(kinds[verb], errors)
  return {
    ...dryRun,
    ...(fieldManager === '' ? {} : { fieldManager }),
    ...(fieldValidation === '' ? {} : { fieldValidation: fieldValidation as NonNullable<RequestOptions['fieldValidation']> }),
    ...(force === undefined ? {} : { force }),
  }
}

/** Returns the option `dryRun`; no option without values. When a value is not `All`, adds an error to `errors` and returns no option. */
export function dryRunOf(values: readonly unknown[], errors: FieldError[]): RequestOptions {
  if (values.length === 0) return {}
  if (values.every((value) => value === 'All')) return { dryRun: true }
  errors.push(notSupported('dryRun', values, ['All']))
  return {}
}

/** Rejects options of a kind, such as `DeleteOptions`, that have errors. @throws StatusError Invalid when there are errors */
export function reject(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind }, '', errors)
}

/** Returns an option with the text of a query parameter; no option if the parameter is missing or empty. */
export const text = (query: URLSearchParams, name: string): object => {
  const value = query.get(name)
  return value === null || value === '' ? {} : { [name]: value }
}

/** Returns an option with the integer of a query parameter, if there is one. @throws StatusError BadRequest if it is no integer */
export const integer = (query: URLSearchParams, name: string): object => {
  const value = query.get(name)
  if (value === null) return {}
  try {
    return { [name]: parseGoInteger(value) }
  } catch (err) {
    throw badRequest((err as RangeError).message)
  }
}

/** Returns an option with the boolean of a query parameter, if there is one. */
export const boolean = (query: URLSearchParams, name: string): object =>
  query.has(name) ? { [name]: asBoolean(query.get(name)) } : {}

/** Parses a boolean parameter. As upstream, every value other than 0 and false (whose case is ignored) counts as true. */
const asBoolean = (value: string | null): boolean => value !== null && value.toLowerCase() !== 'false' && value !== '0'
