/**
 * Finds the API version in which core uses a provider's kind, and its contract version, from labels of the CustomResourceDefinition such as
 * `cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`. Upstream: internal/contract/version.go, util/contract.
 */
import { type ContractVersion, contractOfVersion, latestContract, pluralOf } from '@capstan/api'
import {
  apiVersionOf,
  CustomResourceDefinition,
  isReason,
  type Kind,
  type KubeObject,
  type Reader,
  type StatusError,
  type UnknownObject,
  unknownKind,
} from '@capstan/kube'

export interface GroupKind {
  readonly apiGroup: string
  readonly kind: string
}

/** A provider's kind in one API version, with the contract version of its fields. */
export interface ExternalKind {
  readonly contract: ContractVersion
  readonly kind: Kind<UnknownObject>
}

/**
 * Returns a provider's kind. Of the contract versions that the CustomResourceDefinition declares and core supports, selects the newest, and
 * of the API versions declared for it the greatest.
 * @throws Error when the CustomResourceDefinition declares no supported contract version, cannot be read, or does not exist. If it does not
 * exist, the error is deliberately not a NotFound, which would mean that the referenced object itself does not exist
 */
export async function externalKind(
  reader: Reader,
  { apiGroup, kind }: GroupKind,
  options?: { signal: AbortSignal },
): Promise<ExternalKind> {
  const plural = pluralOf(kind)
  const crd = await customResourceDefinition(reader, `${plural}.${apiGroup}`, options)
  const { contract, version } = latestContract(crd)
  return { contract, kind: unknownKind({ apiVersion: `${apiGroup}/${version}`, kind, plural }) }
}

/**
 * Returns a function that finds the apiVersion of a provider's kind. The conversion of our kinds to older versions needs it: a reference such
 * as `infrastructureRef` has only an API group in v1beta2, but an apiVersion in older versions. @see externalKind
 */
export const referenceVersions =
  (reader: Reader) =>
  async ({ group, kind }: { group: string; kind: string }): Promise<string> =>
    apiVersionOf((await externalKind(reader, { apiGroup: group, kind })).kind)

/** Returns a provider's kind in the apiVersion of a reference, with the contract version. @see externalKind */
export async function externalKindOf(
  reader: Reader,
  { apiVersion, kind }: { apiVersion: string; kind: string },
): Promise<ExternalKind> {
  const fixedKind = unknownKind({ apiVersion, kind, plural: pluralOf(kind) })
  const crd = await customResourceDefinition(reader, `${fixedKind.plural}.${fixedKind.group}`)
  return { contract: contractOfVersion(crd, fixedKind.version), kind: fixedKind }
}

async function customResourceDefinition(reader: Reader, name: string, options?: { signal: AbortSignal }): Promise<KubeObject> {
  try {
    return await reader.get(CustomResourceDefinition, { name }, options)
  } catch (err) {
    if (!isReason(err, 'NotFound')) throw err
    throw new Error(`failed to get CustomResourceDefinition metadata: ${(err as StatusError).message}`, { cause: err })
  }
}
