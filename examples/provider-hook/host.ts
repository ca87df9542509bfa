import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'

/** A Host, the resource that this example provisions. */
export const Host = defineKind({
  group: 'provider.example.com',
  version: 'v1alpha1',
  kind: 'Host',
  plural: 'hosts',
  scope: 'Namespaced',
  doc: 'Host is a machine in the cellar.',
  spec: s.object({ cores: s.int32({ minimum: 1 }).doc('How big it is.') }),
  status: s.object({
    provisioned: s.boolean().optional().doc('True once it is there; never taken back.'),
    conditions: s.conditions(),
  }),
  columns: [column('Provisioned', '.status.provisioned', { type: 'boolean' }), age()],
})
export type Host = ObjectOf<typeof Host>

export const HostConditions = conditionTypes({
  Provisioned: ['Provisioned', 'HeldBack', 'HookFailed'],
})
