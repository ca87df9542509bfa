/** The kinds of `apps/v1`. */
import { DaemonSet, Deployment } from '@capstan/kube'
import { declaredIn, type KindTable } from './builtin-kind.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, pairs, wide } from './columns.ts'

export const apps: KindTable = {
  daemonsets: {
    ...declaredIn(DaemonSet),
    generation: true,
    columns: [
      nameColumn,
      column('Desired', (o) => number(o, 'status', 'desiredNumberScheduled')),
      column('Current', (o) => number(o, 'status', 'currentNumberScheduled')),
      column('Ready', (o) => number(o, 'status', 'numberReady')),
      column('Up-to-date', (o) => number(o, 'status', 'updatedNumberScheduled')),
      column('Available', (o) => number(o, 'status', 'numberAvailable')),
      column('Node Selector', (o) => pairs(at(o, 'spec', 'template', 'spec', 'nodeSelector'))),
      ageColumn,
      ...containerColumns(),
      wide('Selector', (o) => pairs(at(o, 'spec', 'selector', 'matchLabels'))),
    ],
  },
  deployments: {
    ...declaredIn(Deployment),
    generation: true,
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
    columns: [
      nameColumn,
      column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
      column('Up-to-date', (o) => number(o, 'status', 'updatedReplicas')),
      column('Available', (o) => number(o, 'status', 'availableReplicas')),
      ageColumn,
      ...containerColumns(),
      wide('Selector', (o) => pairs(at(o, 'spec', 'selector', 'matchLabels'))),
    ],
  },
}
