import { parseApiVersion, type KubeObject } from '@capstan/kube'
import type { ContractRef } from './get.ts'

/**
 * Returns the index value of a reference to a provider's object. `referredText` returns the same value for the object itself, so that an event
 * of the object finds the objects that refer to it.
 */
export const referenceText = ({ apiGroup, kind, name }: ContractRef, namespace: string | undefined): string =>
  `${kind}.${apiGroup}/${namespace}/${name}`

/** Returns the index value of the references to a provider's object. */
export const referredText = ({ apiVersion, kind, metadata }: KubeObject): string =>
  referenceText({ apiGroup: parseApiVersion(apiVersion).group, kind, name: metadata.name }, metadata.namespace)
