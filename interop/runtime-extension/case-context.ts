/** The environment of a case: a namespace with its own ExtensionConfig, class and cluster, and the record of its observations. */
import { Cluster, ClusterClass, ExtensionConfig, pendingHooks } from '@capstan/api'
import type { HandlerOptions } from '@capstan/extension'
import {
  type Client,
  getCondition,
  type Input,
  isRecord,
  type KubeObject,
  Namespace,
  seconds,
  sleep,
  systemClock,
} from '@capstan/kube'
import { until } from '../shared/until.ts'
import type { CaseExtension, ExtensionHost } from './extension-host.ts'
import { stubVersion, templates } from './stub-providers.ts'

/** The observations of one core by name. Every core must have the same. */
export type Observations = Map<string, string>

/** Time limit of a single step in seconds, for a busy machine. */
const Limit = 180

export interface ContextOptions {
  readonly client: Client
  readonly extension: ExtensionHost
  /** Certificate authority of the extension in PEM. */
  readonly ca: string
  readonly observed: Observations
}

export type Topology = NonNullable<Cluster['spec']['topology']>
export type ClassSpec = Input<ClusterClass>['spec']

export class CaseContext {
  readonly name: string
  readonly client: Client
  readonly extension: CaseExtension
  readonly #options: ContextOptions

  private constructor(name: string, caseExtension: CaseExtension, options: ContextOptions) {
    this.name = name
    this.client = options.client
    this.extension = caseExtension
    this.#options = options
  }

  /** Creates a namespace with a discovered extension. `handlers`: options of all handlers in the discovery response. */
  static async open(name: string, options: ContextOptions, handlers: Omit<HandlerOptions, 'name'> = {}): Promise<CaseContext> {
    const context = new CaseContext(name, options.extension.extensionFor(name, handlers), options)
    await options.client.create(Namespace, { metadata: { name } })
    await context.createExtensionConfig(name, context.extension)
    await context.waitUntilDiscovered(name, 'True')
    return context
  }

  /** Records an observation. Fields of objects are sorted alphabetically. */
  record(name: string, value: unknown): void {
    this.#options.observed.set(`${this.name}: ${name}`, typeof value === 'string' ? value : JSON.stringify(sorted(value)))
  }

  get key(): { namespace: string; name: string } {
    return { namespace: this.name, name: 'demo' }
  }

