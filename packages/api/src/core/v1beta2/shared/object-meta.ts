/** Metadata of objects that are made from a template. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const objectMeta = s
  .object(
    {
      annotations: s.map(s.string()).optional(),
      labels: s.map(s.string()).optional(),
    },
    { minProperties: 1 },
  )
  .doc('Labels and annotations for the objects that are made.')
export type TemplateObjectMeta = Infer<typeof objectMeta>
