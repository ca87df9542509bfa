/** One of the two compared cores, with its API server, observed objects, stub providers and workload API servers. */
import { request as httpsRequest } from 'node:https'
import {
  type Client,
  ConfigMap,
  createClient,
  equal,
  Event,
  type Kind,
  keyOf,
  keyText,
  type KubeObject,
  messageOf,
  Node,
  type ObjectKey,
  Pod,
  resourceName,
  Secret,
  seconds,
  silent,
  sleep,
  systemClock,
  systemRandom,
  watchObjects,
  timestamp,
} from '@capstan/kube'
import {
  ExtensionConfig,
  Machine,
  MachineDeployment,
  MachinePool,
  RevisionAnnotation,
  WaitingHooksAnnotation,
} from '@capstan/api'
import { listen, memoryStore } from '@capstan/apiserver'
import {
  type CertifiedKey,
  formatKubeconfig,
  httpsTransport,
  issueCertificate,
  kubeconfigFor,
  loadKubeconfig,
} from '@capstan/kube/node'
import { createWorkloads, serverNameOf, type Workloads } from '@capstan/local'
import type { RunningApiServer } from '../processes/api-server.ts'
import { type CaseExtension, type ExtensionHost, startExtensionHost } from '../runtime-extension/extension-host.ts'
import { nodeCondition } from './objects.ts'
import { ReachedReasons } from './reached-reasons.ts'
import { kindList, kubeadmStub, oldStub, type Role, stub, type StubKinds, type StubObject } from './stub-kinds.ts'

const coreKind = (kind: string, plural: string, group = 'cluster.x-k8s.io'): Kind => ({
  group,
  version: 'v1beta2',
  kind,
  plural,
  scope: 'Namespaced',
})

/** Kinds whose objects in a case's namespace are compared. A kind that an API server does not serve has no objects. */
const observedKinds: readonly Kind[] = [
  coreKind('Cluster', 'clusters'),
  coreKind('ClusterClass', 'clusterclasses'),
  coreKind('Machine', 'machines'),
  coreKind('MachineSet', 'machinesets'),
  coreKind('MachineDeployment', 'machinedeployments'),
  coreKind('MachinePool', 'machinepools'),
  coreKind('MachineHealthCheck', 'machinehealthchecks'),
  coreKind('MachineDrainRule', 'machinedrainrules'),
  coreKind('ClusterResourceSet', 'clusterresourcesets', 'addons.cluster.x-k8s.io'),
  coreKind('ClusterResourceSetBinding', 'clusterresourcesetbindings', 'addons.cluster.x-k8s.io'),
  coreKind('IPAddress', 'ipaddresses', 'ipam.cluster.x-k8s.io'),
  coreKind('IPAddressClaim', 'ipaddressclaims', 'ipam.cluster.x-k8s.io'),
  ...kindList(stub),
  ...kindList(oldStub),
  ...Object.values(kubeadmStub),
  Secret,
  ConfigMap,
  Event,
]

/**
 * Kinds whose objects in workload clusters are compared. The comparison identifies them by kind and name only, so two Pods in the workload
 * clusters of a case must not have the same name, and neither must two Nodes.
 */
const workloadKinds: readonly Kind[] = [Node, Pod]

/**
 * Objects of a case, as last reported by the watches: those in its namespace and its workload clusters, and its ExtensionConfig. `setObject`
 * adds others.
 */
export interface ObservedObjects {
  readonly objects: Map<string, { readonly kind: string; readonly object: KubeObject }>
  /**
   * Names of MachineDeployments and MachinePools, including deleted ones, of which a write has changed fields that a topology sets, but not
   * the version (`isUpdated`).
   */
  readonly updated: Set<string>
  /**
   * Time of the last change, on the clock of `performance.now()`. Changes of Events, changes by `setObject`, and changes of fields that
   * `withoutRecords` omits do not count.
   */
  changed: number
}

/** Status and spec fields that a stub provider writes to an object. */
export interface Report {
  readonly status?: { readonly [field: string]: unknown }
  readonly spec?: { readonly [field: string]: unknown }
}
/**
 * Returns the report for an object, or `undefined` if the provider has not reconciled the object yet. `objects` are all observed objects of
 * the namespace.
 */
