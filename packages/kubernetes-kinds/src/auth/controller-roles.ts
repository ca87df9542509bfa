/**
 * Roles of Kubernetes' controllers, each bound to its service account in kube-system. Few of these controllers run here, but others may
 * connect with their tokens. Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, v1.36.
 */
import { type BootstrapRole, on, read } from './role-rules.ts'

export const controllerRoles: readonly BootstrapRole[] = [
  {
    name: 'system:controller:attachdetach-controller',
    rules: [
      on('list watch', 'core', 'persistentvolumeclaims persistentvolumes'),
      on(read, 'core', 'nodes'),
      on('patch update', 'core', 'nodes/status'),
      on('list watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
      on('create delete get list watch', 'storage.k8s.io', 'volumeattachments'),
      on(read, 'storage.k8s.io', 'csidrivers'),
      on(read, 'storage.k8s.io', 'csinodes'),
    ],
  },
  {
    name: 'system:controller:certificate-controller',
    rules: [
      on('delete get list watch', 'certificates.k8s.io', 'certificatesigningrequests'),
      on('update', 'certificates.k8s.io', 'certificatesigningrequests/approval certificatesigningrequests/status'),
      on('approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/kube-apiserver-client-kubelet'),
      on(
        'sign',
        'certificates.k8s.io',
        'signers',
        'kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown',
      ),
      on('create', 'authorization.k8s.io', 'subjectaccessreviews'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:clusterrole-aggregation-controller',
    rules: [on('escalate get list patch update watch', 'rbac.authorization.k8s.io', 'clusterroles')],
  },
  {
    name: 'system:controller:cronjob-controller',
    rules: [
      on('get list update watch', 'batch', 'cronjobs'),
      on('create delete get list patch update watch', 'batch', 'jobs'),
      on('update', 'batch', 'cronjobs/status'),
      on('update', 'batch', 'cronjobs/finalizers'),
      on('delete list watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:daemon-set-controller',
    rules: [
      on(read, 'apps extensions', 'daemonsets'),
      on('update', 'apps extensions', 'daemonsets/status'),
      on('update', 'apps extensions', 'daemonsets/finalizers'),
      on('list watch', 'core', 'nodes'),
      on('create delete list patch watch', 'core', 'pods'),
      on('create', 'core', 'pods/binding'),
      on('create delete get list patch update watch', 'apps', 'controllerrevisions'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:deployment-controller',
    rules: [
      on('get list update watch', 'apps extensions', 'deployments'),
      on('update', 'apps extensions', 'deployments/status'),
      on('update', 'apps extensions', 'deployments/finalizers'),
      on('create delete get list patch update watch', 'apps extensions', 'replicasets'),
      on('get list update watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:device-taint-eviction-controller',
    rules: [
      on('delete get list watch', 'core', 'pods'),
      on('patch update', 'core', 'pods/status'),
      on(read, 'resource.k8s.io', 'resourceclaims'),
      on(read, 'resource.k8s.io', 'resourceslices'),
      on(read, 'resource.k8s.io', 'deviceclasses'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:disruption-controller',
    rules: [
      on(read, 'apps extensions', 'deployments'),
      on(read, 'apps extensions', 'replicasets'),
      on(read, 'core', 'replicationcontrollers'),
      on(read, 'policy', 'poddisruptionbudgets'),
      on(read, 'apps', 'statefulsets'),
      on('update', 'policy', 'poddisruptionbudgets/status'),
      on('patch update', 'core', 'pods/status'),
      on('get', '*', '*/scale'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:endpoint-controller',
    rules: [
      on(read, 'core', 'pods services'),
      on('create delete get list update watch', 'core', 'endpoints'),
      on('create', 'core', 'endpoints/restricted'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:endpointslice-controller',
    rules: [
      on(read, 'core', 'nodes pods services'),
      on('update', 'core', 'services/finalizers'),
      on('create delete get list update watch', 'discovery.k8s.io', 'endpointslices'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:endpointslicemirroring-controller',
    rules: [
      on(read, 'core', 'endpoints services'),
      on('update', 'core', 'services/finalizers'),
      on('update', 'core', 'endpoints/finalizers'),
      on('create delete get list update watch', 'discovery.k8s.io', 'endpointslices'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:ephemeral-volume-controller',
    rules: [
      on(read, 'core', 'pods'),
      on('update', 'core', 'pods/finalizers'),
      on('create get list watch', 'core', 'persistentvolumeclaims'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:expand-controller',
    rules: [
      on('get list patch update watch', 'core', 'persistentvolumes'),
      on('patch update', 'core', 'persistentvolumeclaims/status'),
      on(read, 'core', 'persistentvolumeclaims'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:generic-garbage-collector',
    rules: [on('delete get list patch update watch', '*', '*'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:horizontal-pod-autoscaler',
    rules: [
      on(read, 'autoscaling', 'horizontalpodautoscalers'),
      on('update', 'autoscaling', 'horizontalpodautoscalers/status'),
      on('get update', '*', '*/scale'),
      on('list watch', 'core', 'pods'),
      on('list watch', 'metrics.k8s.io', 'pods'),
      on(read, 'custom.metrics.k8s.io', '*'),
      on(read, 'external.metrics.k8s.io', '*'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:job-controller',
    rules: [
      on('get list patch update watch', 'batch', 'jobs'),
      on('update', 'batch', 'jobs/status'),
      on('update', 'batch', 'jobs/finalizers'),
      on('create delete list patch watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:legacy-service-account-token-cleaner',
    rules: [
      on('get', 'core', 'configmaps', 'kube-apiserver-legacy-service-account-token-tracking'),
      on('delete patch', 'core', 'secrets'),
    ],
  },
  {
    name: 'system:controller:namespace-controller',
    rules: [
      on('delete get list watch', 'core', 'namespaces'),
      on('update', 'core', 'namespaces/finalize namespaces/status'),
      on('delete deletecollection get list watch', '*', '*'),
    ],
  },
  {
    name: 'system:controller:node-controller',
    rules: [
      on('delete get list patch update watch', 'core', 'nodes'),
      on('patch update', 'core', 'nodes/status'),
      on('patch update', 'core', 'pods/status'),
      on('delete get list watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:persistent-volume-binder',
    rules: [
      on('create delete get list update watch', 'core', 'persistentvolumes'),
      on('update', 'core', 'persistentvolumes/status'),
      on('get list update watch', 'core', 'persistentvolumeclaims'),
      on('update', 'core', 'persistentvolumeclaims/status'),
      on('create delete get list watch', 'core', 'pods'),
      on(read, 'storage.k8s.io', 'storageclasses'),
      on('list watch', 'core', 'nodes'),
      on('create patch update', 'core events.k8s.io', 'events'),
      on('watch', 'core', 'events'),
    ],
  },
  {
    name: 'system:controller:pod-garbage-collector',
    rules: [on('delete list watch', 'core', 'pods'), on(read, 'core', 'nodes'), on('patch', 'core', 'pods/status')],
  },
  {
    name: 'system:controller:pv-protection-controller',
    rules: [on('get list update watch', 'core', 'persistentvolumes'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:pvc-protection-controller',
    rules: [
      on('get list update watch', 'core', 'persistentvolumeclaims'),
      on('update', 'core', 'persistentvolumeclaims/status'),
      on(read, 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:replicaset-controller',
    rules: [
      on('get list update watch', 'apps extensions', 'replicasets'),
      on('update', 'apps extensions', 'replicasets/status'),
      on('update', 'apps extensions', 'replicasets/finalizers'),
      on('create delete list patch watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:replication-controller',
    rules: [
      on('get list update watch', 'core', 'replicationcontrollers'),
      on('update', 'core', 'replicationcontrollers/status'),
      on('update', 'core', 'replicationcontrollers/finalizers'),
      on('create delete list patch watch', 'core', 'pods'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:resource-claim-controller',
    rules: [
      on(read, 'core', 'pods'),
      on('update', 'core', 'pods/finalizers'),
      on('create delete get list watch', 'resource.k8s.io', 'resourceclaims'),
      on('patch update', 'resource.k8s.io', 'resourceclaims resourceclaims/status'),
      on('patch update', 'core', 'pods/status'),
      on('create patch update', 'core events.k8s.io', 'events'),
      on('patch update', 'resource.k8s.io', 'resourceclaims/binding'),
    ],
  },
  {
    name: 'system:controller:resourcequota-controller',
    rules: [
      on('list watch', '*', '*'),
      on('update', 'core', 'resourcequotas/status'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:root-ca-cert-publisher',
    rules: [on('create update', 'core', 'configmaps'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:route-controller',
    rules: [
      on('list watch', 'core', 'nodes'),
      on('patch', 'core', 'nodes/status'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:selinux-warning-controller',
    rules: [
      on('create patch update', 'core events.k8s.io', 'events'),
      on(read, 'core', 'persistentvolumes'),
      on(read, 'core', 'persistentvolumeclaims'),
      on(read, 'core', 'pods'),
      on(read, 'storage.k8s.io', 'csidrivers'),
    ],
  },
  {
    name: 'system:controller:service-account-controller',
    rules: [on('create', 'core', 'serviceaccounts'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:service-cidrs-controller',
    rules: [
      on('get list patch update watch', 'networking.k8s.io', 'servicecidrs'),
      on('patch update', 'networking.k8s.io', 'servicecidrs/finalizers'),
      on('patch update', 'networking.k8s.io', 'servicecidrs/status'),
      on(read, 'networking.k8s.io', 'ipaddresses'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:service-controller',
    rules: [
      on(read, 'core', 'services'),
      on('patch update', 'core', 'services/status'),
      on('list watch', 'core', 'nodes'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:statefulset-controller',
    rules: [
      on('list watch', 'core', 'pods'),
      on(read, 'apps', 'statefulsets'),
      on('update', 'apps', 'statefulsets/status'),
      on('update', 'apps', 'statefulsets/finalizers'),
      on('create delete get patch update', 'core', 'pods'),
      on('create delete get list patch update watch', 'apps', 'controllerrevisions'),
      on('create get list watch', 'core', 'persistentvolumeclaims'),
      on('delete update', 'core', 'persistentvolumeclaims'),
      on('update', 'core', 'pods/finalizers'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:ttl-after-finished-controller',
    rules: [on('delete get list watch', 'batch', 'jobs'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:ttl-controller',
    rules: [on('list patch update watch', 'core', 'nodes'), on('create patch update', 'core events.k8s.io', 'events')],
  },
  {
    name: 'system:controller:validatingadmissionpolicy-status-controller',
    rules: [
      on(read, 'admissionregistration.k8s.io', 'validatingadmissionpolicies'),
      on('get patch update', 'admissionregistration.k8s.io', 'validatingadmissionpolicies/status'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:volumeattributesclass-protection-controller',
    rules: [
      on(read, 'core', 'persistentvolumeclaims'),
      on(read, 'core', 'persistentvolumes'),
      on('get list update watch', 'storage.k8s.io', 'volumeattributesclasses'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  {
    name: 'system:controller:bootstrap-signer',
    namespace: 'kube-public',
    rules: [
      on(read, 'core', 'configmaps'),
      on('update', 'core', 'configmaps', 'cluster-info'),
      on('create patch update', 'core events.k8s.io', 'events'),
    ],
  },
  { name: 'system:controller:bootstrap-signer', namespace: 'kube-system', rules: [on(read, 'core', 'secrets')] },
  {
    name: 'system:controller:cloud-provider',
    namespace: 'kube-system',
    rules: [on('create get list watch', 'core', 'configmaps')],
  },
  {
    name: 'system:controller:token-cleaner',
    namespace: 'kube-system',
    rules: [on('delete get list watch', 'core', 'secrets'), on('create patch update', 'core events.k8s.io', 'events')],
  },
]
