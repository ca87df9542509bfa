/** References from one object to another. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { dnsSubdomain, groupVersion, kindName, objectName } from './limits.ts'

const kind = s.string({ minLength: 1, maxLength: 63, pattern: kindName }).doc('Kind of the object.')
const name = s.string(objectName).doc('Name of the object.')

export const contractReference = s
  .object({
    apiGroup: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }).doc('API group of the object.'),
    kind,
    name,
  })
  .doc('Refers to a provider object in the same namespace; its version follows from the contract labels of its CRD.')
export interface ContractVersionedObjectReference extends Infer<typeof contractReference> {}

export const templateReference = s
  .object({
    apiVersion: s.string({ minLength: 1, maxLength: 317, pattern: groupVersion }).doc('API group and version of the object.'),
    kind,
    name,
  })
  .doc('Refers to a template in the same namespace, with its API version.')
export interface TemplateReference extends Infer<typeof templateReference> {}
