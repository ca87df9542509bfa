/**
 * The roles and bindings that are there from the start when RBAC decides.
 * Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy, v1.36; roles of controllers that do not run here are left out.
 */
import { type PolicyRule, rbacGroup, type RoleRef, type Subject } from '@capstan/kube'

export interface BootstrapRole {
  readonly name: string
  /** Absent for a ClusterRole. */
  readonly namespace?: string
  readonly rules: readonly PolicyRule[]
  readonly labels?: { readonly [label: string]: string }
  /** The label whose bearers' rules it gathers. */
  readonly gathers?: string
}

export interface BootstrapBinding {
  readonly name: string
  readonly namespace?: string
  readonly roleRef: RoleRef
  readonly subjects: readonly Subject[]
}

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']
const readWrite = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** `verbs` on `resources` of `groups`, each a list in one text. */
const on = (groups: string, resources: string, verbs: readonly string[], names?: string): PolicyRule => ({
  apiGroups: groups.split(' ').map((group) => (group === 'core' ? '' : group)),
  resources: resources.split(' '),
  verbs: [...verbs],
  ...(names === undefined ? {} : { resourceNames: names.split(' ') }),
})
const paths = (...nonResourceURLs: string[]): PolicyRule => ({ nonResourceURLs, verbs: ['get'] })
const createReviews = [
  on('authentication.k8s.io', 'tokenreviews', ['create']),
  on('authorization.k8s.io', 'subjectaccessreviews', ['create']),
]
const writeEvents = on('core events.k8s.io', 'events', ['create', 'patch', 'update'])

