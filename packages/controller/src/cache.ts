/** Every informer of a manager behind one reader. Kinds are watched from the first time somebody asks for them. */
import type { Client, Clock, Kind, KubeObject, Logger, ObjectKey, ObjectList, Random } from '@capstan/kube'
import { apiVersionOf, badRequest, keyText, notFound, parseLabelSelector, resourceName, watchObjects } from '@capstan/kube'
import type { Cache, Index } from './controller.ts'
import { Informer } from './informer.ts'

export interface InformersOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

export class Informers implements Cache {
  readonly #options: InformersOptions
  readonly #informers = new Map<string, Informer>()
  readonly #following: Promise<void>[] = []

  constructor(options: InformersOptions) {
    this.#options = options
  }

  /** The informer of a kind, started when there was none. `synced` tells when it holds all there is. */
  start(kind: Kind): Informer {
    const name = `${resourceName(kind)}/${kind.version}`
    const known = this.#informers.get(name)
    if (known) return known
    const informer = new Informer(kind)
    this.#informers.set(name, informer)
    const { client, ...rest } = this.#options
    this.#following.push(informer.follow(watchObjects(client, kind, rest)))
    return informer
  }

  find(kind: Kind): Informer | undefined {
    return this.#informers.get(`${resourceName(kind)}/${kind.version}`)
  }

  all(): readonly Informer[] {
    return [...this.#informers.values()]
  }

  /** Resolves when every watch has ended after the signal's abort. */
  async stopped(): Promise<void> {
    await Promise.allSettled(this.#following)
  }

  peek<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined {
    return this.#informer(kind).get(key) as T | undefined
  }

  get<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): Promise<T> {
    const object = this.peek(kind, key)
    return object ? Promise.resolve(object) : Promise.reject(notFound(kind, key.name))
  }

  list<T extends KubeObject>(kind: Kind<T>, options: Parameters<Cache['list']>[1] = {}): Promise<ObjectList<T>> {
    if (options.fieldSelector)
      throw badRequest(`Cannot list ${resourceName(kind)} from the cache by field selector: use an index`)
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

  /** A requirement `label = value` narrows by index; the whole selector then decides. */
  #select(informer: Informer, labelSelector: string, namespace: string | undefined): KubeObject[] {
    const selector = parseLabelSelector(labelSelector)
    const exact = selector.requirements.find(({ operator, values }) => operator === '=' && values.length === 1)
    const candidates = exact ? informer.byLabel(exact.key, exact.values[0]!) : informer.list(namespace)
    return candidates.filter(
      ({ metadata }) => (namespace === undefined || metadata.namespace === namespace) && selector.matches(metadata.labels ?? {}),
    )
  }

  #informer(kind: Kind): Informer {
    const informer = this.find(kind)
    if (!informer) throw new Error(`Cannot read ${resourceName(kind)} from the cache: no controller watches it`)
    return informer
  }
}

const byKey = (a: KubeObject, b: KubeObject): number => {
  const left = keyText(a.metadata)
  const right = keyText(b.metadata)
  return left < right ? -1 : left > right ? 1 : 0
}
