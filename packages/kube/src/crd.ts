/** From declared kinds to the CustomResourceDefinition that makes an API server serve them. */
import type { Input } from './client.ts'
import type { Column, DeclaredKind, ScaleSubresource } from './kind.ts'
import type { CustomResourceDefinition } from './kinds/custom-resource-definition.ts'
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
    clientConfig?: {
      url?: string
      caBundle?: string
      service?: { name: string; namespace: string; path?: string; port?: number }
    }
  }
}

/**
 * The CustomResourceDefinition of a kind. Names, scope and storage come from `stored`; `others` are further versions of the same
 * resource that are served too.
 */
export function customResourceDefinition(stored: DeclaredKind, ...others: DeclaredKind[]): Input<CustomResourceDefinition> {
  const { group, kind, plural, singular, listKind, shortNames, categories, scope, labels } = stored
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: resourceName(stored), ...(Object.keys(labels).length === 0 ? {} : { labels: { ...labels } }) },
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
      versions: [stored, ...others].map((of) => versionOf(of, of === stored)),
    },
  }
}

function versionOf(
  { version, schema, statusSubresource, scale, columns }: DeclaredKind,
  storage: boolean,
): CustomResourceVersion {
  const hasSubresources = statusSubresource || scale !== undefined
  return {
    name: version,
    served: true,
    storage,
    schema: { openAPIV3Schema: schema },
    ...(hasSubresources ? { subresources: { ...(statusSubresource ? { status: {} } : {}), ...(scale ? { scale } : {}) } } : {}),
    ...(columns.length === 0 ? {} : { additionalPrinterColumns: [...columns] }),
  }
}
