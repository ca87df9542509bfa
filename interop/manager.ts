/**
 * `capstan manager` against an API server, ours and the real one, with HTTPS in between: a cluster's life, the API server killed in
 * the middle of it, the manager stopped and started again.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster, coreKinds, ExtensionConfig, Machine } from '@capstan/api'
import { type Client, type DeclaredKind, type Input, type Kind, type KubeObject, Lease, messageOf, Secret } from '@capstan/kube'
import { LocalMachine, localKinds } from '@capstan/local'
import { parseAllDocuments } from 'yaml'
import { startCapstanPlane } from './capstan-plane.ts'
import { type CapstanProcess, Checks, startCapstan } from './capstan-process.ts'
import type { ServedPlane } from './plane.ts'
import { startRealPlane } from './real-plane.ts'
import type { Outcome, Suite } from './suite.ts'
import { until } from './until.ts'

export const managerSuite: Suite = {
  shows: 'capstan manager against capstan apiserver',
  ci: true,
  tools: [],
  run: () => managerStory(() => startCapstanPlane({ durable: true })),
}

export const managerOnKubernetesSuite: Suite = {
  shows: 'capstan manager against a real kube-apiserver: the same story',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  run: () => managerStory(() => startRealPlane({ progress: console.log })),
}

async function managerStory(startPlane: () => Promise<ServedPlane>): Promise<Outcome> {
  const checks = new Checks()
  await using plane = await startPlane()
  const running = new Set<CapstanProcess>()
  const startManager = async (...more: string[]) => {
    const folder = join(plane.folder, 'manager')
    const flags = ['--kubeconfig', plane.kubeconfig, '--data', folder, '--diagnostics-port', '0', '--log-level', 'error', ...more]
    const manager = await startCapstan(['manager', ...flags], /Manager ready/)
    running.add(manager)
    return manager
  }

  try {
    let manager = await startManager()
    const client = plane.client()
    await checkDiagnostics(manager, checks)
    await createFromDemo(client, 'class.yaml')
    await createFromDemo(client, 'cluster.yaml')
    await until(client, Cluster, 'demo Available', isAvailable('demo'))
    checks.check('a cluster becomes Available', true)

    await createFromDemo(client, 'second-cluster.yaml')
    await until(client, Machine, 'a machine of second', (machines) => machines.some(isOf('second')))
    await plane.restart()
    await until(client, Cluster, 'second Available', isAvailable('second'))
    const { items } = await client.list(Machine, { namespace: 'default' })
    const counts = [items.filter(isOf('demo')).length, items.filter(isOf('second')).length]
    checks.check('an API server that is killed in between loses nothing and makes nothing twice', counts.join() === '3,3', counts)

    await client.patch(Cluster, demo, { type: 'merge', body: { spec: { topology: { version: 'v1.36.1' } } } })
    await until(client, Machine, 'new machines of demo', (machines) => machines.some(isNew))
    const first = await manager.stop()
    running.delete(manager)
    checks.check('a manager stops cleanly in the middle of an upgrade', first.code === 0, first)
    manager = await startManager()
    await until(client, Machine, 'demo upgraded', (machines) => {
      const mine = machines.filter(isOf('demo'))
      return mine.length === 3 && mine.every((machine) => isNew(machine) && machine.status?.phase === 'Running')
    })
    await until(client, Cluster, 'demo settled', (clusters) =>
      clusters.some(
        (cluster) => cluster.metadata.name === 'demo' && isTrue(cluster, 'TopologyReconciled') && isTrue(cluster, 'Available'),
      ),
    )
    checks.check('and started again ends it', true)

    for (const name of ['demo', 'second']) await client.delete(Cluster, { ...demo, name })
    await until(client, Cluster, 'no cluster', (clusters) => clusters.length === 0)
    for (const kind of [Machine, LocalMachine, Secret] as Kind[])
      await until(client, kind, `no ${kind.kind} left behind`, (left) => left.length === 0, { namespace: 'default' })
    checks.check('deleted clusters leave nothing behind', true)

    const stopped = await manager.stop()
    running.delete(manager)
    checks.check('the manager stops cleanly', stopped.code === 0 && stopped.complaints === '', stopped)
    await checkLeaderElection(plane, running, checks)

    const withWebhooks = await startManager('--webhook-port', '0')
    await checkWebhooks(client, checks)
    await withWebhooks.stop()
    running.delete(withWebhooks)
    if (plane.name === 'capstan') {
      const server = plane.programs.findLast(({ name }) => name === 'apiserver')!
      await server.stop()
      checks.check('the API server stops cleanly', server.ending === 'ended with code 0', server.tail())
    }
  } finally {
    for (const process of running) await process.kill()
  }
  return checks
}

const demo = { namespace: 'default', name: 'demo' }

/** Three managers, one of which works: the first is killed, the second stands still for too long. */
async function checkLeaderElection(plane: ServedPlane, running: Set<CapstanProcess>, checks: Checks): Promise<void> {
  const terms = [
    '--leader-elect-lease-duration',
    '6s',
    '--leader-elect-renew-deadline',
    '4s',
    '--leader-elect-retry-period',
    '500ms',
  ]
  const flags = ['--kubeconfig', plane.kubeconfig, '--providers', 'core', '--diagnostics-port', '0', '--log-level', 'error']
  const start = async () => {
    const manager = await startCapstan(['manager', ...flags, '--leader-elect', ...terms], /Manager ready/)
    running.add(manager)
    return manager
  }
  const client = plane.client()
  /** Whoever holds the Lease, when it is not one of those. */
  const holder = async (...not: string[]) => {
    const isNew = ({ spec }: Lease) => spec?.holderIdentity !== undefined && !not.includes(spec.holderIdentity)
    const leases = await until(client, Lease, 'a leader', (all) => all.some(isNew), { namespace: 'capi-system' })
    return leases.find(isNew)!.spec!.holderIdentity!
  }
  const [first, second] = [await start(), await start()]
  const killed = await holder()
  await first.kill()
  running.delete(first)
  const frozen = await holder(killed)
  checks.check('when a leader is killed, another manager leads', true)

  const third = await start()
  process.kill(second.pid, 'SIGSTOP')
  await holder(killed, frozen)
  process.kill(second.pid, 'SIGCONT')
  const { code, complaints } = await second.ended()
  running.delete(second)
  checks.check('one that stood still for too long ends', code === 1 && complaints.includes('Leader election lost'), {
    code,
    complaints,
  })
  const last = await third.stop()
  running.delete(third)
  checks.check('the one that leads now stops cleanly', last.code === 0, last)
}

