/** Metadata of objects that are created from a template. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

export const objectMeta = s
  .object({ labels: s.map(s.string()).optional(), annotations: s.map(s.string()).optional() }, nonEmpty)
  .doc('Labels and annotations of the created objects.')
export interface TemplateObjectMeta extends Infer<typeof objectMeta> {}
