import { orAbsent, Secret } from '@capstan/kube'
import { Command } from 'commander'
import type { Io } from '../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../management.ts'

/** `capstan kubeconfig NAME`: prints the kubeconfig of a workload cluster, as `clusterctl get kubeconfig` does. */
export const kubeconfigCommand = (io: Io): Command =>
  withKubeconfig(new Command('kubeconfig'))
    .description('Print the kubeconfig of a workload cluster')
    .argument('<name>', 'name of the Cluster')
    .option('-n, --namespace <namespace>', 'namespace of the Cluster', 'default')
    .action((name: string, options: ManagementOptions & { namespace: string }) =>
      withManagement(io, options, async (client) => {
        const key = { namespace: options.namespace, name: `${name}-kubeconfig` }
        const secret = await orAbsent(client.get(Secret, key, { signal: io.signal }))
        const value = secret?.data?.value
        if (!value) {
          throw new Error(
            `Cannot read the kubeconfig of Cluster ${options.namespace}/${name}: Secret ${key.namespace}/${key.name} ` +
              `${secret ? 'has no key "value"' : 'does not exist. Either there is no such Cluster, or its control plane is not initialized yet'}`,
          )
        }
        io.out(Buffer.from(value, 'base64').toString('utf8').trimEnd())
      }),
    )
