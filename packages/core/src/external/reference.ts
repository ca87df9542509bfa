import { parseApiVersion, type KubeObject } from '@capstan/kube'
import type { ContractRef } from './get.ts'

/** Finds who refers to a provider's object: the value under which an index files the reference, and the object. */
export const referenceText = ({ apiGroup, kind, name }: ContractRef, namespace: string | undefined): string =>
  `${kind}.${apiGroup}/${namespace}/${name}`

/** @see referenceText */
export const referredText = ({ apiVersion, kind, metadata }: KubeObject): string =>
  referenceText({ apiGroup: parseApiVersion(apiVersion).group, kind, name: metadata.name }, metadata.namespace)