async function checkDiagnostics({ ready }: CapstanProcess, checks: Checks): Promise<void> {
  const base = /diagnostics at (\S+)/.exec(ready)![1]!
  for (const [path, says] of [
    ['/healthz', /^ok$/],
    ['/readyz', /^ok$/],
    ['/metrics', /^# TYPE controller_runtime_reconcile_total counter$/m],
  ] as const) {
    const answer = await fetch(base + path)
    const text = await answer.text()
    checks.check(`${path} answers`, answer.status === 200 && says.test(text), text.slice(0, 200))
  }
  checks.check('other paths are not there', (await fetch(`${base}/other`)).status === 404)
}

/** What schemas cannot say, the API server is told by the manager now: defaults, refusals, other versions. */
async function checkWebhooks(client: Client, checks: Checks): Promise<void> {
  const old = { ...ExtensionConfig, version: 'v1alpha1' } as unknown as Kind
  const create = (name: string, clientConfig: object) =>
    client.create(old, { metadata: { name }, spec: { clientConfig } } as Input<KubeObject>)
  const service = { name: 'quota', namespace: 'quota-system' }
  await create('quota', { service })
  const { spec } = await client.get(ExtensionConfig, { name: 'quota' })
  checks.check('an ExtensionConfig of v1alpha1 is defaulted and converted', spec.clientConfig.service?.port === 443, spec)
  const { apiVersion } = await client.get(old, { name: 'quota' })
  checks.check('and can be read in v1alpha1', apiVersion === 'runtime.cluster.x-k8s.io/v1alpha1', apiVersion)
  const refusal = await create('wrong', { url: 'http://quota' }).then(() => 'it was accepted', messageOf)
  const expected = 'spec.clientConfig.url: Invalid value: "http://quota": \'https\' is the only allowed URL scheme'
  checks.check('what validation refuses is refused on the way in', refusal.includes(expected), refusal)
}

const kinds: ReadonlyMap<string, DeclaredKind> = new Map([...coreKinds, ...localKinds].map((kind) => [kind.kind, kind]))

export async function createFromDemo(client: Client, file: string): Promise<void> {
  const text = readFileSync(new URL(`../packages/lab/demo/${file}`, import.meta.url), 'utf8')
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as Input<KubeObject> & { kind: string }
    await client.create(kinds.get(object.kind)!, object)
  }
}

const isTrue = ({ status }: Cluster, type: string): boolean =>
  status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false
const isAvailable = (name: string) => (clusters: Cluster[]) =>
  clusters.some((cluster) => cluster.metadata.name === name && isTrue(cluster, 'Available'))
const isOf =
  (cluster: string) =>
  ({ spec }: Machine): boolean =>
    spec.clusterName === cluster
const isNew = ({ spec }: Machine): boolean => spec.version === 'v1.36.1'
