import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'

/** A Host, the resource that this example provisions. */
export const Host = defineKind({
  group: 'provider.example.com',
  version: 'v1alpha1',
  kind: 'Host',
  plural: 'hosts',
  scope: 'Namespaced',
  doc: 'Host is a physical machine.',
  spec: s.object({ cores: s.int32({ minimum: 1 }).doc('Number of CPU cores.') }),
  status: s.object({
    provisioned: s.boolean().optional().doc('True once the machine is provisioned; never set back to false.'),
    conditions: s.conditions(),
  }),
  columns: [column('Provisioned', '.status.provisioned', { type: 'boolean' }), age()],
})
export type Host = ObjectOf<typeof Host>

export const HostConditions = conditionTypes({
  Provisioned: ['Provisioned', 'Blocked', 'HookFailed'],
})
