/** Builds the manifests of a Capstan provider in the form that clusterctl and kubectl expect. Pure. */
import { customResourceDefinition, type DeclaredKind, type PolicyRule } from '@capstan/kube'
import { type ProviderName, providerKinds } from '@capstan/lab'
import { conversionByService, providerNames, webhookService } from './names.ts'
import { leaderElectionRules, localRulesForCore, managerRules } from './roles.ts'

export type ProviderToInstall = ProviderName
export type CertificateSource = 'cert-manager' | 'self-managed'

export interface ManifestOptions {
  readonly provider: ProviderToInstall
  readonly image: string
  /** Version with `v`, such as `v0.1.0`. */
  readonly version: string
  readonly certificates: CertificateSource
  readonly replicas: number
  /**
   * Number of shards: the namespaces are divided among this number of Leases, which the replicas share. Default: one Lease, whose
   * holder leads.
   */
  readonly shards?: number
}

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

/** Returns the objects of a provider except the ClusterRole of `coreRoleForLocal`, in an order in which they can be applied. */
export function components(options: ManifestOptions): Manifest[] {
  const { provider, certificates } = options
  const { namespace, prefix, label } = providerNames[provider]
  const objects: Manifest[] = [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: namespace,
        labels: {
          'control-plane': 'controller-manager',
          'pod-security.kubernetes.io/enforce': 'restricted',
          'pod-security.kubernetes.io/enforce-version': 'latest',
        },
      },
    },
    ...providerKinds[provider].map((kind) => definition(kind, options)),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: `${prefix}-manager`, namespace } },
    role(
      'Role',
      `${prefix}-leader-election-role`,
      leaderElectionRules(provider, certificates === 'cert-manager' ? undefined : webhookSecret(provider)),
      { namespace },
    ),
    binding('RoleBinding', `${prefix}-leader-election-rolebinding`, 'Role', `${prefix}-leader-election-role`, options),
    ...clusterRoles(options),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: webhookService(provider), namespace },
      spec: { ports: [{ port: 443, targetPort: 'webhook-server' }], selector: { 'cluster.x-k8s.io/provider': label } },
    },
    deployment(options),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: `${prefix}-controller-manager`, namespace },
      spec: { maxUnavailable: 1, selector: { matchLabels: { 'cluster.x-k8s.io/provider': label } } },
    },
    networkPolicy(options),
    ...(certificates === 'cert-manager' ? certManagerObjects(provider) : []),
  ]
  // All objects of a components file have the same provider label. In the declarations of the local provider's CRDs, the value of this
  // label depends on the API group, so it is replaced.
  return objects.map((object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...(object.metadata.labels as object | undefined), 'cluster.x-k8s.io/provider': label },
    },
  }))
}

/** Returns the `metadata.yaml` of a clusterctl repository. */
export function releaseMetadata(version: string): Manifest & { releaseSeries: unknown } {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version)!
  return {
    apiVersion: 'clusterctl.cluster.x-k8s.io/v1alpha3',
    kind: 'Metadata',
    metadata: { name: 'release-series' },
    releaseSeries: [{ major: Number(major), minor: Number(minor), contract: 'v1beta2' }],
  }
}

/**
 * Returns the CustomResourceDefinition with all versions and, if there are several, with the manager's conversion webhook. cert-manager or
 * the leading manager adds the certificate authority.
 */
function definition(kind: DeclaredKind, { provider, certificates }: ManifestOptions): Manifest {
  const { namespace } = providerNames[provider]
  const crd = customResourceDefinition(kind, conversionByService(provider)) as unknown as Manifest
  if (certificates !== 'cert-manager' || kind.versions.length === 0) return crd
  const annotations = { 'cert-manager.io/inject-ca-from': `${namespace}/${servingCertificate(provider)}` }
  return { ...crd, metadata: { ...crd.metadata, annotations } }
}

const servingCertificate = (provider: ProviderToInstall) => `${providerNames[provider].prefix}-serving-cert`
const webhookSecret = (provider: ProviderToInstall) => `${webhookService(provider)}-cert`

const rbac = 'rbac.authorization.k8s.io'
const role = (kind: 'Role' | 'ClusterRole', name: string, rules: readonly PolicyRule[], metadata: object = {}): Manifest => ({
  apiVersion: `${rbac}/v1`,
  kind,
  metadata: { name, ...metadata },
  rules,
})

function binding(
  kind: 'RoleBinding' | 'ClusterRoleBinding',
  name: string,
  roleKind: string,
  roleName: string,
  { provider }: ManifestOptions,
): Manifest {
  const { namespace, prefix } = providerNames[provider]
  return {
    apiVersion: `${rbac}/v1`,
    kind,
    metadata: { name, ...(kind === 'RoleBinding' ? { namespace } : {}) },
    roleRef: { apiGroup: rbac, kind: roleKind, name: roleName },
    subjects: [{ kind: 'ServiceAccount', name: `${prefix}-manager`, namespace }],
  }
}

/**
 * Aggregates roles as upstream does: the ServiceAccount gets the rules of every ClusterRole with the label, so that other providers can
 * give the core provider permissions for their own kinds.
 */
