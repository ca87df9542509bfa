/** ExtensionConfig: registers a server of Runtime Extensions. Upstream: api/runtime/v1beta2/extensionconfig_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels } from '../../core/v1beta2/shared/crd-labels.ts'
import { labelSelector } from '../../core/v1beta2/shared/label-selector.ts'
import { legacyConditions } from '../../core/v1beta2/shared/legacy-status.ts'

const clientConfig = s
  .object(
    {
      caBundle: s.string({ format: 'byte', minLength: 1, maxLength: 51200 }).optional(),
      service: s
        .object({
          name: s.string({ minLength: 1, maxLength: 63 }),
          namespace: s.string({ minLength: 1, maxLength: 63 }),
          path: s.string({ minLength: 1, maxLength: 512 }).optional(),
          port: s.int32().optional(),
        })
        .optional(),
      url: s.string({ minLength: 1, maxLength: 512 }).optional(),
    },
    { minProperties: 1 },
  )
  .doc('How to reach the extension server: `url` or `service`, never both.')
export type ClientConfig = Infer<typeof clientConfig>

const extensionHandlers = s
  .list(
    s.object({
      failurePolicy: s.enum('Ignore', 'Fail').optional(),
      name: s.string({ minLength: 1, maxLength: 512 }),
      requestHook: s.object({
        apiVersion: s.string({ minLength: 1, maxLength: 512 }),
        hook: s.string({ minLength: 1, maxLength: 256 }),
      }),
      timeoutSeconds: s.int32({ minimum: 1 }).optional(),
    }),
    { maxItems: 512 },
  )
  .listMap('name')
  .doc('What the extension server answered when it was asked which hooks it handles.')
export type ExtensionHandler = Infer<typeof extensionHandlers>[number]

const extensionConfigSpec = s.object({
  clientConfig: clientConfig,
  namespaceSelector: labelSelector.optional(),
  settings: s.map(s.string()).optional(),
})
export type ExtensionConfigSpec = Infer<typeof extensionConfigSpec>

const extensionConfigStatus = s.object(
  {
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            conditions: legacyConditions.optional(),
          })
          .optional(),
      })
      .optional(),
    handlers: extensionHandlers.optional(),
  },
  { minProperties: 1 },
)
export type ExtensionConfigStatus = Infer<typeof extensionConfigStatus>

export const ExtensionConfigConditions = conditionTypes({
  Discovered: ['Discovered', 'NotDiscovered'],
  Paused: ['Paused', 'NotPaused'],
})

export const ExtensionConfig = defineKind({
  group: 'runtime.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ExtensionConfig',
  plural: 'extensionconfigs',
  shortNames: ['ext'],
  categories: ['cluster-api'],
  scope: 'Cluster',
  doc: 'Registers a server of Runtime Extensions, so that core asks it which hooks it handles and calls them.',
  spec: extensionConfigSpec,
  status: extensionConfigStatus,

  columns: [
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Discovered', '.status.conditions[?(@.type=="Discovered")].status'),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
  ],
  labels: contractLabels,
})
export type ExtensionConfig = ObjectOf<typeof ExtensionConfig>
