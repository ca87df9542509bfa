/** Connects a command to its management cluster. */
import { existsSync } from 'node:fs'
import { type Client, createClient, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, kubeconfigPaths, loadKubeconfig } from '@capstan/kube/node'
import type { Command } from 'commander'
import { dataFolder } from './data-folder.ts'
import { type Io, UsageError } from './io.ts'

export interface ManagementOptions {
  readonly kubeconfig?: string
}

/** Adds the flag --kubeconfig. */
export const withKubeconfig = (command: Command): Command =>
  command.option(
    '--kubeconfig <file>',
    'kubeconfig of the management cluster (default: $KUBECONFIG, then that of `capstan up` or `capstan dev` in this folder)',
  )

/** Calls `work` with a client of the management cluster, and closes the client afterwards. */
export async function withManagement<T>(
  io: Io,
  { kubeconfig }: ManagementOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const givenPaths = kubeconfig === undefined ? kubeconfigPaths(io.env.KUBECONFIG) : [kubeconfig]
  const paths = givenPaths.length > 0 ? givenPaths : [dataFolder(io).kubeconfig]
  if (!paths.some((path) => existsSync(path))) {
    throw new UsageError(
      `there is no kubeconfig ${paths.join(', ')}`,
      'Name the management cluster with --kubeconfig or $KUBECONFIG, or run this in the folder in which `capstan up` or `capstan dev` runs.',
    )
  }
  const transport = httpsTransport(await loadKubeconfig(paths), {
    clock: systemClock,
    random: systemRandom,
    userAgent: 'capstan',
  })
  try {
    return await work(createClient(transport))
  } finally {
    transport.close()
  }
}
