/** Creates some of the objects that kubeadm creates in the API server of a new control plane, and updates the version in one of them. */
import type { Client, Input } from '@capstan/kube'
import { ConfigMap, isReason, orAbsent } from '@capstan/kube'

/** Key of the ConfigMap that `ensureKubeadmObjects` creates last. A control plane is reported as initialized only after this ConfigMap exists. */
export const KubeadmConfigKey = { namespace: 'kube-system', name: 'kubeadm-config' } as const

/** Creates missing objects. May be called repeatedly, and for several machines concurrently. */
export async function ensureKubeadmObjects(
  client: Client,
  clusterName: string,
  kubernetesVersion: string | undefined,
): Promise<void> {
  for (const configMap of kubeadmObjects(clusterName, kubernetesVersion)) {
    try {
      await client.create(ConfigMap, configMap)
    } catch (err) {
      if (!isReason(err, 'AlreadyExists')) throw err
    }
  }
}

/**
 * Writes the target version of the control plane to kubeadm-config if it differs. A control plane with Machines calls this before it
 * updates them, as in upstream.
 */
export async function recordVersion(client: Client, kubernetesVersion: string): Promise<void> {
  const configMap = await orAbsent(client.get(ConfigMap, KubeadmConfigKey))
  const configuration = configMap?.data?.ClusterConfiguration
  const newConfiguration = configuration?.replace(/^kubernetesVersion: .*$/m, `kubernetesVersion: ${kubernetesVersion}`)
  if (newConfiguration === undefined || newConfiguration === configuration) return
  await client.patch(ConfigMap, KubeadmConfigKey, { type: 'merge', body: { data: { ClusterConfiguration: newConfiguration } } })
}

// kubeadm-config is created last: when it exists, the other objects have been created.
const kubeadmObjects = (clusterName: string, kubernetesVersion = ''): readonly Input<ConfigMap>[] => [
  { metadata: { namespace: 'kube-system', name: 'coredns' }, data: { Corefile: '.:53 {\n    errors\n    ready\n}\n' } },
  {
    metadata: { namespace: 'kube-system', name: 'kube-proxy' },
    data: { 'config.conf': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n' },
  },
  {
    metadata: KubeadmConfigKey,
    data: {
      ClusterConfiguration: `apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: ${clusterName}\nkind: ClusterConfiguration\nkubernetesVersion: ${kubernetesVersion}\n`,
    },
  },
]
