import { type KubeObject, orAbsent, type Reader, type UnknownObject } from '@capstan/kube'
import { type ExternalKind, externalKind, type GroupKind } from './contract-version.ts'

/** A reference to a provider's object, without version and namespace. */
export interface ContractRef extends GroupKind {
  readonly name: string
}

/** A provider's object with its kind and contract version. */
export interface External extends ExternalKind {
  readonly object: UnknownObject
}

/**
 * Reads the object of `ref` in the API version that its CustomResourceDefinition declares for the latest supported contract version.
 * Returns `undefined` when the object does not exist.
 * @throws Error when the CustomResourceDefinition is missing or declares no supported contract version, StatusError when a read fails
 */
export async function getExternal(
  reader: Reader,
  ref: ContractRef,
  namespace: string,
  options?: { signal: AbortSignal },
): Promise<External | undefined> {
  const kindOfRef = await externalKind(reader, ref, options)
  const object = await orAbsent(reader.get(kindOfRef.kind, { namespace, name: ref.name }, options))
  return object && { ...kindOfRef, object }
}

/** A reference with an `apiVersion`, such as those of a ClusterClass to templates. The object may be read in another version. */
export interface TemplateRef {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
}

/** Returns a reference without its version. */
export const contractRefOf = ({ apiVersion, kind, name }: TemplateRef): ContractRef => ({
  apiGroup: apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/'))),
  kind,
  name,
})

/** Returns a reference to an object. */
export const refTo = (object: KubeObject): ContractRef =>
  contractRefOf({ apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name })
