/**
 * Default FlowSchemas and PriorityLevelConfigurations. They are only for clients that read them: the server's flow control uses
 * `flow-table.ts` instead. Upstream: k8s.io/apiserver, pkg/apis/flowcontrol/bootstrap, v0.36.
 */

interface PriorityLevel {
  readonly name: string
  readonly spec: object
}

const queuing = (queues: number, handSize = 6) => ({
  type: 'Queue',
  queuing: { queues, handSize, queueLengthLimit: 50 },
})

const limited = (
  name: string,
  nominalConcurrencyShares: number,
  limitResponse: object,
  lendablePercent: number,
): PriorityLevel => ({
  name,
  spec: { type: 'Limited', limited: { nominalConcurrencyShares, limitResponse, lendablePercent } },
})

export const priorityLevels: readonly PriorityLevel[] = [
  { name: 'exempt', spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } } },
  limited('catch-all', 5, { type: 'Reject' }, 0),
  limited('system', 30, queuing(64), 33),
  limited('node-high', 40, queuing(64), 25),
  limited('leader-election', 10, queuing(16, 4), 0),
  limited('workload-high', 40, queuing(128), 50),
  limited('workload-low', 100, queuing(128), 90),
  limited('global-default', 20, queuing(128), 50),
]

type Method = 'ByUser' | 'ByNamespace'

const group = (name: string) => ({ kind: 'Group', group: { name } })
const user = (name: string) => ({ kind: 'User', user: { name } })
const kubeSystem = { kind: 'ServiceAccount', serviceAccount: { namespace: 'kube-system', name: '*' } }
const allUsers = [group('system:unauthenticated'), group('system:authenticated')]

const allRequests = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}

interface FlowSchema {
  readonly name: string
  readonly spec: { readonly priorityLevelConfiguration: { readonly name: string } }
}

const flowSchema = (
  name: string,
  level: string,
  matchingPrecedence: number,
  method: Method | undefined,
  subjects: readonly object[],
  rules: object = allRequests,
): FlowSchema => ({
  name,
  spec: {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence,
    ...(method ? { distinguisherMethod: { type: method } } : {}),
    rules: [{ subjects, ...rules }],
  } as FlowSchema['spec'],
})

const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['*'] }

export const flowSchemas: readonly FlowSchema[] = [
  flowSchema('exempt', 'exempt', 1, undefined, [group('system:masters')]),
  flowSchema('catch-all', 'catch-all', 10_000, 'ByUser', allUsers),
  flowSchema('probes', 'exempt', 2, undefined, allUsers, {
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  flowSchema(
    'system-leader-election',
    'leader-election',
    100,
    'ByUser',
    [user('system:kube-controller-manager'), user('system:kube-scheduler'), kubeSystem],
    { resourceRules: [{ verbs: ['get', 'create', 'update'], ...leases }] },
  ),
  flowSchema('system-node-high', 'node-high', 400, 'ByUser', [group('system:nodes')], {
    resourceRules: [
      { verbs: ['*'], apiGroups: [''], resources: ['nodes', 'nodes/status'], clusterScope: true, namespaces: ['*'] },
      { verbs: ['*'], ...leases },
    ],
  }),
  flowSchema('system-nodes', 'system', 500, 'ByUser', [group('system:nodes')]),
  flowSchema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', [user('system:kube-controller-manager')]),
  flowSchema('kube-scheduler', 'workload-high', 800, 'ByNamespace', [user('system:kube-scheduler')]),
  flowSchema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', [kubeSystem]),
  flowSchema('service-accounts', 'workload-low', 9000, 'ByUser', [group('system:serviceaccounts')]),
  flowSchema('global-default', 'global-default', 9900, 'ByUser', allUsers),
]
