import { dns1035LabelProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, at, column, field, list, nameColumn, orNone, pairs, text, wide } from '../columns.ts'
import type { Service } from '../schemas/types.ts'

export const services: BuiltinKind<Service> = {
  names: dns1035LabelProblems,
  fields: { 'spec.clusterIP': field('spec', 'clusterIP'), 'spec.type': field('spec', 'type') },
  columns: [
    nameColumn,
    column('Type', (o) => text(o, 'spec', 'type')),
    column('Cluster-IP', (o) => orNone(text(o, 'spec', 'clusterIP'))),
    column('External-IP', (o) => (text(o, 'spec', 'type') === 'ExternalName' ? text(o, 'spec', 'externalName') : '<none>')),
    column('Port(s)', (o) =>
      orNone(
        list<{ port: number; nodePort?: number; protocol?: string }>(o, 'spec', 'ports')
          .map(({ port, nodePort, protocol = 'TCP' }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
          .join(','),
      ),
    ),
    ageColumn,
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  default({ spec }) {
    spec.type ??= 'ClusterIP'
    spec.sessionAffinity ??= 'None'
    if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster'
    for (const port of spec.ports ?? []) port.targetPort ??= port.port
  },
  prepare(service, old) {
    if (!old) service.status = { loadBalancer: {} }
  },
}
