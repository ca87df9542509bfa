/** Schemas of templates and variables in topology mutation hooks. Upstream: api/runtime/hooks/v1alpha1, v1.14. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { wireObject } from './wire-objects.ts'

/** Values of variables: the user's variables that are visible to the patch, and a variable named `builtin`. */
export const wireVariables = s.list(s.object({ name: s.string(), value: s.any() }))
export type WireVariable = Infer<typeof wireVariables>[number]

/** The object that refers to the object created from a template, and the path of this reference. */
export const holderReference = s.object({
  apiVersion: s.string(),
  kind: s.string(),
  namespace: s.string(),
  name: s.string(),
  fieldPath: s
    .string()
    .doc('Field of the holder that refers to the object created from the template, such as spec.infrastructureRef.'),
})
export interface HolderReference extends Infer<typeof holderReference> {}

/** One template with its holder reference and variables. */
export const templateItem = {
  holderReference,
  object: wireObject('The complete template.'),
  variables: wireVariables
    .optional()
    .doc('Variables for this template only. They override those of the request; `builtin` is merged with that of the request.'),
}
