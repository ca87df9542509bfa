/**
 * Runs `capstan manager` against `capstan apiserver` or a real API server, over HTTPS. Clusters go through their lifecycle, during which
 * the API server is killed and started again, and the manager is stopped and started again. Then the suite checks leader election,
 * webhooks, and deletions that a hook blocks, with and without the manager's webhooks.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BeforeClusterDelete, Cluster, coreKinds, ExtensionConfig, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { defineExtension, extensionServer, holdFor, listen, on, proceedNow } from '@capstan/extension'
import {
  apiVersionOf,
  type Client,
  ConfigMap,
  type DeclaredKind,
  getCondition,
  type Input,
  isDeleting,
  type Kind,
  type KubeObject,
  Lease,
  messageOf,
  Namespace,
  Secret,
  systemClock,
} from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { LocalCluster, LocalControlPlane, LocalMachine, localKinds } from '@capstan/local'
import { parseAllDocuments } from 'yaml'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, Checks, startCapstan } from './processes/capstan-process.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import type { Outcome, Suite } from './shared/suite.ts'
import { until } from './shared/until.ts'

export const managerSuite: Suite = {
  shows: 'capstan manager against capstan apiserver',
  ci: true,
  tools: [],
  run: () => runManagers(() => startCapstanApiServer({ durable: true })),
}

export const managerOnKubernetesSuite: Suite = {
  shows: 'capstan manager against a real kube-apiserver',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  run: () => runManagers(() => startRealApiServer({ progress: console.log })),
}

async function runManagers(startApiServer: () => Promise<RunningApiServer>): Promise<Outcome> {
  const checks = new Checks()
  await using apiServer = await startApiServer()
  const running = new Set<CapstanProcess>()
  const startManager = async (...furtherFlags: string[]) => {
    const folder = join(apiServer.folder, 'manager')
    const webhookFlags = furtherFlags.includes('--webhook-port') ? furtherFlags : ['--no-webhooks', ...furtherFlags]
    const flags = [
      '--kubeconfig',
      apiServer.kubeconfig,
      '--data',
      folder,
      '--diagnostics-port',
      '0',
      '--log-level',
      'error',
      ...webhookFlags,
    ]
    const manager = await startCapstan(['manager', ...flags], /Manager ready/)
    running.add(manager)
    return manager
  }

  try {
    let manager = await startManager()
    const client = apiServer.client()
    await checkDiagnostics(manager, checks)
    await createFromDemo(client, 'class.yaml')
    await createFromDemo(client, 'cluster.yaml')
    await until(client, Cluster, 'demo Available', isAvailable('demo'))
    checks.check('a cluster becomes Available', true)

    await createFromDemo(client, 'second-cluster.yaml')
    await until(client, Machine, 'a machine of second', (machines) => machines.some(isOf('second')))
    await apiServer.restart()
    await until(client, Cluster, 'second Available', isAvailable('second'))
    const items = await until(client, Machine, 'nine Machines', (machines) => machines.length >= 9)
    const counts = [items.filter(isOf('demo')).length, items.filter(isOf('second')).length]
    checks.check('no Machine is lost or created twice when the API server is killed', counts.join() === '5,4', counts)

    await client.patch(Cluster, demo, { type: 'merge', body: { spec: { topology: { version: 'v1.36.1' } } } })
    await until(client, Machine, 'new machines of demo', (machines) => machines.some(hasNewVersion))
    const firstStop = await manager.stop()
    running.delete(manager)
    checks.check('a manager stops cleanly in the middle of an upgrade', firstStop.code === 0, firstStop)
    manager = await startManager()
    await until(client, Machine, 'demo upgraded', (machines) => {
      const machinesOfDemo = machines.filter(isOf('demo'))
      return (
        machinesOfDemo.length === 5 &&
        machinesOfDemo.every((machine) => hasNewVersion(machine) && machine.status?.phase === 'Running')
      )
    })
    await until(client, Cluster, 'demo settled', (clusters) =>
      clusters.some(
        (cluster) => cluster.metadata.name === 'demo' && isTrue(cluster, 'TopologyReconciled') && isTrue(cluster, 'Available'),
      ),
    )
    checks.check('the restarted manager completes the upgrade', true)

    for (const name of ['demo', 'second']) await client.delete(Cluster, { ...demo, name })
    await until(client, Cluster, 'no cluster', (clusters) => clusters.length === 0)
    for (const kind of [Machine, LocalMachine, Secret] as Kind[])
      await until(client, kind, `no ${kind.kind} left behind`, (remaining) => remaining.length === 0, { namespace: 'default' })
    checks.check('Machines, LocalMachines and Secrets of deleted clusters are deleted', true)

    const stopped = await manager.stop()
    running.delete(manager)
    checks.check('the manager stops cleanly', stopped.code === 0 && stopped.stderr === '', stopped)
    await checkLeaderElection(apiServer, running, checks)

    const withoutWebhooks = await startManager()
    await checkUnprotectedDeletions(client, checks)
    await withoutWebhooks.stop()
    running.delete(withoutWebhooks)

    const withWebhooks = await startManager('--webhook-port', '0')
    await checkWebhooks(client, checks)
    await checkBlockedDeletions(client, checks)
    await withWebhooks.stop()
    running.delete(withWebhooks)
    if (apiServer.name === 'capstan') {
      const server = apiServer.programs.findLast(({ name }) => name === 'apiserver')!
      await server.stop()
      checks.check('the API server stops cleanly', server.ending === 'ended with code 0', server.tail())
    }
  } finally {
    for (const remaining of running) await remaining.kill()
  }
  return checks
}

const demo = { namespace: 'default', name: 'demo' }

/** Runs three managers with leader election. Kills the first leader, and suspends the second one for longer than its Lease is valid. */
async function checkLeaderElection(apiServer: RunningApiServer, running: Set<CapstanProcess>, checks: Checks): Promise<void> {
  const leaseFlags = [
    '--leader-elect-lease-duration',
    '6s',
    '--leader-elect-renew-deadline',
    '4s',
    '--leader-elect-retry-period',
    '500ms',
  ]
  const flags = ['--no-webhooks', '--kubeconfig', apiServer.kubeconfig, '--providers', 'core', '--diagnostics-port', '0']
  const quiet = ['--log-level', 'error']
  const start = async () => {
    const manager = await startCapstan(['manager', ...flags, ...quiet, '--leader-elect', ...leaseFlags], /Manager ready/)
    running.add(manager)
    return manager
  }
  const client = apiServer.client()
  /** Waits until the Lease has a holder whose identity is not in `excluded`. Returns the identity of this holder. */
  const holder = async (...excluded: string[]) => {
    const isNew = ({ spec }: Lease) => spec?.holderIdentity !== undefined && !excluded.includes(spec.holderIdentity)
    const leases = await until(client, Lease, 'a leader', (all) => all.some(isNew), { namespace: 'capi-system' })
    return leases.find(isNew)!.spec!.holderIdentity!
  }
  const [first, second] = [await start(), await start()]
  const killedHolder = await holder()
  await first.kill()
  running.delete(first)
  const suspendedHolder = await holder(killedHolder)
  checks.check('when a leader is killed, another manager leads', true)

  const third = await start()
  process.kill(second.pid, 'SIGSTOP')
  await holder(killedHolder, suspendedHolder)
  process.kill(second.pid, 'SIGCONT')
  const { code, stderr } = await second.ended()
  running.delete(second)
  checks.check(
    'a leader that was suspended for longer than its Lease is valid exits',
    code === 1 && stderr.includes('Leader election lost'),
    {
      code,
      stderr,
    },
  )
  const thirdStop = await third.stop()
  running.delete(third)
  checks.check('the new leader stops cleanly', thirdStop.code === 0, thirdStop)
}

