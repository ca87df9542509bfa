/** Variables of a ClusterClass: their schemas and their values. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { objectMeta } from './object-meta.ts'

export const variableValues = s
  .list(
    s.object({
      name: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the variable.'),
      value: s.any().doc('Any value that the schema of the variable allows.'),
    }),
    { minItems: 1, maxItems: 1000 },
  )
  .listMap('name')
  .doc('Values of the variables of the ClusterClass.')
export type ClusterVariable = Infer<typeof variableValues>[number]

export const variableOverrides = s
  .object(
    {
      overrides: variableValues.optional(),
    },
    { minProperties: 1 },
  )
  .doc('Values for this part of the topology only.')
export interface VariableOverrides extends Infer<typeof variableOverrides> {}

export const jsonSchemaProps = s
  .object(
    {
      additionalProperties: s.any().optional(),
      allOf: s.any().optional(),
      anyOf: s.any().optional(),
      default: s.any().optional(),
      description: s.string({ minLength: 1, maxLength: 4096 }).optional(),
      enum: s.list(s.any(), { maxItems: 100 }).atomic().optional(),
      example: s.any().optional(),
      exclusiveMaximum: s.boolean().optional(),
      exclusiveMinimum: s.boolean().optional(),
      format: s.string({ minLength: 1, maxLength: 32 }).optional(),
      items: s.any().optional(),
      maxItems: s.int64().optional(),
      maxLength: s.int64().optional(),
      maxProperties: s.int64().optional(),
      maximum: s.int64().optional(),
      minItems: s.int64().optional(),
      minLength: s.int64().optional(),
      minProperties: s.int64().optional(),
      minimum: s.int64().optional(),
      not: s.any().optional(),
      oneOf: s.any().optional(),
      pattern: s.string({ minLength: 1, maxLength: 512 }).optional(),
      properties: s.any().optional(),
      required: s
        .list(s.string({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 1000 })
        .atomic()
        .optional(),
      type: s.enum('object', 'array', 'string', 'integer', 'number', 'boolean').optional(),
      uniqueItems: s.boolean().optional(),
      'x-kubernetes-int-or-string': s.boolean().optional(),
      'x-kubernetes-preserve-unknown-fields': s.boolean().optional(),
      'x-kubernetes-validations': s
        .list(
          s.object({
            fieldPath: s.string({ minLength: 1, maxLength: 512 }).optional(),
            message: s.string({ minLength: 1, maxLength: 512 }).optional(),
            messageExpression: s.string({ minLength: 1, maxLength: 1024 }).optional(),
            reason: s
              .enum('FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate')
              .default('FieldValueInvalid'),
            rule: s.string({ minLength: 1, maxLength: 4096 }),
          }),
          { minItems: 1, maxItems: 100 },
        )
        .listMap('rule')
        .optional(),
      'x-metadata': objectMeta.optional(),
    },
    { minProperties: 1 },
  )
  .doc('The schema, in a subset of the OpenAPI v3 schemas of CustomResourceDefinitions.')
/** Schema of a variable. In the CRD, nested schemas may be any JSON, because a structural schema cannot refer to itself. */
export interface JSONSchemaProps
  extends Omit<
    Infer<typeof jsonSchemaProps>,
    'properties' | 'additionalProperties' | 'items' | 'allOf' | 'anyOf' | 'oneOf' | 'not'
  > {
  properties?: { [name: string]: JSONSchemaProps }
  additionalProperties?: JSONSchemaProps
  items?: JSONSchemaProps
  allOf?: JSONSchemaProps[]
  anyOf?: JSONSchemaProps[]
  oneOf?: JSONSchemaProps[]
  not?: JSONSchemaProps
}

export const variableSchema = s
  .object({
    openAPIV3Schema: s.of<JSONSchemaProps>(jsonSchemaProps.json),
  })
  .doc('Schema of the values of a variable.')
export interface VariableSchema extends Infer<typeof variableSchema> {}
