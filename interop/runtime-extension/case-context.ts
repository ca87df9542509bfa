/**
 * The environment of a case: a namespace, an ExtensionConfig, a ClusterClass and a Cluster of its own, and the record of observations.
 */
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

/** Observed values, by `CASE: NAME`, of all cases with one core (upstream's or Capstan's). They must be the same with every core. */
export type Observations = Map<string, string>

/** Time limit of a single step in seconds, for a busy machine. */
const Limit = 180

/** Arguments that all cases with one core share. */
export interface ContextOptions {
  readonly client: Client
  readonly extension: ExtensionHost
  /** Certificate authority of the extension in PEM. */
  readonly ca: string
  readonly observed: Observations
}

export type Topology = NonNullable<Cluster['spec']['topology']>
export type ClassSpec = Input<ClusterClass>['spec']

/** The environment of one case. Namespace, extension and ExtensionConfig have the name of the case; class and Cluster are named `demo`. */
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

  /**
   * Creates the namespace, the extension and its ExtensionConfig, and waits until the extension is discovered. `handlerOptions` are
   * options that the discovery response contains for every handler.
   */
  static async open(
    name: string,
    options: ContextOptions,
    handlerOptions: Omit<HandlerOptions, 'name'> = {},
  ): Promise<CaseContext> {
    const context = new CaseContext(name, options.extension.extensionFor(name, handlerOptions), options)
    await options.client.create(Namespace, { metadata: { name } })
    await context.createExtensionConfig(name, context.extension)
    await context.waitUntilDiscovered(name, 'True')
    return context
  }

  /** Records an observation. Fields of objects are sorted alphabetically. */
  record(name: string, value: unknown): void {
    this.#options.observed.set(`${this.name}: ${name}`, typeof value === 'string' ? value : JSON.stringify(sorted(value)))
  }

  /** Key of the class, its templates and the Cluster. */
  get key(): { namespace: string; name: string } {
    return { namespace: this.name, name: 'demo' }
  }

  /**
   * Creates an ExtensionConfig that selects the namespace of the case, or `namespace`. With `annotations` it has no caBundle: core injects
   * the bundle from a Secret that the annotations name.
   */
  async createExtensionConfig(
    configName: string,
    { url }: CaseExtension,
    { annotations, namespace = this.name }: { annotations?: { [key: string]: string }; namespace?: string } = {},
  ): Promise<void> {
    const caBundle = Buffer.from(this.#options.ca).toString('base64')
    await this.client.create(ExtensionConfig, {
      metadata: { name: configName, ...(annotations ? { annotations } : {}) },
      spec: {
        clientConfig: { url, ...(annotations ? {} : { caBundle }) },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        settings: { said: 'by the config', config: configName },
      },
    })
  }

  /** Waits until the condition Discovered of an ExtensionConfig has this status. Returns the ExtensionConfig. */
  async waitUntilDiscovered(configName: string, status: 'True' | 'False'): Promise<ExtensionConfig> {
    const hasStatus = (candidate: ExtensionConfig) =>
      candidate.metadata.name === configName && getCondition(candidate, 'Discovered')?.status === status
    const configs = await until(
      this.client,
      ExtensionConfig,
      `Discovered of ${configName} is ${status}`,
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
   * Waits until the message of the Cluster's condition TopologyReconciled matches, or, for `'True'`, until the status of the condition is
   * True. Returns the condition as text.
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
   * Waits until no hook is pending and the topology is reconciled. Returns the condition TopologyReconciled as text. Checks a second time
   * after three seconds that no hook is pending, because upstream can add a hook to the pending hooks again after removing it, and then
   * calls the hook once more.
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
   * Waits until core has reported that the control plane is initialized. Before that, upstream's webhook rejects another version of the
   * topology: the webhook reads the control plane from core's cache, which may receive the status of the control plane later than this
   * client.
   */
  async waitUntilControlPlaneRuns(): Promise<void> {
    await this.waitFor(
      Cluster,
      'has an initialized control plane',
      ([cluster]) => cluster?.status?.initialization?.controlPlaneInitialized === true,
    )
  }

  /** Waits until the extension has received at least `count` calls of a hook. @returns the times of all calls in milliseconds */
  async waitUntilCalled(hook: string, count: number, caseExtension = this.extension): Promise<number[]> {
    const end = performance.now() + Limit * 1000
    for (;;) {
      const calls = caseExtension.calls.filter((call) => call.hook === hook)
      if (calls.length >= count) return calls.map(({ at }) => at)
      if (performance.now() > end) throw new Error(`${this.name}: ${hook} was called ${calls.length} times, not ${count}`)
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
  }

  /** Changes an annotation, so that the object is reconciled again. */
  async touch(kind: Parameters<Client['patch']>[0], key: { namespace?: string; name: string }): Promise<void> {
    const annotations = { 'interop.capstan.dev/touched': String(performance.now()) }
    await this.client.patch(kind, key, { type: 'merge', body: { metadata: { annotations } } })
  }
}

/** Formats a condition as `STATUS REASON: MESSAGE`, or as `STATUS REASON` if the message is empty. */
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
