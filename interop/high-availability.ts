/**
 * Runs three replicas of the core manager on a real kube-apiserver. While a Cluster is scaled, the leader is killed, then suspended for
 * longer than its Lease, then disconnected from the API server. According to the audit log, no replica may write after the next leader's
 * first write. Then replicas divide the work of several namespaces, while replicas join, are killed and are stopped. No replica may
 * write in a namespace again after another replica has written there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Cluster } from '@capstan/api'
import { Lease, Namespace } from '@capstan/kube'
import { Checks } from './processes/capstan-process.ts'
import {
  createClass,
  createCluster,
  inventory,
  undeletedObjects,
  localProvider,
  remove,
  scale,
  type LifeContext,
  type DesiredState,
} from './life/life.ts'
import { type AuditEvent, auditPolicy, readAudit } from './manifests/audit.ts'
import { configured, install, providers, routeTo, userOf } from './manifests/install.ts'
import { addAddress, type Deployment, type Pod, startPod } from './manifests/pod.ts'
import type { RunningApiServer } from './processes/api-server.ts'
import { Programs } from './processes/programs.ts'
import { progressSince } from './shared/progress.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { namespacesOfShards, sharesOf } from './shared/shards.ts'
import type { Suite } from './shared/suite.ts'
import { until } from './shared/until.ts'

const [core, local] = providers
const addresses = [core.address, '10.1.0.3', '10.1.0.4']
const lease = { namespace: core.namespace, name: 'controller-leader-election-capi' }

export const highAvailabilitySuite: Suite = {
  shows:
    'three managers on a real kube-apiserver, with killed, suspended and disconnected leaders and with shards: only one writes in a namespace at a time',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'],
  ownNetwork: true,
  async run() {
    const checks = new Checks()
    for (const address of [...addresses, local.address]) addAddress(address)
    await using programs = new Programs('high-availability')
    const audit = join(programs.folder, 'audit.log')
    const policy = join(programs.folder, 'audit-policy.json')
    writeFileSync(policy, JSON.stringify(auditPolicy([userOf(core)])))
    await using apiServer = await startRealApiServer({
      progress: console.log,
      flags: [
        '--authorization-mode=Node,RBAC',
        '--enable-aggregator-routing=true',
        `--audit-policy-file=${policy}`,
        `--audit-log-path=${audit}`,
        '--audit-log-mode=blocking',
      ],
    })
    const replicas = new Replicas(apiServer, programs)
    const events = () => readAudit(readFileSync(audit, 'utf8'))
    try {
      await runLifecycle(apiServer, replicas, checks)
      const turns = turnsOf(events())
      for (const { credential, from, to, writes } of turns) console.log(`  ${credential} wrote ${writes} times, ${from} to ${to}`)
      checks.check('four managers led', turns.length === 4, turns)
      checks.check('no manager wrote after the next leader had written', hasNoRepeatedWriter(turns), turns)
      await replicas.stop()
      await checkSharing(apiServer, replicas, checks)
      checkShares(events(), checks)
    } catch (err) {
      for (const program of programs.all) console.log(`--- ${program.name} ${program.ending ?? ''}\n${program.tail(40)}`)
      throw err
    } finally {
      replicas.network.close()
    }
    return checks
  },
}

async function runLifecycle(apiServer: RunningApiServer, replicas: Replicas, checks: Checks): Promise<void> {
  const progress = progressSince()
  const client = apiServer.client()
  await replicas.start(3)
  await configured(client)
  progress('three replicas of core and one of local are ready')
  const namespace = 'team'
  await client.create(Namespace, { metadata: { name: namespace } })
  const context: LifeContext = { client, namespace, provider: localProvider, checks, progress, limit: 120 }
  await createClass(context)
  const before = await inventory(context)
  let desired: DesiredState = { version: 'v1.33.0', controlPlane: 1, workers: 2 }
  await createCluster(context, 'classy', desired)
  progress('a cluster is Available')

  /**
   * Scales the Cluster and interrupts the leader with `act` in the meantime. Another replica must complete the work. Returns the interrupted
   * leader.
   */
  const interruptLeader = async (description: string, workers: number, act: (leader: Pod) => Promise<void> | void) => {
    const leader = await replicas.leader()
    const oldHolder = (await client.get(Lease, lease)).spec?.holderIdentity
    // From now on only the other replicas serve the webhooks, so that the measured time does not include failing webhooks.
    await replicas.route(leader)
    desired = { ...desired, workers }
    const scaled = scale(context, 'classy', desired)
    scaled.catch(() => {})
    await until(client, Cluster, 'the change is written', (all) =>
      all.some(({ spec }) => spec.topology?.workers?.machineDeployments?.[0]?.replicas === workers),
    )
    const interruptedAt = performance.now()
    await act(leader)
    await until(client, Lease, `another leader: ${description}`, (all) =>
      all.some(
        ({ metadata, spec }) => metadata.name === lease.name && ![undefined, '', oldHolder].includes(spec?.holderIdentity),
      ),
    )
    progress(`${description}: ${((performance.now() - interruptedAt) / 1000).toFixed(1)} s without a leader`)
    await scaled
    progress('another replica completed the work')
    return leader
  }

  await interruptLeader('leader killed', 4, (leader) => leader.kill())
  const suspended = await interruptLeader('leader suspended', 1, ({ program }) => void process.kill(program.pid, 'SIGSTOP'))
  process.kill(suspended.program.pid, 'SIGCONT')
  await waitForEnd(suspended)
  checks.check(
    'a leader that resumes after its Lease has expired ends, but not with code 0',
    ![undefined, 'ended with code 0'].includes(suspended.program.ending),
    suspended.program.ending,
  )
  await replicas.start(1)
  const disconnected = await interruptLeader('leader disconnected', 3, (leader) => replicas.network.interrupt(leader))
  await waitForEnd(disconnected)
  checks.check(
    'a leader without connection to the API server ends, but not with code 0',
    ![undefined, 'ended with code 0'].includes(disconnected.program.ending),
    disconnected.program.ending,
  )
  await remove(context, 'classy')
  const undeleted = await undeletedObjects(context, before)
  checks.check('all objects of a deleted Cluster are deleted', undeleted.length === 0, undeleted)
  progress('deleted')
}

