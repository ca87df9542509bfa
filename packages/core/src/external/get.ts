import { type KubeObject, orAbsent, type Reader, type UnknownObject } from '@capstan/kube'
import { type ExternalKind, externalKind, type GroupKind } from './contract-version.ts'

/** How Cluster API objects refer to a provider's: no version, no namespace. */
export interface ContractRef extends GroupKind {
  readonly name: string
}

/** A provider's object, with what is needed to read its contract fields and to write it. */
export interface External extends ExternalKind {
  readonly object: UnknownObject
}

/**
 * The object that `ref` names, in the version and by the contract that its CustomResourceDefinition claims; `undefined` when
 * the object does not exist.
 *
 * @throws Error when the CustomResourceDefinition is missing or claims no contract that core knows
 */
export async function getExternal(reader: Reader, ref: ContractRef, namespace: string): Promise<External | undefined> {
  const of = await externalKind(reader, ref)
  const object = await orAbsent(reader.get(of.kind, { namespace, name: ref.name }))
  return object && { ...of, object }
}

/** A reference in v1beta1 form; its version says nothing about which version is read. */
export interface TemplateRef {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
}

export const contractRefOf = ({ apiVersion, kind, name }: TemplateRef): ContractRef => ({
  apiGroup: apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/'))),
  kind,
  name,
})

/** The reference by which another object names this one. */
export const refTo = (object: KubeObject): ContractRef =>
  contractRefOf({ apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name })
