/** Reads from all informers of a manager. Each watched kind has one informer, which all controllers share. */
import type { Client, Clock, Kind, KubeObject, Logger, ObjectKey, ObjectList, Random } from '@capstan/kube'
import {
  apiVersionOf,
  badRequest,
  keyText,
  minutes,
  notFound,
  parseLabelSelector,
  resourceName,
  watchObjects,
} from '@capstan/kube'
import type { Cache, Index } from './controller.ts'
import { Informer } from './informer.ts'
import { unlessAborted, withTimeout } from './unless-aborted.ts'

export interface InformersOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** The only namespace whose objects are watched; all namespaces when absent. Cluster-scoped kinds are always watched. */
  readonly namespace?: string
}

/** Time limit of a catch-up. After it, the calls of `waitUntilCurrent` that wait for the catch-up reject, so that their callers try again. */
const CatchUpLimit = minutes(1)

export class Informers implements Cache {
  readonly #options: InformersOptions
  readonly #informers = new Map<string, Informer>()
  readonly #following: Promise<void>[] = []
  #catchUp: Promise<void> = Promise.resolve()
  #nextCatchUp: Promise<void> | undefined

  constructor(options: InformersOptions) {
    this.#options = options
  }

  /** Returns the informer of a kind, and starts it if necessary. Its `synced` resolves after the initial list. */
  start(kind: Kind): Informer {
    const name = `${resourceName(kind)}/${kind.version}`
    const existing = this.#informers.get(name)
    if (existing) return existing
    const informer = new Informer(kind)
    this.#informers.set(name, informer)
    const { client, namespace, ...rest } = this.#options
    const selection = namespace === undefined || kind.scope === 'Cluster' ? {} : { namespace }
    this.#following.push(informer.follow(watchObjects(client, kind, { ...rest, ...selection })))
    return informer
  }

  find(kind: Kind): Informer | undefined {
    return this.#informers.get(`${resourceName(kind)}/${kind.version}`)
  }

  all(): readonly Informer[] {
    return [...this.#informers.values()]
  }

  /**
   * Resolves when the cache contains all objects of the watched kinds that exist at the time of the call, each in its state at that time
   * or a newer state. For this, a catch-up lists the objects, and waits until the cache has them. Rejects when the catch-up takes longer than
   * `CatchUpLimit`, a list fails, or `signal` or the signal of the options aborts. A call during a catch-up waits for its end, and then for the
   * next catch-up.
   */
  waitUntilCurrent(signal: AbortSignal): Promise<void> {
    // The lists of a catch-up in progress can lack objects that were created after it began. Calls therefore share the next catch-up.
    this.#nextCatchUp ??= this.#catchUp.then(() => {
      this.#nextCatchUp = undefined
      const { clock, signal } = this.#options
      const catchUpAll = (limit: AbortSignal) => Promise.all(this.all().map((informer) => this.#catchUpWith(informer, limit)))
      const completed = withTimeout(clock, CatchUpLimit, catchUpAll, signal).then(() => undefined)
      this.#catchUp = completed.catch(() => {})
      return completed
    })
    return unlessAborted(this.#nextCatchUp, signal)
  }

  async #catchUpWith(informer: Informer, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options
    await unlessAborted(informer.synced, signal)
    const selection = namespace === undefined || informer.kind.scope === 'Cluster' ? {} : { namespace }
    const { items } = await client.list(informer.kind, { ...selection, metadataOnly: true, signal })
    for (const { metadata } of items) {
      const received = informer.waitForRevision(keyText(metadata), Number(metadata.resourceVersion))
      if (received) await unlessAborted(received, signal)
    }
  }

  /** Resolves when every watch has ended after the signal's abort. */
  async waitUntilStopped(): Promise<void> {
    await Promise.allSettled(this.#following)
  }

  peek<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined {
    this.#checkNamespace('get', key.namespace, keyText(key))
    return this.#informer(kind).get(key) as T | undefined
  }

  newest<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined {
    this.#checkNamespace('get', key.namespace, keyText(key))
    return this.#informer(kind).newest(key) as T | undefined
  }

  async get<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): Promise<T> {
    const object = this.peek(kind, key)
    if (!object) throw notFound(kind, key.name)
    return object
  }

  list<T extends KubeObject>(kind: Kind<T>, options: Parameters<Cache['list']>[1] = {}): Promise<ObjectList<T>> {
    if (options.fieldSelector)
      throw badRequest(`Cannot list ${resourceName(kind)} from the cache by field selector: use an index`)
    this.#checkNamespace('list', options.namespace, options.namespace)
    const informer = this.#informer(kind)
    const items = options.labelSelector
      ? this.#select(informer, options.labelSelector, options.namespace)
      : informer.list(options.namespace)
    return Promise.resolve({
      apiVersion: apiVersionOf(kind),
      kind: `${kind.kind}List`,
      metadata: { resourceVersion: String(informer.revision) },
      items: items.sort(byKey) as T[],
    })
  }

  byIndex<T extends KubeObject>(index: Index<T>, value: string): readonly T[] {
    return this.#informer(index.kind).byIndex(index, value).sort(byKey)
  }

  /** Returns the objects that match the selector. If it has a requirement `label = value`, an index selects the candidates. */
  #select(informer: Informer, labelSelector: string, namespace: string | undefined): KubeObject[] {
    const selector = parseLabelSelector(labelSelector)
    const exact = selector.requirements.find(({ operator, values }) => operator === '=' && values.length === 1)
    const candidates = exact ? informer.byLabel(exact.key, exact.values[0]!) : informer.list(namespace)
    return candidates.filter(
      ({ metadata }) => (namespace === undefined || metadata.namespace === namespace) && selector.matches(metadata.labels ?? {}),
    )
  }

  /** Throws, with upstream's text, for a namespace that is not watched: its objects may exist, and must not appear to be deleted. */
  #checkNamespace(verb: 'get' | 'list', namespace: string | undefined, name: string | undefined): void {
    const { namespace: watched } = this.#options
    if (watched !== undefined && namespace !== undefined && namespace !== watched)
      throw new Error(`unable to ${verb}: ${name} because of unknown namespace for the cache`)
  }

  #informer(kind: Kind): Informer {
    const informer = this.find(kind)
    if (!informer) throw new Error(`Cannot read ${resourceName(kind)} from the cache: no controller watches it`)
    return informer
  }
}

const byKey = (a: KubeObject, b: KubeObject): number => {
  const keyOfA = keyText(a.metadata)
  const keyOfB = keyText(b.metadata)
  return keyOfA < keyOfB ? -1 : keyOfA > keyOfB ? 1 : 0
}
