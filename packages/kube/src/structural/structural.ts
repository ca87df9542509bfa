/** Compiles a schema into the operations of an API server on objects: prune, default, validate. */
import { asWork, atOnce, sorting, type Work } from '../clock.ts'
import { appendAll } from '../lists.ts'
import { type RuleError, type RuleOptions, rulesValidator } from '../cel/validate-rules.ts'
import type { FieldError } from '../errors.ts'
import type { JSONSchema } from '../schema.ts'
import { compileDefault, compileDropNulls } from './default.ts'
import { compileEmbedded } from './embedded.ts'
import { compileUniqueness } from './list-type.ts'
import { compilePrune } from './prune.ts'
import { compileValidate } from './validate.ts'

/**
 * The compiled schema of a whole object. `prune`, `dropNulls` and `default` change the given draft. `pruning`, `droppingNulls`, `defaulting`
 * and `validating` return `Work` that does the same as `prune`, `dropNulls`, `default` and `validate`, and yields between its pieces.
 */
export interface Structural {
  readonly schema: JSONSchema
  /**
   * Removes unknown fields, except apiVersion, kind and metadata. Returns the paths of the removed fields, such as `spec.foo`, in the order
   * in which field validation reports them.
   */
  prune(object: object): string[]
  pruning(object: object): Work<string[]>
  /** Removes nulls of fields that are not nullable and have no default. */
  dropNulls(object: object): void
  droppingNulls(object: object): Work<void>
  /** Sets defaults. */
  default(object: object): void
  defaulting(object: object): Work<void>
  /**
   * Validates the object: its schema, then embedded resources, then duplicate items, then CEL rules. With `old` (ratcheting),
   * unchanged parts may violate the schema and all rules except transition rules, and duplicates are errors only if `old` has
   * none. `earlier` has the errors of earlier checks, which are not returned. After errors of types, required fields,
   * enumerations or maximum sizes, CEL rules are skipped, and one more error reports this. `also` has errors to report before
   * the errors of the rules.
   */
  validate(object: object, old?: object, earlier?: readonly FieldError[], also?: readonly FieldError[]): FieldError[]
  validating(...args: Parameters<Structural['validate']>): Work<FieldError[]>
  /** Returns errors of CEL rules in unchanged parts of an update. These errors do not reject the update; the server sends them as warnings. */
  ratchetedErrors(object: object, old: object): Work<RuleError[]>
  /** Validates by the schema, without CEL rules. */
  validateSchema(object: object, old?: object): FieldError[]
  /** Validates only by CEL rules. The object must be valid by its schema. */
  validateRules(object: object, old?: object, options?: RuleOptions): RuleError[]
}

const compiled = new WeakMap<JSONSchema, Structural>()

/** Compiles the schema of a kind, once for each schema object. */
export function structural(schema: JSONSchema): Structural {
  let cached = compiled.get(schema)
  if (!cached) compiled.set(schema, (cached = compile(schema)))
  return cached
}

function compile(schema: JSONSchema): Structural {
  const prune = compilePrune(schema, true)
  const dropNulls = compileDropNulls(schema)
  const setDefaults = compileDefault(schema)
  const validate = compileValidate(schema)
  const findDuplicates = compileUniqueness(schema)
  const checkEmbedded = compileEmbedded(schema)
  const validateRules = rulesValidator(schema)

  /**
   * Objects that satisfy all rules except transition rules. An update of such an object can violate these rules only in parts that it
   * changes, so that ratcheting suppresses no errors.
   */
  const validByRules = new WeakSet<object>()

  const duplicatesIn = (object: object): FieldError[] => {
    const errors: FieldError[] = []
    findDuplicates?.(object, '', errors)
    return errors
  }
  const validateSchema = (object: object, old?: object): FieldError[] => {
    const errors: FieldError[] = []
    validate(object, '', errors, old === undefined ? undefined : { value: old })
    checkEmbedded?.(object, '', errors)
    const duplicates = duplicatesIn(object)
    // Upstream: duplicates are an error only when the object had none before.
    if (duplicates.length > 0 && (old === undefined || duplicatesIn(old).length === 0)) appendAll(errors, duplicates)
    return errors
  }
  const pruning = function* (object: object): Work<string[]> {
    const removed = { fields: [], metadata: [] } as { fields: string[]; metadata: string[] }
    yield* asWork(() => prune?.(object, '', removed))
    return [...(yield* sorting(removed.fields)), ...(yield* sorting(removed.metadata))]
  }
  const validating: Structural['validating'] = function* (object, old, earlier = [], also = []) {
    const errors = [...validateSchema(object, old), ...also]
    if (!validateRules) return errors
    if (earlier.some(preventsRules) || errors.some(preventsRules)) return [...errors, rulesNotChecked]
    yield
    const ruleErrors = yield* validateRules(object, old)
    if (old === undefined && ruleErrors.length === 0) validByRules.add(object)
    return [...errors, ...ruleErrors]
  }
  return {
    schema,
    prune: (object) => atOnce(pruning(object)),
    pruning,
    dropNulls: (object) => atOnce(asWork(() => dropNulls?.(object))),
    droppingNulls: (object) => asWork(() => dropNulls?.(object)),
    default: (object) => atOnce(asWork(() => setDefaults?.(object))),
    defaulting: (object) => asWork(() => setDefaults?.(object)),
    validate: (...args) => atOnce(validating(...args)),
    validating,
    *ratchetedErrors(object, old) {
      if (!validateRules || validByRules.has(old)) {
        validByRules.add(object)
        return []
      }
      const ruleErrors = yield* validateRules(object, old, { onlyUnchanged: true })
      if (ruleErrors.length === 0) validByRules.add(object)
      return ruleErrors
    },
    validateSchema,
    validateRules: (object, old, options) => (validateRules ? atOnce(validateRules(object, old, options)) : []),
  }
}

/** Upstream: after errors of these types, rules are not evaluated, because they rely on the types and maximum sizes in the schema. */
const preventsRules = ({ type }: FieldError): boolean =>
  type === 'FieldValueRequired' ||
  type === 'FieldValueTypeInvalid' ||
  type === 'FieldValueNotSupported' ||
  type === 'FieldValueTooLong' ||
  type === 'FieldValueTooMany'

const rulesNotChecked: FieldError = {
  type: 'FieldValueInvalid',
  field: '<nil>',
  text: 'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
}
