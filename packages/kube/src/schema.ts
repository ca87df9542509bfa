/**
 * The structural schema builder. Except for `with`, `s.of` and the constructor of `Schema`, it offers only keywords that a
 * CustomResourceDefinition may contain. An API server rejects a CustomResourceDefinition with an error that TypeScript cannot find, such as
 * an invalid pattern or CEL rule.
 *
 * A schema combines its static type (`Infer`) and its OpenAPI form (`json`); `structural/structural.ts` compiles the OpenAPI form into
 * pruning, defaulting and validation.
 *
 * The static type of a schema is read by indexed access on a phantom member, not inferred by a conditional type, which keeps type checking
 * fast and hovers short.
 */

/**
 * A schema in JSON form: keywords that CustomResourceDefinitions allow (from OpenAPI v3, and extensions), and a few others whose comments
 * begin with "Only".
 */
export interface JSONSchema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  format?: string
  title?: string
  description?: string
  default?: unknown
  nullable?: boolean
  enum?: unknown[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  properties?: { [name: string]: JSONSchema }
  additionalProperties?: JSONSchema | boolean
  required?: string[]
  items?: JSONSchema
  allOf?: JSONSchema[]
  anyOf?: JSONSchema[]
  oneOf?: JSONSchema[]
  not?: JSONSchema
  /** Only in schemas that no API server reads: `#/definitions/NAME` of the outermost schema, for recursive schemas. */
  $ref?: string
  /** Only with `$ref`: the schemas to which it refers. */
  definitions?: { [name: string]: JSONSchema }
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'granular' | 'atomic'
  'x-kubernetes-validations'?: ValidationRule[]
  /** Only for built-in kinds: the key by which strategic merge patch identifies items of a list. Default: the first list map key. */
  'x-kubernetes-patch-merge-key'?: string
  /** Only for built-in kinds: how strategic merge patch treats a list or object, if the list type does not determine that. */
  'x-kubernetes-patch-strategy'?: string
  /** Only for built-in kinds: value of an omitted field without a default. Used when the field is a key of list items. */
  'x-capstan-zero'?: unknown
}

/** One CEL rule of a schema. */
export interface ValidationRule {
  rule: string
  message?: string
  messageExpression?: string
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  fieldPath?: string
  optionalOldSelf?: boolean
}

/** A schema of values of type `T`. `Optional`: whether an object may omit the field. */
export class Schema<T = unknown, Optional extends boolean = boolean> {
  /** Never set: exists only for the type checker. */
  declare readonly _t: T
  declare readonly _optional: Optional
  readonly json: JSONSchema
  readonly isOptional: boolean

  constructor(json: JSONSchema, isOptional = false) {
    this.json = json
    this.isOptional = isOptional
  }

  /** Sets the description that `kubectl explain` prints. */
  doc(description: string): Schema<T, Optional> {
    return this.with({ description })
  }

  /** Makes the field optional. */
  optional(): Schema<T, true> {
    return new Schema(this.json, true)
  }

  /** Sets a default, so that clients may omit the field: the server then adds the default, and readers always find a value. */
  default(value: T): Schema<T, Optional> {
    return new Schema({ ...this.json, default: value }, true) as Schema<T, Optional>
  }

  /**
   * Allows the value `null`. Otherwise the server removes a null field, or replaces its null by the default, and rejects a null list item
   * if the items have a type.
   */
  nullable(): Schema<T | null, Optional> {
    return this.with({ nullable: true }) as Schema<T | null, Optional>
  }

  /** Adds a CEL rule over `self` (and `oldSelf`, which makes it a transition rule). */
  rule(rule: string, message: string, options: Omit<ValidationRule, 'rule' | 'message'> = {}): Schema<T, Optional> {
    const rules = this.json['x-kubernetes-validations'] ?? []
    return this.with({ 'x-kubernetes-validations': [...rules, { rule, message, ...options }] })
  }

  /** Rejects other values once the field is set. An update may still remove an optional field. */
  immutable(message = 'Value is immutable'): Schema<T, Optional> {
    return this.rule('self == oldSelf', message)
  }

  /** Makes the list an associative list: the values of `keys` identify an item, and server-side apply merges items individually. */
  listMap(...keys: T extends readonly (infer Item)[] ? (keyof Item & string)[] : never): Schema<T, Optional> {
    return this.with({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys })
  }

  /** Makes the list a set: an item is identified by its value, and occurs once. */
  listSet(): Schema<T, Optional> {
    return this.with({ 'x-kubernetes-list-type': 'set' })
  }

  /** Makes the list, map or object atomic: a field manager owns it only as a whole. */
  atomic(): Schema<T, Optional> {
    return this.with(this.json.type === 'array' ? { 'x-kubernetes-list-type': 'atomic' } : { 'x-kubernetes-map-type': 'atomic' })
  }

