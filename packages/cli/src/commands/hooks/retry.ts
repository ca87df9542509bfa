import { Cluster, ClusterNameLabel, Machine, RetryHooksAnnotation, waitingHooks } from '@capstan/api'
import { systemClock, timestamp } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Io } from '../../io.ts'
import { type ManagementOptions, withKubeconfig, withManagement } from '../../management.ts'
import { jsonLine, oneLine } from '../../output/one-line.ts'

/**
 * `capstan hooks retry CLUSTER`: makes core immediately repeat the hook calls that block a Cluster, its MachineDeployments and its
 * Machines.
 */
export const retryCommand = (io: Io): Command =>
  withKubeconfig(new Command('retry'))
    .description(
      'Make the manager immediately repeat the calls of hooks that block a Cluster, its MachineDeployments and its Machines',
    )
    .argument('<cluster>', 'name of the Cluster')
    .option('-n, --namespace <namespace>', 'namespace of the Cluster', 'default')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (name: string, options: ManagementOptions & { namespace: string; output: 'text' | 'json' }) => {
      const key = { namespace: options.namespace, name }
      await withManagement(io, options, async (client) => {
        const cluster = await client.get(Cluster, key, { signal: io.signal })
        const machineSelection = { namespace: options.namespace, labelSelector: `${ClusterNameLabel}=${name}`, signal: io.signal }
        const { items: machines } = await client.list(Machine, machineSelection)
        const waiting: { hook: string; machine?: string }[] = [
          ...waitingHooks(cluster).map(({ hook }) => ({ hook })),
          ...machines.flatMap((machine) => waitingHooks(machine).map(({ hook }) => ({ hook, machine: machine.metadata.name }))),
        ]
        const annotations = { [RetryHooksAnnotation]: timestamp(systemClock.now()) }
        await client.patch(Cluster, key, { type: 'merge', body: { metadata: { annotations } } }, { signal: io.signal })
        if (options.output === 'json') return io.out(jsonLine({ namespace: key.namespace, cluster: name, retriedHooks: waiting }))
        const texts = waiting.map(({ hook, machine }) => oneLine(machine === undefined ? hook : `${hook} (${machine})`))
        io.out(
          waiting.length === 0
            ? // Core does not record the hooks that block MachineDeployments, so they are not known here.
              `Cluster ${key.namespace}/${name}: no hook blocks it or its Machines; calls that block its MachineDeployments will be repeated`
            : `Cluster ${key.namespace}/${name}: ${texts.join(', ')} will be called again`,
        )
      })
    })
