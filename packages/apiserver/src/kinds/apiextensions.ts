/** The kinds of `apiextensions.k8s.io/v1`. */
import { CustomResourceDefinition } from '@capstan/kube'
import { definitionHooks } from '../registry/definition-hooks.ts'
import type { KindTable } from './builtin-kind.ts'

export const apiextensions: KindTable = {
  // Upstream's schema mentions itself.
  customresourcedefinitions: { ...definitionHooks, schema: CustomResourceDefinition.schema, generation: true },
}