async function checkDiagnostics({ ready }: CapstanProcess, checks: Checks): Promise<void> {
  const base = /diagnostics at (\S+)/.exec(ready)![1]!
  for (const [path, pattern] of [
    ['/healthz', /^ok$/],
    ['/readyz', /^ok$/],
    ['/metrics', /^# TYPE controller_runtime_reconcile_total counter$/m],
  ] as const) {
    const response = await fetch(base + path)
    const text = await response.text()
    checks.check(`${path} returns 200 and the expected text`, response.status === 200 && pattern.test(text), text.slice(0, 200))
  }
  checks.check('other paths return 404', (await fetch(`${base}/other`)).status === 404)
}

/** Checks the manager's webhooks: defaults and validation beyond the schemas, and conversion. */
async function checkWebhooks(client: Client, checks: Checks): Promise<void> {
  const old = { ...ExtensionConfig, version: 'v1alpha1' } as unknown as Kind
  const create = (name: string, clientConfig: object) =>
    client.create(old, { metadata: { name }, spec: { clientConfig } } as Input<KubeObject>)
  const service = { name: 'quota', namespace: 'quota-system' }
  await create('quota', { service })
  const { spec } = await client.get(ExtensionConfig, { name: 'quota' })
  checks.check('an ExtensionConfig of v1alpha1 is defaulted and converted', spec.clientConfig.service?.port === 443, spec)
  const { apiVersion } = await client.get(old, { name: 'quota' })
  checks.check('an ExtensionConfig can be read in v1alpha1', apiVersion === 'runtime.cluster.x-k8s.io/v1alpha1', apiVersion)
  const response = await create('wrong', { url: 'http://quota' }).then(() => 'it was accepted', messageOf)
  const expected = 'spec.clientConfig.url: Invalid value: "http://quota": \'https\' is the only allowed URL scheme'
  checks.check('the validating webhook rejects an invalid object', response.includes(expected), response)
  // Until it is discovered, an ExtensionConfig makes all hooks of the Clusters that it selects fail. This one selects
  // every Cluster, so it is deleted.
  await client.delete(ExtensionConfig, { name: 'quota' })
}

/** Deletions in which the garbage collector or the namespace controller deletes the objects of a Cluster, instead of core. */
const deletions: readonly {
  readonly how: string
  readonly deletedKind: 'cluster' | 'namespace'
  destroy(client: Client, namespace: string): Promise<unknown>
}[] = [
  {
    how: 'foreground deletion',
    deletedKind: 'cluster',
    destroy: (client, namespace) => client.delete(Cluster, { namespace, name: 'demo' }, { propagationPolicy: 'Foreground' }),
  },
  { how: 'deletion of the namespace', deletedKind: 'namespace', destroy: (client, name) => client.delete(Namespace, { name }) },
]

/** An extension whose handler of BeforeClusterDelete blocks while `blocks` is true. */
interface BlockingExtension {
  blocks: boolean
}

/** Serves and registers a `BlockingExtension`, and calls `check` with it. */
async function withBlockingExtension(client: Client, check: (extension: BlockingExtension) => Promise<void>): Promise<void> {
  const extension: BlockingExtension = { blocks: true }
  const handler = on(BeforeClusterDelete, { name: 'guard' }, () => (extension.blocks ? holdFor(2, 'backing up') : proceedNow()))
  const authority = await makeAuthority(systemClock, { commonName: 'guard' })
  const serving = await issueCertificate(authority, systemClock, {
    commonName: '127.0.0.1',
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
  })
  const server = await listen(extensionServer(defineExtension({ name: 'guard', handlers: [handler] })), serving)
  try {
    const clientConfig = { url: server.url, caBundle: Buffer.from(authority.certificate).toString('base64') }
    await client.create(ExtensionConfig, { metadata: { name: 'guard' }, spec: { clientConfig } })
    await until(client, ExtensionConfig, 'the extension discovered', (configs) =>
      configs.some((config) => getCondition(config, 'Discovered')?.status === 'True'),
    )
    await check(extension)
    await client.delete(ExtensionConfig, { name: 'guard' })
  } finally {
    await server.close()
  }
}

/**
 * Checks, for each of `deletions`, that no protected dependent of a Cluster is deleted until the Cluster's BeforeClusterDelete hook allows
 * the deletion.
 */
const checkBlockedDeletions = (client: Client, checks: Checks): Promise<void> =>
  withBlockingExtension(client, async (extension) => {
    for (const { how, deletedKind, destroy } of deletions) {
      extension.blocks = true
      const namespace = `guarded-${deletedKind}`
      const before = await createClusterIn(client, namespace)
      await destroy(client, namespace)
      // No webhook protects this ConfigMap. Its deletion shows that the deletion of the Cluster's dependents has begun.
      await until(
        client,
        ConfigMap,
        'no unprotected dependent',
        (all) => all.every(({ metadata }) => metadata.name !== 'unprotected'),
        {
          namespace,
        },
      )
      if (deletedKind === 'namespace') {
        const [deletedNamespace] = await until(
          client,
          Namespace,
          'the namespace has the condition NamespaceDeletionContentFailure',
          (all) => all.some((item) => item.metadata.name === namespace && contentFailure(item) !== undefined),
        ).then((all) => all.filter(({ metadata }) => metadata.name === namespace))
        const message = contentFailure(deletedNamespace!)!
        checks.check(
          `${how}: the condition of the namespace contains the rejection`,
          message.includes(rejection(namespace)),
          message,
        )
      }
      // Later attempts to delete the protected dependents must be rejected as well.
      await new Promise((resolve) => void setTimeout(resolve, 5000))
      const during = await dependentsIn(client, namespace)
      checks.check(`${how} deletes no protected dependent of a Cluster whose hook blocks`, during.join() === before.join(), {
        before,
        during,
      })
      await checkStillBlocked(client, checks, how, namespace)
      extension.blocks = false
      await checkCompleted(client, checks, how, namespace)
    }
  })

/** Checks the opposite of `checkBlockedDeletions`: without the manager's webhooks, dependents are deleted while the hook still blocks. */
const checkUnprotectedDeletions = (client: Client, checks: Checks): Promise<void> =>
  withBlockingExtension(client, async (extension) => {
    for (const { how, deletedKind, destroy } of deletions) {
      extension.blocks = true
      const namespace = `exposed-${deletedKind}`
      const description = `${how} without webhooks`
      await createClusterIn(client, namespace)
      await destroy(client, namespace)
      for (const kind of dependents)
        await until(client, kind, `${description}: no ${kind.kind}`, (remaining) => remaining.length === 0, { namespace })
      const undeleted = await dependentsIn(client, namespace)
      checks.check(`${description} deletes the dependents of a Cluster whose hook blocks`, undeleted.length === 0, undeleted)
      await checkStillBlocked(client, checks, description, namespace)
      extension.blocks = false
      await checkCompleted(client, checks, description, namespace)
    }
  })

async function checkStillBlocked(client: Client, checks: Checks, how: string, namespace: string): Promise<void> {
  const expected = 'Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: backing up'
  // Without the webhooks, dependents may be deleted before the deletion of the Cluster begins. Until it begins, the condition has another
  // message.
  const hasMessage = (cluster: Cluster) => getCondition(cluster, 'TopologyReconciled')?.message === expected
  const [waiting] = await until(
    client,
    Cluster,
    `${how}: the condition of the Cluster names the blocking hook`,
    (all) => all.some(hasMessage),
    {
      namespace,
    },
  )
  checks.check(`${how}: the Cluster waits for its hook`, isDeleting(waiting!), waiting)
}

async function checkCompleted(client: Client, checks: Checks, how: string, namespace: string): Promise<void> {
  await until(client, Cluster, `${how}: no Cluster`, (remaining) => remaining.length === 0, { namespace })
  await until(client, Machine, `${how}: no Machine`, (remaining) => remaining.length === 0, { namespace })
  await until(client, Namespace, `${how}: no namespace that is being deleted`, (all) => !all.some(isDeleting))
  checks.check(`${how} is completed once the hook allows it`, (await dependentsIn(client, namespace)).length === 0)
}

/**
 * Creates a namespace with a Cluster, waits until the Cluster is Available, and creates a dependent that no webhook protects.
 * Returns the protected dependents.
 */
async function createClusterIn(client: Client, namespace: string): Promise<string[]> {
  await client.create(Namespace, { metadata: { name: namespace } })
  const { metadata } = await client.create(Cluster, {
    metadata: { namespace, name: 'demo' },
    spec: {
      topology: {
        classRef: { name: 'demo', namespace: 'default' },
        version: 'v1.36.0',
        controlPlane: { replicas: 1 },
        workers: { machineDeployments: [{ class: 'worker', name: 'steady', replicas: 1 }] },
      },
    },
  })
  await until(client, Cluster, `the Cluster in ${namespace} Available`, isAvailable('demo'), { namespace })
  const owner = {
    apiVersion: apiVersionOf(Cluster),
    kind: 'Cluster',
    name: 'demo',
    uid: metadata.uid,
    blockOwnerDeletion: true,
  }
  await client.create(ConfigMap, { metadata: { namespace, name: 'unprotected', ownerReferences: [owner] } })
  return dependentsIn(client, namespace)
}

/** Kinds of the protected dependents that the suite checks. The manager's webhooks protect other kinds, too. */
const dependents = [Machine, MachineSet, MachineDeployment, LocalCluster, LocalControlPlane, LocalMachine] as Kind[]

/** Returns `Kind name` of the objects of the kinds `dependents` in the namespace, with `(deleting)` if an object is being deleted. */
async function dependentsIn(client: Client, namespace: string): Promise<string[]> {
  const lists = await Promise.all(dependents.map((kind) => client.list(kind, { namespace })))
  return lists
    .flatMap(({ items }) => items)
    .map((object) => `${object.kind} ${object.metadata.name}${isDeleting(object) ? ' (deleting)' : ''}`)
    .sort()
}

const contentFailure = ({ status }: Namespace): string | undefined =>
  status?.conditions?.find(
    ({ type, status: conditionStatus }) => type === 'NamespaceDeletionContentFailure' && conditionStatus === 'True',
  )?.message

/** Returns the text with which the webhooks reject the deletion of a dependent. */
const rejection = (namespace: string): string =>
  `is forbidden: Cluster ${namespace}/demo or its namespace is being deleted, and BeforeClusterDelete has not allowed the deletion of the Cluster: see its condition TopologyReconciled`

const kinds: ReadonlyMap<string, DeclaredKind> = new Map([...coreKinds, ...localKinds].map((kind) => [kind.kind, kind]))

/** Creates the objects of a YAML file of `packages/lab/demo`. */
export async function createFromDemo(client: Client, file: string): Promise<void> {
  const text = readFileSync(new URL(`../packages/lab/demo/${file}`, import.meta.url), 'utf8')
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as Input<KubeObject> & { kind: string }
    await client.create(kinds.get(object.kind)!, object)
  }
}

const isTrue = ({ status }: Cluster, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false
const isAvailable = (name: string) => (clusters: Cluster[]) =>
  clusters.some((cluster) => cluster.metadata.name === name && isTrue(cluster, 'Available'))
const isOf =
  (cluster: string) =>
  ({ spec }: Machine): boolean =>
    spec.clusterName === cluster
const hasNewVersion = ({ spec }: Machine): boolean => spec.version === 'v1.36.1'
