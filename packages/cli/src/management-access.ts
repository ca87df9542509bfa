/** Finds the management cluster in the order of upstream's managers: flag, $KUBECONFIG, the pod's own cluster, ~/.kube/config. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type ClusterAccess, inClusterAccess, isInCluster, kubeconfigPaths, loadKubeconfig } from '@capstan/kube/node'
import type { OwnPod } from '@capstan/lab'
import { type Command, Option } from 'commander'
import { UsageError } from './io.ts'

export interface AccessFlags {
  readonly kubeconfig?: string
  readonly context?: string
}

/** Adds the flags --kubeconfig and --context. */
export const withAccess = (command: Command): Command =>
  command
    .option(
      '--kubeconfig <file>',
      'kubeconfig of the management cluster (default: $KUBECONFIG, then the service account of the pod, then ~/.kube/config)',
    )
    .addOption(new Option('--context <name>', 'context of the kubeconfig (default: its current context)'))

type Env = Readonly<Record<string, string | undefined>>

export interface ManagementAccess {
  readonly access: ClusterAccess
  /** Whether the process runs in a pod and uses its service account. */
  readonly isInCluster: boolean
}

/**
 * Returns the credentials of the management cluster.
 *
 * @throws UsageError when no cluster is configured, or when --context is given and the pod's own cluster would be used; Error
 * when the kubeconfig or the service account cannot be read or used
 */
export async function managementAccess(
  { kubeconfig, context }: AccessFlags,
  env: Env,
  home = homedir(),
): Promise<ManagementAccess> {
  const options = context === undefined ? {} : { context }
  const fromFile = async (path: string | readonly string[]): Promise<ManagementAccess> => ({
    access: await loadKubeconfig(path, options),
    isInCluster: false,
  })
  if (kubeconfig !== undefined) return fromFile(kubeconfig)
  const files = kubeconfigPaths(env.KUBECONFIG)
  if (files.length > 0) return fromFile(files)
  if (isInCluster(env)) {
    if (context !== undefined) throw new UsageError('--context needs a kubeconfig: in a pod there is only its own cluster')
    return { access: await inClusterAccess(env), isInCluster: true }
  }
  const userFile = join(home, '.kube', 'config')
  if (existsSync(userFile)) return fromFile(userFile)
  throw new UsageError(
    'no management cluster is named',
    'Use --kubeconfig, set $KUBECONFIG, or create ~/.kube/config. In a Pod, its service account is used.',
  )
}

/**
 * Returns the Pod of this process, from environment variables that Capstan's manifests set; an empty object if a variable is missing or
 * empty.
 */
export function ownPodOf({ POD_NAMESPACE, POD_NAME, POD_UID }: Env, { server, ca }: ClusterAccess): { ownPod?: OwnPod } {
  if (!POD_NAMESPACE || !POD_NAME || !POD_UID) return {}
  return { ownPod: { namespace: POD_NAMESPACE, name: POD_NAME, uid: POD_UID, server, ...(ca === undefined ? {} : { ca }) } }
}