async function waitForEnd({ program }: Pod): Promise<void> {
  const end = performance.now() + 30_000
  while (program.ending === undefined && performance.now() < end) await new Promise((resolve) => void setTimeout(resolve, 50))
}

const shards = 4
/** Namespaces of the test, one for each shard. */
const sharedNamespaces = namespacesOfShards(shards)

/**
 * Starts, kills and stops replicas while there is work in every namespace. No replica gets back a shard that it has lost, so `checkShares`
 * can require that the writes of a replica in a namespace are consecutive.
 */
async function checkSharing(apiServer: RunningApiServer, replicas: Replicas, checks: Checks): Promise<void> {
  const progress = progressSince()
  const client = apiServer.client()
  const args = [`--leader-elect-shards=${shards}`]
  /** Resolves when managers hold these numbers of shard Leases, largest first. */
  const untilShares = (description: string, ...shares: readonly number[]) =>
    until(client, Lease, description, (all) => sharesOf(all, lease.name, shards)?.join() === shares.join())
  const contexts = sharedNamespaces.map(
    (namespace): LifeContext => ({ client, namespace, provider: localProvider, checks, progress: () => {}, limit: 180 }),
  )
  const inAllNamespaces = (act: (context: LifeContext) => Promise<unknown>) => Promise.all(contexts.map(act))
  /**
   * Begins to scale in all namespaces. Resolves when the changes are written, so that a manager can then be stopped: without its webhooks
   * the changes would be rejected. `done` resolves when the Clusters are scaled.
   */
  const beginToScale = async (workers: number): Promise<{ readonly done: Promise<unknown> }> => {
    const done = inAllNamespaces((context) => scale(context, 'classy', { version: 'v1.33.0', controlPlane: 1, workers }))
    done.catch(() => {})
    await until(client, Cluster, 'the changes are written', (all) =>
      sharedNamespaces.every((namespace) =>
        all.some(
          ({ metadata, spec }) =>
            metadata.namespace === namespace && spec.topology?.workers?.machineDeployments?.[0]?.replicas === workers,
        ),
      ),
    )
    return { done }
  }

  const [first] = await replicas.start(1, args)
  await untilShares('one manager has all shards', shards)
  const before = new Map<LifeContext, string[]>()
  await inAllNamespaces(async (context) => {
    await client.create(Namespace, { metadata: { name: context.namespace } })
    await createClass(context)
    before.set(context, await inventory(context))
    await createCluster(context, 'classy', { version: 'v1.33.0', controlPlane: 1, workers: 2 })
  })
  progress(`one manager of ${shards} shards: a cluster is Available in each namespace`)

  let work = await beginToScale(1)
  const [second] = await replicas.start(1, args)
  await untilShares('the second manager has half of the shards', shards / 2, shards / 2)
  await work.done
  progress('a second manager joined during work, and has half of the shards')

  await replicas.route(first!)
  work = await beginToScale(3)
  let interruptedAt = performance.now()
  await first!.kill()
  await untilShares('the second manager has all shards', shards)
  progress(
    `the first manager was killed: after ${((performance.now() - interruptedAt) / 1000).toFixed(1)} s the second has all shards`,
  )
  await work.done

  work = await beginToScale(2)
  await replicas.start(1, args)
  await untilShares('the third manager has half of the shards', shards / 2, shards / 2)
  await replicas.route(second!)
  interruptedAt = performance.now()
  await second!.program.stop()
  await untilShares('the third manager has all shards', shards)
  progress(
    `the second manager was stopped: after ${((performance.now() - interruptedAt) / 1000).toFixed(1)} s the third has all shards`,
  )
  await work.done
  await inAllNamespaces(async (context) => {
    await remove(context, 'classy')
    const undeleted = await undeletedObjects(context, before.get(context)!)
    checks.check(`${context.namespace}: all objects of a deleted Cluster are deleted`, undeleted.length === 0, undeleted)
  })
  progress('deleted')
}

