/**
 * FlowSchemas and PriorityLevelConfigurations that describe the server's flow control. Upstream: k8s.io/apiserver,
 * pkg/apis/flowcontrol/bootstrap, v0.36.
 */

interface Level {
  readonly name: string
  readonly spec: object
}

const queuing = (queues: number, handSize = 6) => ({
  type: 'Queue',
  queuing: { queues, handSize, queueLengthLimit: 50 },
})

const limited = (name: string, nominalConcurrencyShares: number, limitResponse: object, lendablePercent: number): Level => ({
  name,
  spec: { type: 'Limited', limited: { nominalConcurrencyShares, limitResponse, lendablePercent } },
})

export const priorityLevels: readonly Level[] = [
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
const everybody = [group('system:unauthenticated'), group('system:authenticated')]

const everything = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}

interface Schema {
  readonly name: string
  readonly spec: { readonly priorityLevelConfiguration: { readonly name: string } }
}

const schema = (
  name: string,
  level: string,
  matchingPrecedence: number,
  method: Method | undefined,
  subjects: readonly object[],
  rules: object = everything,
): Schema => ({
  name,
  spec: {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence,
    ...(method ? { distinguisherMethod: { type: method } } : {}),
    rules: [{ subjects, ...rules }],
  } as Schema['spec'],
})

const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['*'] }

export const flowSchemas: readonly Schema[] = [
  schema('exempt', 'exempt', 1, undefined, [group('system:masters')]),
  schema('catch-all', 'catch-all', 10_000, 'ByUser', everybody),
  schema('probes', 'exempt', 2, undefined, everybody, {
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  schema(
    'system-leader-election',
    'leader-election',
    100,
    'ByUser',
    [user('system:kube-controller-manager'), user('system:kube-scheduler'), kubeSystem],
    { resourceRules: [{ verbs: ['get', 'create', 'update'], ...leases }] },
  ),
  schema('system-node-high', 'node-high', 400, 'ByUser', [group('system:nodes')], {
    resourceRules: [
      { verbs: ['*'], apiGroups: [''], resources: ['nodes', 'nodes/status'], clusterScope: true, namespaces: ['*'] },
      { verbs: ['*'], ...leases },
    ],
  }),
  schema('system-nodes', 'system', 500, 'ByUser', [group('system:nodes')]),
  schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', [user('system:kube-controller-manager')]),
  schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', [user('system:kube-scheduler')]),
  schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', [kubeSystem]),
  schema('service-accounts', 'workload-low', 9000, 'ByUser', [group('system:serviceaccounts')]),
  schema('global-default', 'global-default', 9900, 'ByUser', everybody),
]
