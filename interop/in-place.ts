/**
 * Upgrades a control plane in place. Core and the local provider run in processes of their own; the process of the suite serves the extension.
 * Core discovers the handlers of the extension. The provider finds the handler of `CanUpdateMachine` in the status of the ExtensionConfig.
 */
import { join } from 'node:path'
import { CanUpdateMachine, Cluster, ExtensionConfig, Machine, UpdateMachine } from '@capstan/api'
import { defineExtension, extensionServer, holdFor, inPlaceUpdates, listen, on, proceedNow } from '@capstan/extension'
import { type Client, Event, isTrue, systemClock } from '@capstan/kube'
import { issueCertificate } from '@capstan/kube/node'
import { LocalCluster, LocalControlPlane, LocalMachineTemplate } from '@capstan/local'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, Checks, startCapstan } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { until } from './shared/until.ts'

const key = { namespace: 'default', name: 'demo' }

export const inPlaceSuite: Suite = {
  shows: 'an upgrade in place, with core and the control plane provider in separate processes',
  ci: true,
  tools: [],
  async run() {
    const checks = new Checks()
    await using apiServer = await startCapstanApiServer({ progress: console.log })
    const serving = await issueCertificate(apiServer.authority, systemClock, {
      commonName: 'updater',
      usages: ['server'],
      ipAddresses: ['127.0.0.1'],
    })
    const { handled, server } = await serveExtension(serving)
    const flags = ['--kubeconfig', apiServer.kubeconfig, '--diagnostics-port', '0', '--log-level', 'error']
    const startManager = (providers: string) =>
      startCapstan(
        [
          'manager',
          '--no-webhooks',
          ...flags,
          '--providers',
          providers,
          '--data',
          join(apiServer.folder, `manager-${providers}`),
        ],
        /Manager ready/,
      )
    const core = await startManager('core')
    const local = await startManager('local')
    try {
      const client = apiServer.client()
      await client.create(ExtensionConfig, {
        metadata: { name: 'updater' },
        spec: {
          clientConfig: { url: `https://127.0.0.1:${server.port}`, caBundle: Buffer.from(apiServer.ca).toString('base64') },
        },
      })
      await createAndUpgrade(client, handled, checks)
    } finally {
      for (const process of [core, local]) await stop(process, checks)
      await server.close()
    }
    return checks
  },
}

/** Serves an extension that updates each Machine to any version in two calls of UpdateMachine, and counts the calls of both hooks. */
async function serveExtension(serving: { readonly certificate: string; readonly key: string }) {
  const handled = { canUpdate: 0, update: 0 }
  const startedMachines = new Set<string>()
  const inPlace = inPlaceUpdates({ machine: ['version'] })
  const extension = defineExtension({
    name: 'updater',
    handlers: [
      on(CanUpdateMachine, { name: 'can-update-machine' }, (call) => {
        handled.canUpdate++
        return inPlace.canUpdateMachine(call)
      }),
      on(UpdateMachine, { name: 'update-machine' }, ({ request }) => {
        handled.update++
        const { name } = request.desired.machine.metadata
        if (startedMachines.has(name)) return proceedNow()
        startedMachines.add(name)
        return holdFor(1, 'installing')
      }),
    ],
  })
  return { handled, server: await listen(extensionServer(extension), serving) }
}

async function createAndUpgrade(client: Client, handled: { canUpdate: number; update: number }, checks: Checks): Promise<void> {
  const named = (name: string) => ({ metadata: { ...key, name } })
  const ref = (apiGroup: string, kind: string, name: string) => ({ apiGroup, kind, name })
  await client.create(LocalMachineTemplate, { ...named('small'), spec: { template: { spec: {} } } })
  await client.create(LocalCluster, named('demo'))
  await client.create(LocalControlPlane, {
    ...named('demo'),
    spec: {
      replicas: 3,
      version: 'v1.36.0',
      machineTemplate: { spec: { infrastructureRef: ref('infrastructure.capstan.dev', 'LocalMachineTemplate', 'small') } },
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } } },
    },
  })
  await client.create(Cluster, {
    ...named('demo'),
    spec: {
      infrastructureRef: ref('infrastructure.capstan.dev', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane.capstan.dev', 'LocalControlPlane', 'demo'),
    },
  })
  const allRun = (version: string) => (machines: readonly Machine[]) =>
    machines.length === 3 &&
    machines.every((machine) => isTrue(machine, 'Ready') && machine.status?.nodeInfo?.kubeletVersion === version)
  const before = await until(client, Machine, 'three Machines', allRun('v1.36.0'), { seconds: 120 })
  console.log('control plane ready')

  await client.patch(LocalControlPlane, key, { type: 'merge', body: { spec: { version: 'v1.36.1' } } })
  const after = await until(client, Machine, 'all Machines have the new version', allRun('v1.36.1'), { seconds: 120 })
  const uids = (machines: readonly Machine[]) => machines.map(({ metadata }) => metadata.uid).sort()
  checks.check('every Machine was updated in place', uids(before).join() === uids(after).join(), after)
  checks.check('the provider sent one CanUpdateMachine request for each Machine', handled.canUpdate === 3, handled)
  checks.check('core called UpdateMachine twice for each Machine', handled.update === 6, handled)
  const { items } = await client.list(Event, { namespace: 'default' })
  const started = items.filter(({ reason }) => reason === 'SuccessfulStartInPlaceUpdate')
  checks.check('each update has an event', started.length === 3, started)
}

async function stop(process: CapstanProcess, checks: Checks): Promise<void> {
  const stopped = await process.stop()
  checks.check('the manager stops cleanly', stopped.code === 0 && stopped.stderr === '', stopped)
}