function checkShares(events: readonly AuditEvent[], checks: Checks): void {
  const writers = new Set<string>()
  for (const namespace of sharedNamespaces) {
    const turns = turnsOf(events.filter(({ objectRef }) => objectRef?.namespace === namespace))
    for (const { credential } of turns) writers.add(credential)
    const text = turns.map(({ credential, writes }) => `${credential.slice(-8)} ${writes}`).join(', ')
    console.log(`  writes in ${namespace}: ${text}`)
    checks.check(`${namespace}: no manager wrote after the next manager had written`, hasNoRepeatedWriter(turns), turns)
  }
  checks.check('three managers shared the work', writers.size === 3, [...writers])
}

/** Replicas of the core manager, each with its own proxy to the API server, and one local manager. */
class Replicas {
  readonly network: ReplicaProxies
  readonly #apiServer: RunningApiServer
  readonly #programs: Programs
  readonly #running: Pod[] = []
  #deployment: Deployment | undefined
  #started = 0

  constructor(apiServer: RunningApiServer, programs: Programs) {
    this.#apiServer = apiServer
    this.#programs = programs
    this.network = new ReplicaProxies(new URL(apiServer.url))
  }

  /** Starts replicas of core at free addresses. The first call also installs the Deployments and starts the local manager. */
  async start(count: number, furtherArgs: readonly string[] = []): Promise<Pod[]> {
    const started: Pod[] = []
    const [apiServer, programs] = [this.#apiServer, this.#programs]
    if (!this.#deployment) {
      this.#deployment = await install(apiServer, programs, core, { flags: ['--replicas', '3'], addresses })
      const deployment = await install(apiServer, programs, local)
      await startPod({ apiServer, programs, deployment, address: local.address })
    }
    for (const address of addresses
      .filter((candidate) => !this.#running.some((pod) => pod.address === candidate))
      .slice(0, count)) {
      const server = await this.network.startProxy(address)
      const args = ['--logging-format=text', ...furtherArgs]
      started.push(
        await startPod({ apiServer, programs, deployment: this.#deployment, address, replica: this.#started++, server, args }),
      )
    }
    this.#running.push(...started)
    await this.#route()
    return started
  }

  /** Stops all replicas of core. */
  async stop(): Promise<void> {
    for (const { program } of this.#running.splice(0)) await program.stop()
  }

  /** Returns the leading replica: the one whose log contains the holder identity of the Lease. */
  async leader(): Promise<Pod> {
    const { spec } = await this.#apiServer.client().get(Lease, lease)
    const leader = this.#running.find(({ program }) => program.tail(100_000).includes(`identity="${spec?.holderIdentity}"`))
    if (!leader) throw new Error(`No replica has the identity ${spec?.holderIdentity}`)
    return leader
  }

  /** Routes webhook requests to all running replicas except `without`. Afterwards `start` uses the address of `without` again. */
  async route(without: Pod): Promise<void> {
    this.#running.splice(this.#running.indexOf(without), 1)
    await this.#route()
  }

  #route(): Promise<void> {
    return routeTo(
      this.#apiServer.client(),
      core,
      this.#running.map(({ address }) => address),
    )
  }
}

/** TCP proxies, one for each replica. An interrupted proxy forwards no data, but closes no connection. */
class ReplicaProxies {
  readonly #server: URL
  /** Addresses of the replicas whose proxies are interrupted. */
  readonly #interrupted = new Set<string>()
  readonly #sockets = new Map<string, Socket[]>()
  readonly #closing: (() => void)[] = []

  constructor(server: URL) {
    this.#server = server
  }

  /** Starts a proxy for a replica, and returns its URL. */
  startProxy(address: string): Promise<URL> {
    this.#interrupted.delete(address)
    const sockets: Socket[] = []
    this.#sockets.set(address, sockets)
    const proxy = createServer((incoming) => {
      if (this.#interrupted.has(address)) return
      const outgoing = connect(Number(this.#server.port), this.#server.hostname)
      sockets.push(incoming, outgoing)
      incoming.pipe(outgoing).pipe(incoming)
      for (const [socket, peer] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        socket.on('error', () => {})
        socket.on('close', () => peer.destroy())
      }
    })
    this.#closing.push(() => proxy.close())
    return new Promise((resolve) =>
      proxy.listen(0, '127.0.0.1', () => {
        const { port } = proxy.address() as { port: number }
        resolve(new URL(`https://127.0.0.1:${port}`))
      }),
    )
  }

  interrupt({ address }: Pod): void {
    this.#interrupted.add(address)
    for (const socket of this.#sockets.get(address) ?? []) {
      socket.unpipe()
      socket.pause()
    }
  }

  close(): void {
    for (const sockets of this.#sockets.values()) for (const socket of sockets) socket.destroy()
    for (const close of this.#closing) close()
  }
}

/** Consecutive writes of one manager. */
interface Turn {
  /** Credential id of a manager's token; each manager has its own token. */
  readonly credential: string
  readonly from: string
  readonly to: string
  readonly writes: number
}

const CredentialId = 'authentication.kubernetes.io/credential-id'
const writeVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection']
/**
 * Resources that replicas write without leadership: Leases, and reviews that authenticate and authorize clients of metrics. `turnsOf` also
 * ignores the Secret with the webhooks' certificate, by its name.
 */
const sentByEveryReplica = ['leases', 'tokenreviews', 'subjectaccessreviews']

const hasNoRepeatedWriter = (turns: readonly Turn[]): boolean =>
  new Set(turns.map(({ credential }) => credential)).size === turns.length

/** Groups consecutive successful writes of the same manager, in the order of time. */
function turnsOf(events: readonly AuditEvent[]): Turn[] {
  const writes = events
    .filter(({ verb, objectRef, responseStatus }) => {
      const isSentByEveryReplica =
        sentByEveryReplica.includes(objectRef?.resource ?? '') || objectRef?.name?.endsWith('-webhook-service-cert') === true
      return writeVerbs.includes(verb) && !isSentByEveryReplica && (responseStatus?.code ?? 500) < 300
    })
    .sort((a, b) => (a.stageTimestamp < b.stageTimestamp ? -1 : 1))
  const turns: Turn[] = []
  for (const { user, stageTimestamp } of writes) {
    const credential = user.extra?.[CredentialId]?.[0] ?? 'without a credential'
    const previousTurn = turns.at(-1)
    if (previousTurn?.credential === credential)
      turns.splice(-1, 1, { ...previousTurn, to: stageTimestamp, writes: previousTurn.writes + 1 })
    else turns.push({ credential, from: stageTimestamp, to: stageTimestamp, writes: 1 })
  }
  return turns
}
