import { createClient, orAbsent, Secret, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { Command } from 'commander'
import { dataFolder } from '../data-folder.ts'
import type { Io } from '../io.ts'

interface Options {
  namespace: string
  kubeconfig?: string
}

/** `capstan kubeconfig NAME`: the kubeconfig of a workload cluster, as `clusterctl get kubeconfig` prints it. */
export const kubeconfigCommand = (io: Io): Command =>
  new Command('kubeconfig')
    .description('Print the kubeconfig of a workload cluster')
    .argument('<name>', 'name of the Cluster')
    .option('-n, --namespace <namespace>', 'namespace of the Cluster', 'default')
    .option(
      '--kubeconfig <file>',
      'kubeconfig of the management cluster (default: $KUBECONFIG, then the one of `capstan up` in this folder)',
    )
    .action(async (name: string, options: Options) => {
      const path = options.kubeconfig ?? io.env.KUBECONFIG ?? dataFolder().kubeconfig
      const transport = httpsTransport(await loadKubeconfig(path), {
        clock: systemClock,
        random: systemRandom,
        userAgent: 'capstan',
      })
      try {
        const key = { namespace: options.namespace, name: `${name}-kubeconfig` }
        const secret = await orAbsent(createClient(transport).get(Secret, key, { signal: io.signal }))
        const value = secret?.data?.value
        if (!value) {
          throw new Error(
            `Cannot read the kubeconfig of Cluster ${options.namespace}/${name}: Secret ${key.namespace}/${key.name} ` +
              `${secret ? 'has no key "value"' : 'does not exist. Either there is no such Cluster, or its control plane is not initialized yet'}`,
          )
        }
        io.out(Buffer.from(value, 'base64').toString('utf8').trimEnd())
      } finally {
        transport.close()
      }
    })
