import { parseApiVersion, type KubeObject } from '@capstan/kube'
import type { ContractRef } from './get.ts'

/**
 * Index value of a reference to a provider's object, equal to that of the object: events of the object are mapped to the referring objects.
 */
export const referenceText = ({ apiGroup, kind, name }: ContractRef, namespace: string | undefined): string =>
  `${kind}.${apiGroup}/${namespace}/${name}`

/** Index value of a provider's object, equal to that of the references to it. */
export const referredText = ({ apiVersion, kind, metadata }: KubeObject): string =>
  referenceText({ apiGroup: parseApiVersion(apiVersion).group, kind, name: metadata.name }, metadata.namespace)
