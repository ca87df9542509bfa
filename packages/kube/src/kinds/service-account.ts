import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

export const ServiceAccount = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  shortNames: ['sa'],
  scope: 'Namespaced',
  doc: 'Identity of a process that uses the API server.',
  fields: {
    secrets: s.list(s.object({ name: s.string().optional() }).with({ 'x-kubernetes-preserve-unknown-fields': true })).optional(),
    imagePullSecrets: s.list(s.object({ name: s.string().optional() })).optional(),
    automountServiceAccountToken: s.boolean().optional(),
  },
})
export type ServiceAccount = ObjectOf<typeof ServiceAccount>