export type Behaviour = (object: StubObject, objects: readonly KubeObject[]) => Report | undefined
export type Behaviours = { readonly [role in Role]: Behaviour }

export interface StubBehaviour {
  readonly byRole: Behaviours
  /** Whether provisioned machines register Nodes: true after the case has started a workload API server. */
  readonly registersNodes: boolean
}

/** A request whose response includes warnings, which `Client` does not return. */
export interface RawRequest {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
}
export interface RawResponse {
  readonly code: number
  readonly warnings: readonly string[]
  readonly body: unknown
}

/** Annotation that `Twin` adds and removes, so that a core reconciles an object again. */
export const RefreshedAnnotation = 'twin.capstan.dev/refreshed'

/** User agent of all requests to the API server, and default field manager of writes. */
const agent = 'twin'

export class Side implements AsyncDisposable {
  /** `theirs` is upstream's core, `ours` is Capstan's. */
  readonly name: 'theirs' | 'ours'
  readonly client: Client
  readonly reachedReasons = new ReachedReasons()
  readonly #observed = new Map<string, ObservedObjects>()
  readonly #behaviours = new Map<string, StubBehaviour>()
  readonly #ended = new AbortController()
  readonly #watches: Promise<void>[] = []
  readonly #workloads: Workloads
  readonly #authority: CertifiedKey
  readonly #workloadPort: number
  readonly #close: () => Promise<void>
  readonly #apiServer: RunningApiServer
  readonly #extension: ExtensionHost
  readonly #caseExtensions = new Map<string, CaseExtension>()
  /** UIDs of stub machines whose Node was registered, so that a Node that a case deletes is not registered again. */
  readonly #registered = new Set<string>()

  private constructor(
    name: 'theirs' | 'ours',
    apiServer: RunningApiServer,
    client: Client,
    workload: { workloads: Workloads; authority: CertifiedKey; port: number; close: () => Promise<void> },
    extension: ExtensionHost,
  ) {
    this.name = name
    this.#apiServer = apiServer
    this.client = client
    this.#workloads = workload.workloads
    this.#authority = workload.authority
    this.#workloadPort = workload.port
    this.#close = workload.close
    this.#extension = extension
  }

