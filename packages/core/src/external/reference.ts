import { parseApiVersion, type KubeObject } from '@capstan/kube'
import type { ContractRef } from './get.ts'

/** Finds objects that refer to a provider's object: both the reference and the object map to the same index value. */
export const referenceText = ({ apiGroup, kind, name }: ContractRef, namespace: string | undefined): string =>
  `${kind}.${apiGroup}/${namespace}/${name}`

/** @see referenceText */
export const referredText = ({ apiVersion, kind, metadata }: KubeObject): string =>
  referenceText({ apiGroup: parseApiVersion(apiVersion).group, kind, name: metadata.name }, metadata.namespace)
