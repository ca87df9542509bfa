import type { CustomResourceConversion, CustomResourceNames, CustomResourceVersion } from '../crd.ts'
import { type DeclaredKind, defineKind } from '../kind.ts'
import type { KubeObject } from '../object.ts'
import { type Condition, type JSONSchema, s } from '../schema.ts'
import { webhookClientConfig } from './webhook-client-config.ts'

const names = () =>
  s.object({
    plural: s.string(),
    singular: s.string().optional(),
    kind: s.string(),
    listKind: s.string().optional(),
    shortNames: s.list(s.string()).atomic().optional(),
    categories: s.list(s.string()).atomic().optional(),
  })

/** Returns the schema of fields that contain a JSON schema: any object. JSON schemas are recursive, so code validates them. */
const jsonSchema = () => s.of<JSONSchema>({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true })

const declared = defineKind({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  scope: 'Cluster',
  doc: 'Defines a custom resource. The name must be <plural>.<group>.',
  spec: s.object({
    group: s.string(),
    names: names(),
    scope: s.string(),
    versions: s
      .list(
        s.object({
          name: s.string(),
          served: s.boolean(),
          storage: s.boolean(),
          deprecated: s.boolean().optional(),
          deprecationWarning: s.string().optional(),
          schema: s.object({ openAPIV3Schema: jsonSchema().optional() }).optional(),
          subresources: s
            .object({
              status: s.of<Record<string, never>>({ type: 'object' }).optional(),
              scale: s
                .object({
                  specReplicasPath: s.string(),
                  statusReplicasPath: s.string(),
                  labelSelectorPath: s.string().optional(),
                })
                .optional(),
            })
            .optional(),
          additionalPrinterColumns: s
            .list(
              s.object({
                name: s.string(),
                type: s.string(),
                format: s.string().optional(),
                description: s.string().optional(),
                priority: s.int32().optional(),
                jsonPath: s.string(),
              }),
            )
            .atomic()
            .optional(),
          selectableFields: s
            .list(s.object({ jsonPath: s.string() }))
            .atomic()
            .optional(),
        }),
      )
      .atomic()
      .optional(),
    conversion: s
      .object({
        strategy: s.string(),
        webhook: s
          .object({
            clientConfig: webhookClientConfig.optional(),
            conversionReviewVersions: s.list(s.string()).atomic().optional(),
          })
          .optional(),
      })
      .optional(),
    preserveUnknownFields: s.boolean().optional(),
  }),
  status: s.object({
    conditions: s
      .list(
        s.object({
          type: s.string(),
          status: s.string(),
          lastTransitionTime: s.timestamp().nullable().optional(),
          observedGeneration: s.int64().optional(),
          reason: s.string().optional(),
          message: s.string().optional(),
        }),
      )
      .listMap('type')
      .nullable()
      .optional(),
    acceptedNames: names().optional(),
    storedVersions: s.list(s.string()).atomic().nullable().optional(),
    observedGeneration: s.int64().optional(),
  }),
})
/** Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1, v0.36. */
export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string
    names: CustomResourceNames
    scope: 'Namespaced' | 'Cluster'
    versions: CustomResourceVersion[]
    conversion?: CustomResourceConversion
    preserveUnknownFields?: boolean
  }
  status?: {
    conditions?: Condition[]
    acceptedNames?: CustomResourceNames
    storedVersions?: string[]
  }
}

export const CustomResourceDefinition = declared as unknown as DeclaredKind<CustomResourceDefinition>
