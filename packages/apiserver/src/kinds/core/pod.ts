import type { UnknownObject } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, at, column, field, list, nameColumn, orNone, text, wide } from '../columns.ts'

export const pods: BuiltinKind = {
  generation: true,
  fields: {
    'spec.nodeName': field('spec', 'nodeName'),
    'spec.restartPolicy': field('spec', 'restartPolicy'),
    'spec.schedulerName': field('spec', 'schedulerName'),
    'spec.serviceAccountName': field('spec', 'serviceAccountName'),
    'spec.hostNetwork': (pod) => String(at(pod, 'spec', 'hostNetwork') === true),
    'status.phase': field('status', 'phase'),
    'status.podIP': field('status', 'podIP'),
    'status.nominatedNodeName': field('status', 'nominatedNodeName'),
  },
  columns: [
    nameColumn,
    column('Ready', podReady),
    column('Status', podStatus),
    column('Restarts', (o) =>
      list<{ restartCount?: number }>(o, 'status', 'containerStatuses').reduce(
        (sum, { restartCount = 0 }) => sum + restartCount,
        0,
      ),
    ),
    ageColumn,
    wide('IP', (o) => orNone(text(o, 'status', 'podIP'))),
    wide('Node', (o) => orNone(text(o, 'spec', 'nodeName'))),
    wide('Nominated Node', (o) => orNone(text(o, 'status', 'nominatedNodeName'))),
    wide('Readiness Gates', () => '<none>'),
  ],
  prepare(pod, old) {
    if (!old) pod.status = { phase: 'Pending' }
  },
}

function podReady(pod: UnknownObject): string {
  const ready = list<{ ready?: boolean }>(pod, 'status', 'containerStatuses').filter((status) => status.ready).length
  return `${ready}/${list(pod, 'spec', 'containers').length}`
}

function podStatus(pod: UnknownObject): string {
  return pod.metadata.deletionTimestamp ? 'Terminating' : text(pod, 'status', 'reason') || text(pod, 'status', 'phase')
}
