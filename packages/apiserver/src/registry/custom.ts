/** Builds ResourceInfo for the served versions of a CustomResourceDefinition. */
import {
  apiVersionOf,
  compareApiVersions,
  type CustomResourceDefinition,
  type CustomResourceVersion,
  type JSONSchema,
  structural,
  maskTrailingDash,
  subdomainProblems,
  type UnknownObject,
} from '@capstan/kube'
import { ConversionReviewVersions } from './crd-validation.ts'
import type { ConversionWebhook, ResourceInfo } from './resource-info.ts'
import { memberText } from './member.ts'
import type { Strategy } from './strategy.ts'

export function customResourceInfos(crd: CustomResourceDefinition): ResourceInfo[] {
  const versions = new Map<string, ResourceInfo>()
  const stored = infoOf(crd, crd.spec.versions.find((version) => version.storage)!, undefined, versions)
  for (const version of crd.spec.versions) {
    const info = version.storage ? stored : infoOf(crd, version, stored, versions)
    versions.set(info.apiVersion, info)
  }
  return crd.spec.versions
    .filter((version) => version.served)
    .map(({ name }) => versions.get(apiVersionOf({ group: crd.spec.group, version: name }))!)
}

function infoOf(
  { metadata, spec, status }: CustomResourceDefinition,
  version: CustomResourceVersion,
  stored: ResourceInfo | undefined,
  versions: ReadonlyMap<string, ResourceInfo>,
): ResourceInfo {
  const { group, scope } = spec
  const names = status?.acceptedNames?.kind ? { ...spec.names, ...status.acceptedNames } : spec.names
  const schema = version.schema?.openAPIV3Schema ?? anyObject
  const storage = spec.versions.find((version) => version.storage)!
  return Object.freeze({
    group,
    version: version.name,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: scope === 'Namespaced',
    builtin: false,
    validatesSchema: true,
    schema,
    columns: version.additionalPrinterColumns ?? [],
    printer: undefined,
    statusSubresource: version.subresources?.status !== undefined,
    defaultsOnRead: version === storage && hasDefaults(schema),
    scale: version.subresources?.scale,
    storageVersion: storage.name,
    deprecation: deprecationOf(spec, version, names.kind),
    stored,
    versions,
    conversion: conversionOf(spec),
    storage: `${names.plural}.${group}`,
    apiVersion: apiVersionOf({ group, version: version.name }),
    get structural() {
      return structural(schema)
    },
    selectableFields: Object.fromEntries(
      (version.selectableFields ?? []).map(({ jsonPath }) => [jsonPath.slice(1), fieldReader(jsonPath)]),
    ),
    strategy,
    createForbidden:
      metadata.deletionTimestamp === undefined ? undefined : 'create not allowed while custom resource definition is terminating',
  })
}

/** Returns the conversion webhook; `undefined` if the CRD has none, or has a single version, so that no object is converted. */
function conversionOf({ conversion, versions }: CustomResourceDefinition['spec']): ConversionWebhook | undefined {
  const { clientConfig, conversionReviewVersions = [] } = conversion?.webhook ?? {}
  if (conversion?.strategy !== 'Webhook' || !clientConfig || versions.length < 2) return undefined
  return {
    clientConfig,
    reviewVersion: conversionReviewVersions.find((version) => ConversionReviewVersions.includes(version)) ?? 'v1',
  }
}

/** Upstream: customResourceStrategy. */
const strategy: Strategy = Object.freeze({
  generation: true,
  nameProblems: (name: string, isPrefix: boolean) => subdomainProblems(isPrefix ? maskTrailingDash(name) : name),
})

const anyObject: JSONSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

function deprecationOf(
  { group, versions }: CustomResourceDefinition['spec'],
  { deprecated, deprecationWarning, name }: CustomResourceVersion,
  kind: string,
): string | undefined {
  if (!deprecated) return undefined
  if (deprecationWarning !== undefined) return deprecationWarning
  const [better] = versions
    .filter((version) => version.served && !version.deprecated)
    .map((version) => version.name)
    .filter((candidate) => compareApiVersions(candidate, name) < 0)
    .sort(compareApiVersions)
  return `${group}/${name} ${kind} is deprecated${better === undefined ? '' : `; use ${group}/${better} ${kind}`}`
}

/** Returns a function that reads a selectable field. Its path is simple and leads to a string, an integer or a boolean. */
function fieldReader(jsonPath: string): (object: UnknownObject) => string {
  const path = jsonPath.split('.').slice(1)
  return (object) => memberText(object, path)
}

const hasDefaults = ({ default: value, properties, items, additionalProperties }: JSONSchema): boolean =>
  value !== undefined ||
  (items !== undefined && hasDefaults(items)) ||
  (typeof additionalProperties === 'object' && hasDefaults(additionalProperties)) ||
  Object.values(properties ?? {}).some(hasDefaults)
