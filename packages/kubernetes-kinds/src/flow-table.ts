/**
 * Priority levels of requests, as in upstream's suggested flow schemas, with two exceptions:
 * - get, create, update and patch of Leases have the level `leader-election` for every user except nodes, because a controller must not lose
 *   its Lease when it sends many other requests.
 * - For users in the group `system:nodes`, every subresource of a Node has the level `node-high`; upstream: only `status`.
 */
import type { FlowTable } from '@capstan/apiserver/kinds'

const leases = { group: 'coordination.k8s.io', plural: 'leases' }
const nodes = { group: '', plural: 'nodes' }

export const flowTable: FlowTable = {
  schemas: [
    { level: 'node-high', group: 'system:nodes', resources: [leases, nodes] },
    { level: 'system', group: 'system:nodes' },
    { level: 'leader-election', resources: [leases], verbs: ['get', 'create', 'update', 'patch'] },
    {
      level: 'workload-high',
      user: /^(?:system:kube-controller-manager$|system:kube-scheduler$|system:serviceaccount:kube-system:)/,
    },
    { level: 'workload-low', group: 'system:serviceaccounts' },
  ],
  // Requests for Leases are served even when memory is nearly used up, so that controllers do not lose their Leases.
  urgent: [leases],
}
