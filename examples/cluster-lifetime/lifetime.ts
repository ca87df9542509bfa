import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'

export const Lifetime = defineKind({
  group: 'example.com',
  version: 'v1alpha1',
  kind: 'Lifetime',
  plural: 'lifetimes',
  scope: 'Namespaced',
  doc: 'Lifetime deletes a Cluster after a number of minutes.',
  spec: s.object({
    clusterName: s.string({ minLength: 1 }).doc('Name of the Cluster, in the same namespace.'),
    minutes: s
      .int32({ minimum: 1 })
      .doc('Minutes after which the Cluster is deleted, counted from the creation of the Lifetime.'),
  }),
  status: s.object({ conditions: s.conditions() }),
  columns: [column('Cluster', '.spec.clusterName'), column('Minutes', '.spec.minutes', { type: 'integer' }), age()],
})
export type Lifetime = ObjectOf<typeof Lifetime>

export const LifetimeConditions = conditionTypes({
  Expired: ['Expired', 'Alive'],
})