function clusterRoles(options: ManifestOptions): Manifest[] {
  const { provider } = options
  const { prefix } = providerNames[provider]
  const label = provider === 'core' ? 'cluster.x-k8s.io/aggregate-to-manager' : 'infrastructure.capstan.dev/aggregate-to-manager'
  const aggregated: Manifest = {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: `${prefix}-aggregated-manager-role` },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] },
    rules: [],
  }
  return [
    role('ClusterRole', `${prefix}-manager-role`, managerRules(provider), {
      labels: { [label]: 'true' },
    }),
    aggregated,
    binding('ClusterRoleBinding', `${prefix}-manager-rolebinding`, 'ClusterRole', `${prefix}-aggregated-manager-role`, options),
  ]
}

/** Returns the ClusterRole with core's permissions for the local provider's kinds. */
export function coreRoleForLocal(): Manifest {
  return role('ClusterRole', 'capstan-local-capi-manager-role', localRulesForCore(), {
    labels: { 'cluster.x-k8s.io/aggregate-to-manager': 'true', 'cluster.x-k8s.io/provider': providerNames.local.label },
  })
}

/**
 * Kubernetes expands this variable in arguments. `clusterctl --target-namespace` changes namespaces of objects, but not arguments.
 */
const ownNamespace = '$(POD_NAMESPACE)'

function deployment({ provider, image, certificates, replicas, shards }: ManifestOptions): Manifest {
  const { namespace, prefix, label } = providerNames[provider]
  const labels = { 'cluster.x-k8s.io/provider': label, 'control-plane': 'controller-manager' }
  const certificateFolder = '/tmp/k8s-webhook-server/serving-certs'
  const usesFiles = certificates === 'cert-manager'
  const probe = (path: string, fields: object) => ({ httpGet: { path, port: 'healthz' }, ...fields })
  const fromField = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: `${prefix}-controller-manager`, namespace, labels: { 'control-plane': 'controller-manager' } },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { 'kubectl.kubernetes.io/default-container': 'manager' } },
        spec: {
          serviceAccountName: `${prefix}-manager`,
          terminationGracePeriodSeconds: 30,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              name: 'manager',
              image,
              args: [
                'manager',
                `--providers=${provider}`,
                '--leader-elect',
                `--leader-elect-namespace=${ownNamespace}`,
                ...(shards === undefined ? [] : [`--leader-elect-shards=${shards}`]),
                '--diagnostics-address=:8443',
                '--health-addr=:9440',
                '--webhook-host=0.0.0.0',
                '--webhook-port=9443',
                `--webhook-service=${ownNamespace}/${webhookService(provider)}`,
                usesFiles
                  ? `--webhook-cert-dir=${certificateFolder}`
                  : `--webhook-cert-secret=${ownNamespace}/${webhookSecret(provider)}`,
                ...(provider === 'local' ? ['--workload-host=$(POD_IP)'] : []),
              ],
              env: [
                fromField('POD_NAMESPACE', 'metadata.namespace'),
                fromField('POD_NAME', 'metadata.name'),
                fromField('POD_UID', 'metadata.uid'),
                ...(provider === 'local' ? [fromField('POD_IP', 'status.podIP')] : []),
              ],
              ports: [
                { containerPort: 9440, name: 'healthz', protocol: 'TCP' },
                { containerPort: 8443, name: 'metrics', protocol: 'TCP' },
                { containerPort: 9443, name: 'webhook-server', protocol: 'TCP' },
              ],
              startupProbe: probe('/healthz', { periodSeconds: 2, failureThreshold: 60 }),
              readinessProbe: probe('/readyz', {}),
              livenessProbe: probe('/healthz', {}),
              resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                privileged: false,
                capabilities: { drop: ['ALL'] },
                runAsUser: 65532,
                runAsGroup: 65532,
              },
              terminationMessagePolicy: 'FallbackToLogsOnError',
              ...(usesFiles ? { volumeMounts: [{ name: 'cert', mountPath: certificateFolder, readOnly: true }] } : {}),
            },
          ],
          ...(usesFiles ? { volumes: [{ name: 'cert', secret: { secretName: webhookSecret(provider) } }] } : {}),
          tolerations: [{ effect: 'NoSchedule', key: 'node-role.kubernetes.io/control-plane' }],
        },
      },
    },
  }
}

/**
 * Allows ingress from any source to the ports of health, metrics and webhooks, because the addresses of API servers and monitoring are
 * unknown. For the local provider, allows ingress to all ports.
 */
function networkPolicy({ provider }: ManifestOptions): Manifest {
  const { namespace, prefix, label } = providerNames[provider]
  const ports = [9440, 8443, 9443].map((port) => ({ port, protocol: 'TCP' }))
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: `${prefix}-controller-manager`, namespace },
    spec: {
      podSelector: { matchLabels: { 'cluster.x-k8s.io/provider': label } },
      policyTypes: ['Ingress'],
      // The local provider also runs the API servers of workload clusters, on a port that is known only at run time.
      ingress: provider === 'local' ? [{}] : [{ ports }],
    },
  }
}

function certManagerObjects(provider: ProviderToInstall): Manifest[] {
  const { namespace, prefix } = providerNames[provider]
  const host = `${webhookService(provider)}.${namespace}.svc`
  return [
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Issuer',
      metadata: { name: `${prefix}-selfsigned-issuer`, namespace },
      spec: { selfSigned: {} },
    },
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata: { name: servingCertificate(provider), namespace },
      spec: {
        dnsNames: [host, `${host}.cluster.local`],
        issuerRef: { kind: 'Issuer', name: `${prefix}-selfsigned-issuer` },
        secretName: webhookSecret(provider),
      },
    },
  ]
}
