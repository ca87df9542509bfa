/** Creates CustomResourceDefinitions from declared kinds. */
import type { Input } from './client.ts'
import type { Column, DeclaredKind, ScaleSubresource } from './kind.ts'
import type { CustomResourceDefinition } from './kinds/custom-resource-definition.ts'
import type { WebhookClientConfig } from './kinds/webhook-client-config.ts'
import { resourceName } from './kind.ts'
import type { JSONSchema } from './schema.ts'

export interface CustomResourceNames {
  plural: string
  singular?: string
  kind: string
  listKind?: string
  shortNames?: string[]
  categories?: string[]
}

export interface CustomResourceVersion {
  name: string
  served: boolean
  /** True for the one version in which objects are stored. */
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: JSONSchema }
  subresources?: { status?: Record<string, never>; scale?: ScaleSubresource }
  additionalPrinterColumns?: Column[]
  selectableFields?: { jsonPath: string }[]
}

export interface CustomResourceConversion {
  strategy: 'None' | 'Webhook'
  webhook?: {
    conversionReviewVersions: string[]
    clientConfig?: WebhookClientConfig
  }
}

/**
 * Returns the CustomResourceDefinition of a kind. It contains other versions of the kind only with `conversion`, the address of a webhook
 * that converts objects.
 */
export function customResourceDefinition(
  declared: DeclaredKind,
  conversion?: WebhookClientConfig,
): Input<CustomResourceDefinition> {
  const { group, kind, plural, singular, listKind, shortNames, categories, scope, labels } = declared
  const otherVersions = conversion ? declared.versions : []
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: resourceName(declared), ...(Object.keys(labels).length === 0 ? {} : { labels: { ...labels } }) },
    spec: {
      group,
      names: {
        kind,
        listKind,
        plural,
        singular,
        ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
        ...(categories.length === 0 ? {} : { categories: [...categories] }),
      },
      scope,
      versions: [
        versionOf(declared, { storage: true }),
        ...otherVersions.map(({ kind, deprecated = false }) =>
          versionOf(kind, { storage: false, ...(deprecated ? { deprecated } : {}) }),
        ),
      ],
      ...(conversion && otherVersions.length > 0
        ? { conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: { ...conversion } } } }
        : {}),
    },
  }
}

function versionOf(
  { version, schema, statusSubresource, scale, columns }: DeclaredKind,
  flags: Pick<CustomResourceVersion, 'storage' | 'deprecated'>,
): CustomResourceVersion {
  return {
    name: version,
    served: true,
    ...flags,
    schema: { openAPIV3Schema: schema },
    // Present even when empty, as controller-gen writes it.
    subresources: { ...(statusSubresource ? { status: {} } : {}), ...(scale ? { scale } : {}) },
    ...(columns.length === 0 ? {} : { additionalPrinterColumns: [...columns] }),
  }
}