const aggregate = (to: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${to}`]: 'true' })
const approver = (signer: string): BootstrapRole => ({
  name: `system:certificates.k8s.io:${signer}-approver`,
  rules: [on('certificates.k8s.io', 'signers', ['approve'], `kubernetes.io/${signer}`)],
})
const leaderLock = (component: string): BootstrapRole => ({
  name: `system::leader-locking-${component}`,
  namespace: 'kube-system',
  rules: ['leases', 'leasecandidates'].map((resource) =>
    on('coordination.k8s.io', resource, ['create', 'get', 'list', 'update', 'watch']),
  ),
})

export const bootstrapRoles: readonly BootstrapRole[] = [
  { name: 'cluster-admin', rules: [on('*', '*', ['*']), { nonResourceURLs: ['*'], verbs: ['*'] }] },
  {
    name: 'system:discovery',
    rules: [
      paths(
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [paths('/healthz', '/healthz/*', '/livez', '/livez/*', '/metrics', '/metrics/slis', '/readyz', '/readyz/*')],
  },
  {
    name: 'system:basic-user',
    rules: [
      on('authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews', ['create']),
      on('authentication.k8s.io', 'selfsubjectreviews', ['create']),
    ],
  },
  { name: 'system:public-info-viewer', rules: [paths('/healthz', '/livez', '/readyz', '/version', '/version/')] },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [paths('/.well-known/openid-configuration', '/openid/v1/jwks')],
  },
  { name: 'system:auth-delegator', rules: createReviews },

  { name: 'admin', rules: [], gathers: 'rbac.authorization.k8s.io/aggregate-to-admin' },
  { name: 'edit', rules: [], gathers: 'rbac.authorization.k8s.io/aggregate-to-edit', labels: aggregate('admin') },
  { name: 'view', rules: [], gathers: 'rbac.authorization.k8s.io/aggregate-to-view', labels: aggregate('edit') },
  {
    name: 'system:aggregate-to-admin',
    labels: aggregate('admin'),
    rules: [
      on('authorization.k8s.io', 'localsubjectaccessreviews', ['create']),
      on('rbac.authorization.k8s.io', 'rolebindings roles', readWrite),
    ],
  },
  {
    name: 'system:aggregate-to-edit',
    labels: aggregate('edit'),
    rules: [
      on('core', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy', read),
      on('core', 'serviceaccounts', ['impersonate']),
      on('core', 'pods pods/attach pods/exec pods/portforward pods/proxy', write),
      on('core', 'pods/eviction', ['create']),
      on(
        'core',
        'configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy',
        write,
      ),
      on('core', 'serviceaccounts/token', ['create']),
      on(
        'apps',
        'daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale',
        write,
      ),
      on('autoscaling', 'horizontalpodautoscalers', write),
      on('batch', 'cronjobs jobs', write),
      on(
        'extensions',
        'daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale',
        write,
      ),
      on('policy', 'poddisruptionbudgets', write),
      on('networking.k8s.io', 'ingresses networkpolicies', write),
      on('coordination.k8s.io', 'leases', readWrite),
    ],
  },
  {
    name: 'system:aggregate-to-view',
    labels: aggregate('view'),
    rules: [
      on(
        'core',
        'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status',
        read,
      ),
      on(
        'core',
        'bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status',
        read,
      ),
      on('core', 'namespaces', read),
      on('discovery.k8s.io', 'endpointslices', read),
      on(
        'apps',
        'controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status',
        read,
      ),
      on('autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status', read),
      on('batch', 'cronjobs cronjobs/status jobs jobs/status', read),
      on(
        'extensions',
        'daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale',
        read,
      ),
      on('policy', 'poddisruptionbudgets poddisruptionbudgets/status', read),
      on('networking.k8s.io', 'ingresses ingresses/status networkpolicies', read),
    ],
  },

  {
    name: 'system:kube-controller-manager',
    rules: [
      writeEvents,
      on('coordination.k8s.io', 'leases', ['create']),
      on('coordination.k8s.io', 'leases', ['get', 'update'], 'kube-controller-manager'),
      on('core', 'secrets serviceaccounts', ['create']),
      on('core', 'secrets', ['delete']),
      on('core', 'configmaps namespaces secrets serviceaccounts', ['get']),
      on('core', 'secrets serviceaccounts', ['update']),
      ...createReviews,
      on('*', '*', ['list', 'watch']),
      on('core', 'serviceaccounts/token', ['create']),
    ],
  },
  {
    name: 'system:kube-scheduler',
    rules: [
      writeEvents,
      on('coordination.k8s.io', 'leases', ['create']),
      on('coordination.k8s.io', 'leases', ['get', 'update'], 'kube-scheduler'),
      on('core', 'nodes', read),
      on('core', 'pods', ['delete', ...read]),
      on('core', 'bindings pods/binding', ['create']),
      on('core', 'pods/status', ['patch', 'update']),
      on('core', 'replicationcontrollers services', read),
      on('apps extensions', 'replicasets', read),
      on('apps', 'statefulsets', read),
      on('policy', 'poddisruptionbudgets', read),
      on('core', 'persistentvolumeclaims persistentvolumes', read),
      ...createReviews,
      on('storage.k8s.io', 'csinodes', read),
      on('core', 'namespaces', read),
      on('storage.k8s.io', 'csidrivers', read),
      on('storage.k8s.io', 'csistoragecapacities', read),
    ],
  },
  {
    name: 'system:volume-scheduler',
    rules: [
      on('core', 'persistentvolumes', ['get', 'list', 'patch', 'update', 'watch']),
      on('storage.k8s.io', 'storageclasses', read),
      on('core', 'persistentvolumeclaims', ['get', 'list', 'patch', 'update', 'watch']),
    ],
  },
  {
    name: 'system:node-proxier',
    rules: [
      on('core', 'endpoints services', ['list', 'watch']),
      on('core', 'nodes', read),
      writeEvents,
      on('discovery.k8s.io', 'endpointslices', ['list', 'watch']),
    ],
  },
  {
    name: 'system:node-bootstrapper',
    rules: [on('certificates.k8s.io', 'certificatesigningrequests', ['create', ...read])],
  },
  ...['nodeclient', 'selfnodeclient'].map((kind) => ({
    name: `system:certificates.k8s.io:certificatesigningrequests:${kind}`,
    rules: [on('certificates.k8s.io', `certificatesigningrequests/${kind}`, ['create'])],
  })),
  approver('kube-apiserver-client'),
  approver('kube-apiserver-client-kubelet'),
  approver('kubelet-serving'),
  approver('legacy-unknown'),

  {
    name: 'extension-apiserver-authentication-reader',
    namespace: 'kube-system',
    rules: [on('core', 'configmaps', read, 'extension-apiserver-authentication')],
  },
  leaderLock('kube-controller-manager'),
  leaderLock('kube-scheduler'),
]

const subject = (kind: 'User' | 'Group', name: string): Subject => ({ kind, apiGroup: rbacGroup, name })
const bound = (name: string, ...subjects: Subject[]): BootstrapBinding => ({
  name,
  roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
  subjects,
})
const inSystem = (role: string, name: string, ...users: string[]): BootstrapBinding => ({
  name,
  namespace: 'kube-system',
  roleRef: { apiGroup: rbacGroup, kind: 'Role', name: role },
  subjects: users.map((user) => subject('User', user)),
})

const known = subject('Group', 'system:authenticated')

export const bootstrapBindings: readonly BootstrapBinding[] = [
  bound('cluster-admin', subject('Group', 'system:masters')),
  bound('system:monitoring', subject('Group', 'system:monitoring')),
  bound('system:discovery', known),
  bound('system:basic-user', known),
  bound('system:public-info-viewer', known, subject('Group', 'system:unauthenticated')),
  bound('system:service-account-issuer-discovery', subject('Group', 'system:serviceaccounts')),
  bound('system:node-proxier', subject('User', 'system:kube-proxy')),
  bound('system:kube-controller-manager', subject('User', 'system:kube-controller-manager')),
  bound('system:kube-scheduler', subject('User', 'system:kube-scheduler')),
  bound('system:volume-scheduler', subject('User', 'system:kube-scheduler')),
  inSystem(
    'extension-apiserver-authentication-reader',
    'system::extension-apiserver-authentication-reader',
    'system:kube-controller-manager',
    'system:kube-scheduler',
  ),
  inSystem(
    'system::leader-locking-kube-controller-manager',
    'system::leader-locking-kube-controller-manager',
    'system:kube-controller-manager',
  ),
  inSystem('system::leader-locking-kube-scheduler', 'system::leader-locking-kube-scheduler', 'system:kube-scheduler'),
]
