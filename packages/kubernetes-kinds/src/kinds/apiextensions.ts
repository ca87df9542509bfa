/** The kinds of `apiextensions.k8s.io/v1`. */
import { CustomResourceDefinition } from '@capstan/kube'
import { crdStrategy } from '@capstan/apiserver/kinds'
import type { KindTable } from './builtin-kind.ts'

export const apiextensions: KindTable = {
  // Upstream's schema of this kind is recursive, so another schema replaces it.
  customresourcedefinitions: { ...crdStrategy, schema: CustomResourceDefinition.schema, generation: true },
}
