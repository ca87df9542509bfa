/**
 * Access of a pod to the API server of its own cluster, from the environment and files that the kubelet provides.
 * Upstream: k8s.io/client-go/rest, InClusterConfig.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterAccess } from './kubeconfig.ts'

/** Folder in which the kubelet mounts token, CA certificate and namespace of the pod's service account. */
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

type Env = Readonly<Record<string, string | undefined>>

/** Reports whether this process runs in a pod. Reads the variables that the kubelet sets in every container. */
export const isInCluster = (env: Env): boolean => !!env.KUBERNETES_SERVICE_HOST && !!env.KUBERNETES_SERVICE_PORT

/**
 * Returns the access of the pod's service account. The access contains the path of the token file instead of the token, because the kubelet
 * rotates the token.
 *
 * @throws Error naming the required variables if one is missing; or the file of the token or CA certificate if it cannot be read, or the
 *   token is empty
 */
export async function inClusterAccess(env: Env, folder = serviceAccountFolder): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  // The text is upstream's.
  if (!host || !port)
    throw new Error(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    )
  const read = async (name: string): Promise<string> => {
    try {
      return await readFile(join(folder, name), 'utf8')
    } catch (err) {
      const { code, message } = err as NodeJS.ErrnoException
      const problem = code === 'ENOENT' ? 'there is no such file' : message
      throw new Error(`unable to load in-cluster configuration: ${join(folder, name)}: ${problem}`, { cause: err })
    }
  }
  if ((await read('token')).trim() === '')
    throw new Error(`unable to load in-cluster configuration: ${join(folder, 'token')} is empty`)
  const ca = await read('ca.crt')
  // The file may be absent if the volume is not the one that Kubernetes adds to a pod.
  const namespace = await read('namespace').then(
    (text) => text.trim(),
    () => '',
  )
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca,
    tokenFile: join(folder, 'token'),
    ...(namespace === '' ? {} : { namespace }),
  }
}
