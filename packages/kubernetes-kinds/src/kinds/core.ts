/** The kinds of `v1`. */
import type { KindTable } from './builtin-kind.ts'
import { column, nameColumn } from './columns.ts'
import { configmaps } from './core/config-map.ts'
import { endpoints } from './core/endpoints.ts'
import { events } from './core/event.ts'
import { namespaces } from './core/namespace.ts'
import { nodes } from './core/node.ts'
import { pods, podtemplates } from './core/pod.ts'
import { limitranges, resourcequotas } from './core/quota.ts'
import { replicationcontrollers } from './core/replication-controller.ts'
import { secrets } from './core/secret.ts'
import { serviceaccounts } from './core/service-account.ts'
import { services } from './core/service.ts'
import { persistentvolumeclaims, persistentvolumes } from './core/volume.ts'
import { bindingErrors } from './pod/changes.ts'
import type { Binding, ComponentStatus } from './schemas/types.ts'

export const core: KindTable = {
  /** Assigns a pod to a node; not stored. */
  bindings: { validate: ({ target }: Binding) => bindingErrors(target) },
  /** Computed on request. */
  componentstatuses: {
    deprecation: 'v1 ComponentStatus is deprecated in v1.19+',
    columns: [
      nameColumn,
      column('Status', (o) => (health(o)?.status === 'True' ? 'Healthy' : 'Unhealthy')),
      column('Message', (o) => health(o)?.message ?? ''),
      column('Error', (o) => health(o)?.error ?? ''),
    ],
  },
  configmaps,
  endpoints,
  events,
  limitranges,
  namespaces,
  nodes,
  persistentvolumeclaims,
  persistentvolumes,
  pods,
  podtemplates,
  replicationcontrollers,
  resourcequotas,
  secrets,
  serviceaccounts,
  services,
}

const health = (object: unknown) => (object as ComponentStatus).conditions?.find(({ type }) => type === 'Healthy')
