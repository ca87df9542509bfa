/** Default roles and bindings of RBAC. Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy, v1.36. */
import { rbacGroup, type RoleRef, type Subject } from '@capstan/kube'
import { controllerRoles } from './controller-roles.ts'
import { all, type BootstrapRole, on, paths, read, readWrite, write } from './role-rules.ts'

export interface BootstrapBinding {
  readonly name: string
  readonly namespace?: string
  readonly roleRef: RoleRef
  readonly subjects: readonly Subject[]
}

const generalRoles: readonly BootstrapRole[] = [
  { name: 'admin', aggregates: 'rbac.authorization.k8s.io/aggregate-to-admin', rules: [] },
  { name: 'cluster-admin', rules: [on(all, '*', '*'), paths(all, '*')] },
  {
    name: 'edit',
    labels: { 'rbac.authorization.k8s.io/aggregate-to-admin': 'true' },
    aggregates: 'rbac.authorization.k8s.io/aggregate-to-edit',
    rules: [],
  },
  {
    name: 'system:aggregate-to-admin',
    labels: { 'rbac.authorization.k8s.io/aggregate-to-admin': 'true' },
    rules: [
      on('create', 'authorization.k8s.io', 'localsubjectaccessreviews'),
      on(readWrite, 'rbac.authorization.k8s.io', 'rolebindings roles'),
    ],
  },
  {
    name: 'system:aggregate-to-edit',
    labels: { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' },
    rules: [
      on(read, 'core', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'),
      on('impersonate', 'core', 'serviceaccounts'),
      on(write, 'core', 'pods pods/attach pods/exec pods/portforward pods/proxy'),
      on('create', 'core', 'pods/eviction'),
      on(
        write,
        'core',
        'configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy',
      ),
      on('create', 'core', 'serviceaccounts/token'),
      on(write, 'core events.k8s.io', 'events'),
      on(
        write,
        'apps',
        'daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale',
      ),
      on(write, 'autoscaling', 'horizontalpodautoscalers'),
      on(write, 'batch', 'cronjobs jobs'),
      on(
        write,
        'extensions',
        'daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale',
      ),
      on(write, 'policy', 'poddisruptionbudgets'),
      on(write, 'networking.k8s.io', 'ingresses networkpolicies'),
      on(readWrite, 'coordination.k8s.io', 'leases'),
      on(write, 'resource.k8s.io', 'resourceclaims resourceclaimtemplates'),
    ],
  },
  {
    name: 'system:aggregate-to-view',
    labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' },
    rules: [
      on(
        read,
        'core',
        'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status',
      ),
      on(
        read,
        'core',
        'bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status',
      ),
      on(read, 'core', 'namespaces'),
      on(read, 'core events.k8s.io', 'events'),
      on(read, 'discovery.k8s.io', 'endpointslices'),
      on(
        read,
        'apps',
        'controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status',
      ),
      on(read, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'),
      on(read, 'batch', 'cronjobs cronjobs/status jobs jobs/status'),
      on(
        read,
        'extensions',
        'daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale',
      ),
      on(read, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'),
      on(read, 'networking.k8s.io', 'ingresses ingresses/status networkpolicies'),
      on(read, 'resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates'),
    ],
  },
  {
    name: 'system:auth-delegator',
    rules: [on('create', 'authentication.k8s.io', 'tokenreviews'), on('create', 'authorization.k8s.io', 'subjectaccessreviews')],
  },
  {
    name: 'system:basic-user',
    rules: [
      on('create', 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'),
      on('create', 'authentication.k8s.io', 'selfsubjectreviews'),
    ],
  },
  {
    name: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    rules: [on('create', 'certificates.k8s.io', 'certificatesigningrequests/nodeclient')],
  },
  {
    name: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    rules: [on('create', 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient')],
  },
  {
    name: 'system:certificates.k8s.io:kube-apiserver-client-approver',
    rules: [on('approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/kube-apiserver-client')],
  },
  {
    name: 'system:certificates.k8s.io:kube-apiserver-client-kubelet-approver',
    rules: [on('approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/kube-apiserver-client-kubelet')],
  },
  {
    name: 'system:certificates.k8s.io:kubelet-serving-approver',
    rules: [on('approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/kubelet-serving')],
  },
  {
    name: 'system:certificates.k8s.io:legacy-unknown-approver',
    rules: [on('approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/legacy-unknown')],
  },
  {
    name: 'system:discovery',
    rules: [paths('get', '/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/')],
  },
  { name: 'system:heapster', rules: [on(read, 'core', 'events namespaces nodes pods'), on(read, 'extensions', 'deployments')] },
  { name: 'system:kube-aggregator', rules: [on(read, 'core', 'endpoints services')] },
  {
    name: 'system:kube-controller-manager',
    rules: [
      on('create patch update', 'core events.k8s.io', 'events'),
      on('create', 'coordination.k8s.io', 'leases'),
      on('get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'),
      on('create', 'core', 'secrets serviceaccounts'),
      on('delete', 'core', 'secrets'),
      on('get', 'core', 'configmaps namespaces secrets serviceaccounts'),
      on('update', 'core', 'secrets serviceaccounts'),
      on('create', 'authentication.k8s.io', 'tokenreviews'),
      on('create', 'authorization.k8s.io', 'subjectaccessreviews'),
      on('list watch', '*', '*'),
      on('create', 'core', 'serviceaccounts/token'),
    ],
  },
  { name: 'system:kube-dns', rules: [on('list watch', 'core', 'endpoints services')] },
  {
    name: 'system:kube-scheduler',
    rules: [
      on('create patch update', 'core events.k8s.io', 'events'),
      on('create', 'coordination.k8s.io', 'leases'),
      on('get list update watch', 'coordination.k8s.io', 'leases', 'kube-scheduler'),
      on(readWrite, 'coordination.k8s.io', 'leasecandidates'),
      on(read, 'core', 'nodes'),
      on('delete get list watch', 'core', 'pods'),
      on('create', 'core', 'bindings pods/binding'),
      on('patch update', 'core', 'pods/status'),
      on(read, 'core', 'replicationcontrollers services'),
      on(read, 'apps extensions', 'replicasets'),
      on(read, 'apps', 'statefulsets'),
      on(read, 'policy', 'poddisruptionbudgets'),
      on(read, 'core', 'persistentvolumeclaims persistentvolumes'),
      on('create', 'authentication.k8s.io', 'tokenreviews'),
      on('create', 'authorization.k8s.io', 'subjectaccessreviews'),
      on(read, 'storage.k8s.io', 'csinodes'),
      on(read, 'storage.k8s.io', 'volumeattachments'),
      on(read, 'core', 'namespaces'),
      on(read, 'storage.k8s.io', 'csidrivers'),
      on(read, 'storage.k8s.io', 'csistoragecapacities'),
      on(read, 'resource.k8s.io', 'deviceclasses'),
      on('get list patch update watch', 'resource.k8s.io', 'resourceclaims'),
      on('get list patch update watch', 'resource.k8s.io', 'resourceclaims/status'),
      on('update', 'core', 'pods/finalizers'),
      on(read, 'resource.k8s.io', 'resourceslices'),
      on('create delete', 'resource.k8s.io', 'resourceclaims'),
      on('patch update', 'resource.k8s.io', 'resourceclaims/binding'),
    ],
  },
  {
    name: 'system:kubelet-api-admin',
    rules: [
      on(read, 'core', 'nodes'),
      on('proxy', 'core', 'nodes'),
      on(all, 'core', 'nodes/log nodes/metrics nodes/proxy nodes/stats'),
      on(all, 'core', 'nodes/configz nodes/healthz nodes/pods'),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [
      paths('get', '/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz'),
      on('get', 'core', 'nodes/metrics'),
    ],
  },
  {
    name: 'system:node',
    rules: [
      on('create', 'authentication.k8s.io', 'tokenreviews'),
      on('create', 'authorization.k8s.io', 'localsubjectaccessreviews subjectaccessreviews'),
      on(read, 'core', 'services'),
      on('create get list watch', 'core', 'nodes'),
      on('patch update', 'core', 'nodes/status'),
      on('patch update', 'core', 'nodes'),
      on('create patch update', 'core events.k8s.io', 'events'),
      on(read, 'core', 'pods'),
      on('create delete', 'core', 'pods'),
      on('patch update', 'core', 'pods/status'),
      on('create', 'core', 'pods/eviction'),
      on(read, 'core', 'configmaps secrets'),
      on('get', 'core', 'persistentvolumeclaims persistentvolumes'),
      on('get', 'core', 'endpoints'),
      on('create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'),
      on('create delete get patch update', 'coordination.k8s.io', 'leases'),
      on('get', 'storage.k8s.io', 'volumeattachments'),
      on('create', 'core', 'serviceaccounts/token'),
      on('get patch update', 'core', 'persistentvolumeclaims/status'),
      on(read, 'storage.k8s.io', 'csidrivers'),
      on('create delete get patch update', 'storage.k8s.io', 'csinodes'),
      on(read, 'node.k8s.io', 'runtimeclasses'),
      on('get', 'resource.k8s.io', 'resourceclaims'),
      on('deletecollection', 'resource.k8s.io', 'resourceslices'),
      on('get', 'core', 'serviceaccounts'),
    ],
  },
  { name: 'system:node-bootstrapper', rules: [on('create get list watch', 'certificates.k8s.io', 'certificatesigningrequests')] },
  {
    name: 'system:node-problem-detector',
    rules: [
      on('get', 'core', 'nodes'),
      on('patch', 'core', 'nodes/status'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:node-proxier',
    rules: [
      on('list watch', 'core', 'endpoints services'),
      on(read, 'core', 'nodes'),
      on('create patch update', 'core events.k8s.io', 'events'),
      on('list watch', 'networking.k8s.io', 'servicecidrs'),
      on('list watch', 'discovery.k8s.io', 'endpointslices'),
    ],
  },
  {
    name: 'system:persistent-volume-provisioner',
    rules: [
      on('create delete get list watch', 'core', 'persistentvolumes'),
      on('get list update watch', 'core', 'persistentvolumeclaims'),
      on(read, 'storage.k8s.io', 'storageclasses'),
      on('watch', 'core', 'events'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  { name: 'system:public-info-viewer', rules: [paths('get', '/healthz /livez /readyz /version /version/')] },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths('get', '/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/'),
    ],
  },
  {
    name: 'system:volume-scheduler',
    rules: [
      on('get list patch update watch', 'core', 'persistentvolumes'),
      on(read, 'storage.k8s.io', 'storageclasses'),
      on('get list patch update watch', 'core', 'persistentvolumeclaims'),
    ],
  },
  {
    name: 'view',
    labels: { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' },
    aggregates: 'rbac.authorization.k8s.io/aggregate-to-view',
    rules: [],
  },
  {
    name: 'extension-apiserver-authentication-reader',
    namespace: 'kube-system',
    rules: [on(read, 'core', 'configmaps', 'extension-apiserver-authentication')],
  },
  {
    name: 'system::leader-locking-kube-controller-manager',
    namespace: 'kube-system',
    rules: [
      on('create get list update watch', 'coordination.k8s.io', 'leases'),
      on('create get list update watch', 'coordination.k8s.io', 'leasecandidates'),
    ],
  },
  {
    name: 'system::leader-locking-kube-scheduler',
    namespace: 'kube-system',
    rules: [
      on('create get list update watch', 'coordination.k8s.io', 'leases'),
      on('create get list update watch', 'coordination.k8s.io', 'leasecandidates'),
    ],
  },
]

const user = (name: string): Subject => ({ kind: 'User', apiGroup: rbacGroup, name })
const group = (name: string): Subject => ({ kind: 'Group', apiGroup: rbacGroup, name })
const account = (name: string): Subject => ({ kind: 'ServiceAccount', name, namespace: 'kube-system' })
const clusterRole = (name: string): RoleRef => ({ apiGroup: rbacGroup, kind: 'ClusterRole', name })
const role = (name: string): RoleRef => ({ apiGroup: rbacGroup, kind: 'Role', name })

const generalBindings: readonly BootstrapBinding[] = [
  { name: 'cluster-admin', roleRef: clusterRole('cluster-admin'), subjects: [group('system:masters')] },
  { name: 'system:basic-user', roleRef: clusterRole('system:basic-user'), subjects: [group('system:authenticated')] },
  { name: 'system:discovery', roleRef: clusterRole('system:discovery'), subjects: [group('system:authenticated')] },
  {
    name: 'system:kube-controller-manager',
    roleRef: clusterRole('system:kube-controller-manager'),
    subjects: [user('system:kube-controller-manager')],
  },
  { name: 'system:kube-dns', roleRef: clusterRole('system:kube-dns'), subjects: [account('kube-dns')] },
  { name: 'system:kube-scheduler', roleRef: clusterRole('system:kube-scheduler'), subjects: [user('system:kube-scheduler')] },
  { name: 'system:monitoring', roleRef: clusterRole('system:monitoring'), subjects: [group('system:monitoring')] },
  { name: 'system:node', roleRef: clusterRole('system:node'), subjects: [] },
  { name: 'system:node-proxier', roleRef: clusterRole('system:node-proxier'), subjects: [user('system:kube-proxy')] },
  {
    name: 'system:public-info-viewer',
    roleRef: clusterRole('system:public-info-viewer'),
    subjects: [group('system:authenticated'), group('system:unauthenticated')],
  },
  {
    name: 'system:service-account-issuer-discovery',
    roleRef: clusterRole('system:service-account-issuer-discovery'),
    subjects: [group('system:serviceaccounts')],
  },
  { name: 'system:volume-scheduler', roleRef: clusterRole('system:volume-scheduler'), subjects: [user('system:kube-scheduler')] },
  {
    name: 'system::extension-apiserver-authentication-reader',
    namespace: 'kube-system',
    roleRef: role('extension-apiserver-authentication-reader'),
    subjects: [user('system:kube-controller-manager'), user('system:kube-scheduler')],
  },
  {
    name: 'system::leader-locking-kube-controller-manager',
    namespace: 'kube-system',
    roleRef: role('system::leader-locking-kube-controller-manager'),
    subjects: [user('system:kube-controller-manager'), account('kube-controller-manager'), account('leader-election-controller')],
  },
  {
    name: 'system::leader-locking-kube-scheduler',
    namespace: 'kube-system',
    roleRef: role('system::leader-locking-kube-scheduler'),
    subjects: [user('system:kube-scheduler'), account('kube-scheduler')],
  },
]

export const bootstrapRoles: readonly BootstrapRole[] = [...generalRoles, ...controllerRoles]

export const bootstrapBindings: readonly BootstrapBinding[] = [
  ...generalBindings,
  ...controllerRoles.map(
    ({ name, namespace }): BootstrapBinding => ({
      name,
      ...(namespace === undefined ? {} : { namespace }),
      roleRef: namespace === undefined ? clusterRole(name) : role(name),
      subjects: [account(name.slice('system:controller:'.length))],
    }),
  ),
]