  /**
   * Creates an ExtensionConfig for this namespace, or for `namespace`. With `annotations` it has no caBundle, because they name
   * a Secret from which core injects it.
   */
  async createExtensionConfig(
    config: string,
    { url }: CaseExtension,
    { annotations, namespace = this.name }: { annotations?: { [key: string]: string }; namespace?: string } = {},
  ): Promise<void> {
    const caBundle = Buffer.from(this.#options.ca).toString('base64')
    await this.client.create(ExtensionConfig, {
      metadata: { name: config, ...(annotations ? { annotations } : {}) },
      spec: {
        clientConfig: { url, ...(annotations ? {} : { caBundle }) },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        settings: { said: 'by the config', config },
      },
    })
  }

  async waitUntilDiscovered(config: string, status: 'True' | 'False'): Promise<ExtensionConfig> {
    const hasStatus = (candidate: ExtensionConfig) =>
      candidate.metadata.name === config && getCondition(candidate, 'Discovered')?.status === status
    const configs = await until(
      this.client,
      ExtensionConfig,
      `Discovered of ${config} is ${status}`,
      (all) => all.some(hasStatus),
      {
        seconds: Limit,
      },
    )
    return configs.find(hasStatus)!
  }

  async createClass(fields: Partial<ClassSpec> = {}): Promise<void> {
    const templateRef = (kind: string) => ({ apiVersion: stubVersion, kind, name: 'demo' })
    for (const kind of templates)
      await this.client.create(kind, { metadata: this.key, spec: { template: { spec: { made: 'by the class' } } } })
    await this.client.create(ClusterClass, {
      metadata: this.key,
      spec: {
        infrastructure: { templateRef: templateRef('StubClusterTemplate') },
        controlPlane: { templateRef: templateRef('StubControlPlaneTemplate') },
        workers: {
          machineDeployments: [
            {
              class: 'worker',
              bootstrap: { templateRef: templateRef('StubConfigTemplate') },
              infrastructure: { templateRef: templateRef('StubMachineTemplate') },
            },
          ],
        },
        ...fields,
      },
    })
  }

  async createCluster(version = 'v1.35.0', fields: Partial<Topology> = {}): Promise<void> {
    await this.client.create(Cluster, {
      metadata: this.key,
      spec: {
        clusterNetwork: { pods: { cidrBlocks: ['192.168.0.0/16'] } },
        topology: { classRef: { name: 'demo' }, version, ...fields },
      },
    })
  }

  /**
   * Waits until the message of the condition TopologyReconciled matches, or its status is True. Returns the condition as text.
   */
  async waitUntilReconciled(message: RegExp | 'True'): Promise<string> {
    const conditionOf = (candidate: Cluster | undefined) =>
      candidate ? getCondition(candidate, 'TopologyReconciled') : undefined
    const [cluster] = await this.waitFor(
      Cluster,
      `TopologyReconciled of ${this.name} matches ${String(message)}`,
      ([candidate]) => {
        const condition = conditionOf(candidate)
        return message === 'True' ? condition?.status === 'True' : message.test(condition?.message ?? '')
      },
    )
    return conditionText(conditionOf(cluster)!)
  }

  waitFor<T extends KubeObject>(
    kind: Parameters<typeof until<T>>[1],
    description: string,
    isReached: (objects: T[]) => boolean,
  ): Promise<T[]> {
    return until(this.client, kind, `${this.name}: ${description}`, isReached, { namespace: this.name, seconds: Limit })
  }

  /**
   * Waits until no hook is pending, also not three seconds later, and the topology is reconciled. Upstream can add a hook to
   * the pending hooks again after it has removed it, and then calls the hook once more.
   */
  async waitUntilNoHookIsPending(): Promise<string> {
    const isDone = (cluster: Cluster | undefined) => cluster !== undefined && pendingHooks(cluster).size === 0
    for (;;) {
      await this.waitFor(Cluster, 'has no pending hook', ([cluster]) => isDone(cluster))
      await sleep(systemClock, seconds(3))
      if (isDone(await this.client.get(Cluster, this.key))) return this.waitUntilReconciled('True')
    }
  }

  /**
   * Waits until core has seen that the control plane runs. Before that, upstream's webhook rejects another version of the topology. The
   * webhook reads the control plane from core's cache, which may receive its status later than this client.
   */
  async waitUntilControlPlaneRuns(): Promise<void> {
    await this.waitFor(
      Cluster,
      'has an initialized control plane',
      ([cluster]) => cluster?.status?.initialization?.controlPlaneInitialized === true,
    )
  }

  /** Waits until the extension was called at least `times` times for a hook. @returns the times of all calls in milliseconds */
  async waitUntilCalled(hook: string, times: number, caseExtension = this.extension): Promise<number[]> {
    const end = performance.now() + Limit * 1000
    for (;;) {
      const calls = caseExtension.calls.filter((call) => call.hook === hook)
      if (calls.length >= times) return calls.map(({ at }) => at)
      if (performance.now() > end) throw new Error(`${this.name}: ${hook} was called ${calls.length} times, not ${times}`)
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
  }

  /** Changes an annotation, so that the object is reconciled again. */
  async touch(kind: Parameters<Client['patch']>[0], key: { namespace?: string; name: string }): Promise<void> {
    const annotations = { 'interop.capstan.dev/touched': String(performance.now()) }
    await this.client.patch(kind, key, { type: 'merge', body: { metadata: { annotations } } })
  }
}

export const conditionText = ({
  status,
  reason = '',
  message = '',
}: {
  status: string
  reason?: string
  message?: string
}): string => [`${status} ${reason}`, ...(message === '' ? [] : [message])].join(': ')

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  )
}