  /**
   * Starts the listener for workload API servers and the host of the extensions, and watches the compared kinds of the management
   * cluster. The core must already be running.
   * @param served names of the CustomResourceDefinitions whose kinds the API server serves in a compared version. Other custom resources
   * are not watched.
   */
  static async open(name: 'theirs' | 'ours', apiServer: RunningApiServer, served: ReadonlySet<string>): Promise<Side> {
    const access = await loadKubeconfig(apiServer.kubeconfig)
    const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: agent })
    const options = { clock: systemClock, random: systemRandom, log: silent }
    const workloads = createWorkloads({ ...options, openStore: () => Promise.resolve(memoryStore()), gracefulDeletion: true })
    const listener = await listen({
      port: 0,
      endpointFor: (server) => (server === undefined ? undefined : workloads.endpointFor(server)),
      clock: systemClock,
    })
    const extension = await startExtensionHost(apiServer.authority)
    const close = async () => {
      await extension[Symbol.asyncDispose]()
      await listener.close(0)
      await workloads.close()
      transport.close()
    }
    const workload = { workloads, authority: apiServer.authority, port: listener.port, close }
    const side = new Side(name, apiServer, createClient(transport, { fieldManager: agent }), workload, extension)
    for (const kind of observedKinds) if (kind.group === '' || served.has(resourceName(kind))) side.#watch(kind)
    side.#watch(ExtensionConfig)
    return side
  }

  /** Returns the objects of the case with this namespace. */
  observed(namespace: string): ObservedObjects {
    const existing = this.#observed.get(namespace)
    if (existing) return existing
    const observed: ObservedObjects = { objects: new Map(), updated: new Set(), changed: performance.now() }
    this.#observed.set(namespace, observed)
    return observed
  }

  /** Returns the objects of a kind that belong to the case with this namespace. */
  objects<T extends KubeObject>(namespace: string, kind: Kind<T>): T[] {
    return [...this.observed(namespace).objects.values()]
      .filter((entry) => entry.kind === idOf(kind))
      .map(({ object }) => object as T)
  }

  /** Changes the behaviour of the stub providers, and writes their reports for all objects of the namespace that have a `Role`. */
  async setBehaviour(namespace: string, behaviour: StubBehaviour): Promise<void> {
    this.#behaviours.set(namespace, behaviour)
    for (const kinds of [stub, oldStub])
      for (const role of roles) for (const object of this.objects(namespace, kinds[role])) await this.#report(kinds, role, object)
  }

  /** Sends a request as the administrator. */
  request({ method, path, body }: RawRequest): Promise<RawResponse> {
    const { url, token, ca } = this.#apiServer
    const headers = {
      authorization: `Bearer ${token}`,
      'user-agent': agent,
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    }
    return new Promise((resolve, reject) => {
      const request = httpsRequest(`${url}${path}`, { method, headers, ca }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('error', reject)
        response.once('end', () => {
          const { warning = [] } = response.headersDistinct
          const text = Buffer.concat(chunks).toString()
          resolve({ code: response.statusCode ?? 0, warnings: warning, body: JSON.parse(text) as unknown })
        })
      })
      request.once('error', reject)
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** Returns the extension of a case, which has a handler for every hook except Discovery. Creates the extension at the first call. */
  extensionFor(namespace: string): CaseExtension {
    const existing = this.#caseExtensions.get(namespace)
    if (existing) return existing
    const caseExtension = this.#extension.extensionFor(namespace)
    this.#caseExtensions.set(namespace, caseExtension)
    return caseExtension
  }

  /** Creates an ExtensionConfig for the extension of a case. */
  async createExtensionConfig(namespace: string, name = namespace): Promise<void> {
    await this.client.create(ExtensionConfig, {
      metadata: { name },
      spec: {
        clientConfig: {
          url: this.extensionFor(namespace).url,
          caBundle: Buffer.from(this.#apiServer.authority.certificate).toString('base64'),
        },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      },
    })
  }

  /** Starts the API server of a workload cluster. @returns a kubeconfig for it */
  async startWorkload(cluster: ObjectKey): Promise<string> {
    const client = await this.#workloads.join(cluster, 'twin', {
      authority: this.#authority,
      endpointHost: '127.0.0.1',
      kubernetesVersion: 'v1.35.0',
    })
    for (const kind of workloadKinds) this.#watchWorkload(cluster.namespace!, client, kind)
    const user = await issueCertificate(this.#authority, systemClock, {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usages: ['client'],
    })
    return formatKubeconfig(
      kubeconfigFor(cluster.name, {
        server: `https://127.0.0.1:${this.#workloadPort}`,
        servername: serverNameOf(cluster),
        ca: this.#authority.certificate,
        certificate: user.certificate,
        key: user.key,
      }),
    )
  }

  /** Returns a client of the API server of a workload cluster. @throws Error if this API server does not run */
  workload(cluster: ObjectKey): Client {
    const client = this.#workloads.clientFor(cluster)
    if (!client)
      throw new Error(
        `The workload API server of ${keyText(cluster)} does not run: the case has not started it, or has stopped it`,
      )
    return client
  }

  /** Stops the API server of a workload cluster, so that connections to it fail. */
  stopWorkload(cluster: ObjectKey): Promise<void> {
    return this.#workloads.leave(cluster, 'twin')
  }

  #watch(kind: Kind): void {
    const run = async () => {
      const options = { clock: systemClock, random: systemRandom, signal: this.#ended.signal }
      for await (const event of watchObjects(this.client, kind, options)) {
        const objects = event.kind === 'replaced' ? event.objects : event.kind === 'applied' ? [event.object] : []
        for (const object of objects) {
          this.#put(caseOf(object), kind, object)
          if (isOfCore(kind)) this.reachedReasons.record(kind, object)
          void this.reportFor(kind, object)
        }
        if (event.kind === 'deleted') this.#put(caseOf(event.object), kind, event.object, true)
      }
    }
    this.#watches.push(run())
  }

  #watchWorkload(namespace: string, client: Client, kind: Kind): void {
    const run = async () => {
      const options = { clock: systemClock, random: systemRandom, signal: this.#ended.signal }
      for await (const event of watchObjects(client, kind, options)) {
        const objects = event.kind === 'replaced' ? event.objects : event.kind === 'applied' ? [event.object] : []
        for (const object of objects) this.#put(namespace, kind, object)
        if (event.kind === 'deleted') this.#put(namespace, kind, event.object, true)
      }
    }
    this.#watches.push(run())
  }

  /**
   * Adds an object to the compared objects of a namespace; `undefined` removes it. `name` identifies the object, and replaces its kind in
   * differences.
   */
  setObject(namespace: string, name: string, object: KubeObject | undefined): void {
    if (object) this.observed(namespace).objects.set(name, { kind: name, object })
    else this.observed(namespace).objects.delete(name)
  }

  #put(namespace: string, kind: Kind, object: KubeObject, deleted = false): void {
    const observed = this.observed(namespace)
    const id = `${idOf(kind)} ${object.metadata.name}`
    const previousObject = observed.objects.get(id)?.object
    if (deleted) observed.objects.delete(id)
    else observed.objects.set(id, { kind: idOf(kind), object })
    if (
      (kind.kind === MachineDeployment.kind || kind.kind === MachinePool.kind) &&
      previousObject &&
      isUpdated(previousObject, object)
    )
      observed.updated.add(object.metadata.name)
    if (kind.kind === 'Event' || (!deleted && previousObject && withoutRecords(previousObject) === withoutRecords(object))) return
    observed.changed = performance.now()
  }

  /**
   * Writes the report of a stub provider for its object, and registers the Node of an infrastructure machine. For a Machine, does so for
   * the Machine's infrastructure machine. For other objects, does nothing.
   */
  async reportFor(kind: Kind, object: KubeObject): Promise<void> {
    if (kind.kind === Machine.kind) {
      const { name } = (object as Machine).spec.infrastructureRef
      for (const kinds of [stub, oldStub]) {
        const infrastructure = this.objects(caseOf(object), kinds.machine).find(({ metadata }) => metadata.name === name)
        if (infrastructure) await this.reportFor(kinds.machine, infrastructure)
      }
      return
    }
    const kinds = [stub, oldStub].find(({ group }) => group === kind.group)
    const role = kinds && roles.find((candidate) => kinds[candidate].kind === kind.kind)
    if (!kinds || !role) return
    try {
      await this.#report(kinds, role, object as StubObject)
    } catch (err) {
      if (!this.#ended.signal.aborted) console.log(`${this.name}: the stub of ${kind.kind} failed: ${messageOf(err)}`)
    }
  }

  async #report(kinds: StubKinds, role: Role, object: StubObject): Promise<void> {
    const { namespace = '' } = object.metadata
    const behaviour = this.#behaviours.get(namespace)
    if (!behaviour || object.metadata.deletionTimestamp !== undefined) return
    const objects = [...this.observed(namespace).objects.values()].map((entry) => entry.object)
    const report = behaviour.byRole[role](object, objects)
    if (!report) return
    const write = async (part: 'spec' | 'status') => {
      if (report[part] === undefined || contains(object[part], report[part])) return
      const patch = { type: 'merge', body: { [part]: report[part] } } as const
      const options = { fieldManager: 'stub', ...(part === 'status' ? { subresource: 'status' as const } : {}) }
      // The object may have been deleted in the meantime.
      await this.client.patch(kinds[role], keyOf(object), patch, options).catch(() => undefined)
    }
    await write('spec')
    await write('status')
    const providerID = report.spec?.providerID
    if (role === 'machine' && behaviour.registersNodes && typeof providerID === 'string') await this.#register(object, providerID)
  }

  /** Registers the Node, as the kubelet of the machine does. */
  async #register(machine: StubObject, providerID: string): Promise<void> {
    const { namespace = '', name, labels = {} } = machine.metadata
    const cluster = labels['cluster.x-k8s.io/cluster-name']
    // Core has not adopted the infrastructure machine yet.
    if (cluster === undefined) return
    const version = this.#versionOf(namespace, name)
    // No Machine refers to the infrastructure machine yet. The watch event of such a Machine calls this function again.
    if (version === undefined) return
    const client = this.#workloads.clientFor({ namespace, name: cluster })
    // Without a client, the workload API server does not run, so no kubelet can register a Node.
    if (!client || this.#registered.has(machine.metadata.uid)) return
    this.#registered.add(machine.metadata.uid)
    const metadata = { name, labels: { 'kubernetes.io/hostname': name } }
    const taints = [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' as const }]
    const time = timestamp(systemClock.now())
    const conditions = [
      ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => nodeCondition(type, 'False', { time })),
      nodeCondition('Ready', 'True', { time }),
    ]
    try {
      await client.create(Node, { metadata, spec: { providerID, taints } }, { fieldManager: 'kubelet' })
      await reportNodeStatus(client, name, { conditions, nodeInfo: nodeInfoOf(version) })
    } catch {
      // Expected if a Node of this name exists already.
    }
  }

  /**
   * Returns the version of the Machine that refers to the stub machine, by default v1.35.0; `undefined` without such a Machine.
   */
  #versionOf(namespace: string, name: string): string | undefined {
    const machine = this.objects(namespace, Machine).find(({ spec }) => spec.infrastructureRef.name === name)
    return machine && (machine.spec.version ?? 'v1.35.0')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort()
    await Promise.race([Promise.allSettled(this.#watches), sleep(systemClock, seconds(2))])
    await this.#close()
  }
}

/**
 * Returns the namespace of the case of an object. An ExtensionConfig has no namespace: the first one of a case has the name of the case's
 * namespace. A second one has another name, and is therefore not compared.
 */
const caseOf = ({ metadata }: KubeObject): string => metadata.namespace ?? metadata.name

/**
 * Returns the object as text, without the annotation in which Capstan records blocking hooks, and without fields that change with
 * every write.
 */
function withoutRecords({ metadata, ...otherFields }: KubeObject): string {
  const { resourceVersion: _version, managedFields: _fields, annotations = {}, ...otherMetadata } = metadata
  const { [WaitingHooksAnnotation]: _record, ...otherAnnotations } = annotations
  return JSON.stringify([otherMetadata, otherAnnotations, otherFields])
}

/** Whether a write changed fields of a MachineDeployment or MachinePool that a topology sets, without a change of the version. */
function isUpdated(previousObject: KubeObject, after: KubeObject): boolean {
  const topologyFields = ({ metadata: { labels, annotations = {} }, spec }: MachineDeployment & MachinePool) => {
    // A topology does not set these fields: controllers set the revision, the providerIDs and the data Secret, and `Twin` sets the
    // annotation of a refresh.
    const { [RevisionAnnotation]: _revision, [RefreshedAnnotation]: _refreshed, ...otherAnnotations } = annotations
    const { providerIDList: _ids, template, ...otherFields } = spec
    const { dataSecretName: _secret, ...bootstrap } = template.spec.bootstrap
    return [labels ?? {}, otherAnnotations, otherFields, template.metadata ?? {}, { ...template.spec, bootstrap }]
  }
  const [previous, next] = [previousObject, after] as (MachineDeployment & MachinePool)[]
  return (
    !equal(topologyFields(previous!), topologyFields(next!)) &&
    previous!.spec.template.spec.version === next!.spec.template.spec.version
  )
}

const roles: readonly Role[] = ['cluster', 'controlPlane', 'machine', 'config']

const isOfCore = ({ group }: Kind): boolean => group === 'cluster.x-k8s.io' || group.endsWith('.cluster.x-k8s.io')

const idOf = ({ group, kind }: Kind): string => (group === '' ? kind : `${kind}.${group}`)

/** Patches the status of a Node, as its kubelet does. */
export const reportNodeStatus = (client: Client, name: string, status: object): Promise<Node> =>
  client.patch(Node, { name }, { type: 'merge', body: { status } }, { subresource: 'status', fieldManager: 'kubelet' })

export const nodeInfoOf = (version: string) => ({
  architecture: 'amd64',
  bootID: 'twin',
  containerRuntimeVersion: 'twin://1',
  kernelVersion: 'twin',
  kubeProxyVersion: '',
  kubeletVersion: version,
  machineID: 'twin',
  operatingSystem: 'linux',
  osImage: 'twin',
  systemUUID: 'twin',
})

/**
 * Whether `whole` has all fields of `part` with the same values. `null` in `part` requires that the field is absent or null.
 */
function contains(whole: unknown, part: unknown): boolean {
  if (part === null) return whole === undefined || whole === null
  if (typeof part !== 'object' || Array.isArray(part)) return JSON.stringify(whole) === JSON.stringify(part)
  const fields = (whole ?? {}) as { readonly [field: string]: unknown }
  return Object.entries(part).every(([name, value]) => contains(fields[name], value))
}
