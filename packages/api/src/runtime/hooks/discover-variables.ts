import type { JSONSchema } from '@capstan/kube'
import { s } from '@capstan/kube'
import { objectMeta } from '../../core/v1beta2/shared/object-meta.ts'
import { jsonSchemaProps, type VariableSchema, variableSchema } from '../../core/v1beta2/shared/variables.ts'
import { commonResponse, defineHook } from '../hook.ts'

const schemaReference: JSONSchema = { $ref: '#/definitions/JSONSchemaProps' }
const schemaList: JSONSchema = { type: 'array', items: schemaReference }

/**
 * Describes the schema of a variable. Its nested schemas are references to this description. In CustomResourceDefinitions, which cannot
 * contain references, nested schemas are any JSON.
 */
const nestedSchema: JSONSchema = {
  ...jsonSchemaProps.json,
  properties: {
    ...jsonSchemaProps.json.properties,
    properties: { type: 'object', additionalProperties: schemaReference },
    additionalProperties: schemaReference,
    items: schemaReference,
    not: schemaReference,
    allOf: schemaList,
    anyOf: schemaList,
    oneOf: schemaList,
  },
}

/** The hook that returns the variables of an external patch. Variables have the form of ClusterClass v1beta2, as upstream since v1.13. */
export const DiscoverVariables = defineHook({
  name: 'DiscoverVariables',
  tag: 'Topology Mutation Hook',
  blocking: false,
  doc: 'Called when a ClusterClass with a patch that names the handler is reconciled; core caches the response for up to ten minutes. The response declares variables that Clusters of the class can set.',
  request: {},
  response: {
    ...commonResponse,
    variables: s
      .list(
        s.object({
          name: s.string().doc('Name of the variable.'),
          required: s.boolean().optional().doc('Whether every Cluster must set the variable.'),
          deprecatedV1Beta1Metadata: objectMeta.optional().doc('Labels and annotations of the definition.'),
          schema: s
            .of<VariableSchema>({ ...variableSchema.json, properties: { openAPIV3Schema: nestedSchema } })
            .doc('Schema of the values of a variable.'),
        }),
      )
      .optional(),
  },
  definitions: { JSONSchemaProps: nestedSchema },
})
