/**
 * Which version of a provider's kind core speaks, and by which version of the contract: both are written in labels of the
 * CustomResourceDefinition, such as `cluster.x-k8s.io/v1beta2: v1beta1_v1beta2`.
 * Upstream: internal/contract/version.go, util/contract.
 */
import { type ContractVersion, contractOfVersion, latestContract, pluralOf } from '@capstan/api'
import {
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

/** A provider's kind in the version that core should use, and the contract by which to read its objects. */
export interface ExternalKind {
  readonly contract: ContractVersion
  readonly kind: Kind<UnknownObject>
}

/**
 * Looks up how to talk to a provider's kind.
 *
 * @throws Error when there is no such CustomResourceDefinition. It is on purpose not a NotFound: only the absence of the
 * referenced object itself may be taken for "not there yet".
 */
export async function externalKind(reader: Reader, { apiGroup, kind }: GroupKind): Promise<ExternalKind> {
  const plural = pluralOf(kind)
  const crd = await customResourceDefinition(reader, `${plural}.${apiGroup}`)
  const { contract, version } = latestContract(crd)
  return { contract, kind: unknownKind({ apiVersion: `${apiGroup}/${version}`, kind, plural }) }
}

/** The contract by which to read objects of one given apiVersion, for references that fix it. @see externalKind */
export async function externalKindOf(
  reader: Reader,
  { apiVersion, kind }: { apiVersion: string; kind: string },
): Promise<ExternalKind> {
  const of = unknownKind({ apiVersion, kind, plural: pluralOf(kind) })
  const crd = await customResourceDefinition(reader, `${of.plural}.${of.group}`)
  return { contract: contractOfVersion(crd, of.version), kind: of }
}

async function customResourceDefinition(reader: Reader, name: string): Promise<KubeObject> {
  try {
    return await reader.get(CustomResourceDefinition, { name })
  } catch (err) {
    if (!isReason(err, 'NotFound')) throw err
    throw new Error(`failed to get CustomResourceDefinition metadata: ${(err as StatusError).message}`, { cause: err })
  }
}
