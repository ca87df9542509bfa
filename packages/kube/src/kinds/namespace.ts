import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

export const Namespace = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  shortNames: ['ns'],
  scope: 'Cluster',
  doc: 'A scope for names of objects. Deleting a namespace deletes all its objects.',
  spec: s
    .object({
      finalizers: s.list(s.string()).atomic().optional().doc('Must be empty before the namespace is removed.'),
    })
    .optional(),
  status: s.object({
    phase: s.enum('Active', 'Terminating').optional(),
    conditions: s
      .list(
        s.object({
          type: s.string(),
          status: s.string(),
          lastTransitionTime: s.timestamp().optional(),
          reason: s.string().optional(),
          message: s.string().optional(),
        }),
      )
      .listMap('type')
      .optional(),
  }),
})
export type Namespace = ObjectOf<typeof Namespace>