  /** Adds keywords, or replaces their values. */
  with(keywords: JSONSchema): Schema<T, Optional> {
    return new Schema({ ...this.json, ...keywords }, this.isOptional)
  }
}

/** Static type of the values of a schema. */
export type Infer<S extends { _t: unknown }> = S['_t']

/** Schemas of the fields of an object, by name. */
export type Shape = { [name: string]: Schema }

/** The object type of a shape. Keys are filtered with `as`, not with `Exclude`, so that editors still show types and find definitions. */
export type ObjectOfShape<P extends Shape> = {
  -readonly [K in keyof P as P[K]['_optional'] extends true ? never : K]: P[K]['_t']
} & {
  -readonly [K in keyof P as P[K]['_optional'] extends true ? K : never]?: P[K]['_t']
}

type StringLimits = Pick<JSONSchema, 'minLength' | 'maxLength' | 'pattern' | 'format'>
type NumberLimits = Pick<JSONSchema, 'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum' | 'multipleOf'>
type ListLimits = Pick<JSONSchema, 'minItems' | 'maxItems'>
type ObjectLimits = Pick<JSONSchema, 'minProperties' | 'maxProperties'>

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number
}

/** Limits of the reason of a condition. */
export const conditionReasonLimits = { maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' } as const

/** Functions that create schemas, such as `s.object({ name: s.string() })`. */
export const s = {
  string: (limits: StringLimits = {}): Schema<string, false> => new Schema({ type: 'string', ...limits }),
  enum: <const V extends readonly string[]>(...values: V): Schema<V[number], false> =>
    new Schema({ type: 'string', enum: [...values] }),
  integer: (limits: NumberLimits = {}): Schema<number, false> => new Schema({ type: 'integer', ...limits }),
  int32: (limits: NumberLimits = {}): Schema<number, false> => new Schema({ type: 'integer', format: 'int32', ...limits }),
  int64: (limits: NumberLimits = {}): Schema<number, false> => new Schema({ type: 'integer', format: 'int64', ...limits }),
  number: (limits: NumberLimits = {}): Schema<number, false> => new Schema({ type: 'number', ...limits }),
  boolean: (): Schema<boolean, false> => new Schema({ type: 'boolean' }),
  /** RFC 3339, such as 2026-01-01T00:00:00Z. */
  timestamp: (): Schema<string, false> => new Schema({ type: 'string', format: 'date-time' }),
  intOrString: (): Schema<number | string, false> =>
    new Schema({ anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true }),

  object: <P extends Shape>(shape: P, limits: ObjectLimits = {}): Schema<ObjectOfShape<P>, false> => {
    const properties: { [name: string]: JSONSchema } = {}
    const required: string[] = []
    for (const [name, field] of Object.entries(shape)) {
      properties[name] = field.json
      if (!field.isOptional) required.push(name)
    }
    return new Schema({ type: 'object', ...limits, properties, ...(required.length === 0 ? {} : { required }) })
  },
  map: <V>(value: Schema<V>, limits: ObjectLimits = {}): Schema<{ [key: string]: V }, false> =>
    new Schema({ type: 'object', ...limits, additionalProperties: value.json }),
  list: <V>(item: Schema<V>, limits: ListLimits = {}): Schema<V[], false> =>
    new Schema({ type: 'array', ...limits, items: item.json }),

  /** An object without declared fields: all its fields are preserved. */
  unknownObject: (): Schema<{ [field: string]: unknown }, false> =>
    new Schema({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
  /** Any JSON value. The server removes a field with the value null, unless the schema is `nullable`. */
  any: (): Schema<unknown, false> => new Schema({ 'x-kubernetes-preserve-unknown-fields': true }),
  /** Wraps a schema in JSON form. The caller states its static type, such as a recursive type, which cannot be inferred. */
  of: <T>(json: JSONSchema): Schema<T, false> => new Schema(json),

  /** `status.conditions` as in metav1.Condition, merged by type. */
  conditions: (limits: ListLimits = { maxItems: 32 }): Schema<Condition[], true> =>
    s
      .list<Condition>(
        s.object({
          lastTransitionTime: s.timestamp().doc('Time of the last change of the status.'),
          message: s.string({ maxLength: 32768 }).doc('Human-readable details. May be empty.'),
          observedGeneration: s.int64({ minimum: 0 }).optional().doc('The metadata.generation on which the condition is based.'),
          reason: s
            .string({ minLength: 1, ...conditionReasonLimits })
            .doc('Machine-readable reason for the status, one CamelCase word.'),
          status: s.enum('True', 'False', 'Unknown').doc('Status of the condition: True, False or Unknown.'),
          type: s
            .string({
              maxLength: 316,
              pattern:
                '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
            })
            .doc('Type of the condition in CamelCase, with an optional domain prefix.'),
        }),
        limits,
      )
      .listMap('type')
      .doc('Observations of the current state of the object.')
      .optional(),
}
