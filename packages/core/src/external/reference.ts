import { parseApiVersion, type KubeObject } from '@capstan/kube'
import type { ContractRef } from './get.ts'

/**
 * Returns the value by which a cache index finds the objects that have this reference to a provider's object. `namespace` is that of the
 * referring object. `referredText` returns the same value for the provider's object itself, so that its events lead to these objects.
 */
export const referenceText = ({ apiGroup, kind, name }: ContractRef, namespace: string | undefined): string =>
  `${kind}.${apiGroup}/${namespace}/${name}`

/** Returns the value by which a cache index finds the objects that refer to this object of a provider. */
export const referredText = ({ apiVersion, kind, metadata }: KubeObject): string =>
  referenceText({ apiGroup: parseApiVersion(apiVersion).group, kind, name: metadata.name }, metadata.namespace)
