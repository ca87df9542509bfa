/**
 * Declares, reads and writes fields of the provider contracts. A declaration has the path of the field for each contract version; controllers
 * of core, conformance checks and the docs use the declarations.
 * Upstream: internal/contract, v1.14.
 */
export type ContractVersion = 'v1beta2' | 'v1beta1'

/** The contract versions that core supports, the newest first. */
export const ContractVersions: readonly ContractVersion[] = ['v1beta2', 'v1beta1']

export interface ContractField<T> {
  readonly paths: Readonly<Record<ContractVersion, string>>
  /** Whether a provider must implement the field. */
  readonly mandatory: boolean
  readonly doc: string
  /** Never set: exists only for the type checker. */
  readonly _t?: T
}

/** Declares a contract field. If `paths` is one path, it applies to both contract versions. */
export function field<T>(
  paths: string | Record<ContractVersion, string>,
  doc: string,
  options: { mandatory?: boolean } = {},
): ContractField<T> {
  return {
    paths: typeof paths === 'string' ? { v1beta1: paths, v1beta2: paths } : paths,
    mandatory: options.mandatory ?? false,
    doc,
  }
}

/** Returns the value at the field's path; `undefined` if it is absent or null. @throws TypeError when a parent of the field is a list or a scalar */
export function readField<T>(object: object, field: ContractField<T>, contract: ContractVersion): T | undefined {
  return readPath(object, field.paths[contract]) as T | undefined
}

/**
 * Returns the text at the field's path; `undefined` if it is absent or null.
 *
 * @throws TypeError when the value is not a string, when a parent of the field is a list or a scalar, or when the text has more than
 * `maxLength` UTF-16 code units. Callers pass the maximum length of the field to which core copies the text.
 */
export function readText(
  object: object,
  field: ContractField<string>,
  contract: ContractVersion,
  maxLength: number,
): string | undefined {
  const value: unknown = readField(object, field, contract)
  if (value === undefined || (typeof value === 'string' && value.length <= maxLength)) return value
  if (typeof value === 'string')
    throw new TypeError(`${field.paths[contract]}: expected at most ${maxLength} characters, got ${value.length}`)
  throw new TypeError(`${field.paths[contract]}: expected a string, got ${Array.isArray(value) ? 'list' : typeof value}`)
}

/** Writes the field to a draft, and creates missing parent objects. */
export function writeField<T>(draft: object, field: ContractField<T>, contract: ContractVersion, value: T): void {
  writePath(draft, field.paths[contract], value)
}

export function removeField(draft: object, field: ContractField<unknown>, contract: ContractVersion): void {
  const names = field.paths[contract].split('.')
  const last = names.pop()!
  const parent = names.length === 0 ? draft : readPath(draft, names.join('.'))
  if (typeof parent === 'object' && parent !== null) delete (parent as Record<string, unknown>)[last]
}

/** Returns the value at a path such as `spec.providerID`; `undefined` if it is absent or null. @throws TypeError as `readField` */
export function readPath(object: object, path: string): unknown {
  let value: unknown = object
  for (const name of path.split('.')) {
    if (value === undefined || value === null) return undefined
    if (typeof value !== 'object' || Array.isArray(value)) {
      throw new TypeError(`Cannot read ${path}: the parent of ${name} is not an object`)
    }
    value = (value as Record<string, unknown>)[name]
  }
  return value === null ? undefined : value
}

function writePath(draft: object, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop()!
  let parent = draft as Record<string, unknown>
  for (const name of names) {
    const child = parent[name]
    if (typeof child !== 'object' || child === null) parent[name] = {}
    parent = parent[name] as Record<string, unknown>
  }
  parent[last] = value
}
