import type { ExtensionConfig } from '@capstan/api'

/**
 * Warm-up: the first discovery of every ExtensionConfig. Until each one that existed at the start was tried, "no handler" is not reliable
 * and no hook can be called. An unreachable extension is registered with the handlers of its status, so that Clusters that it selects fail
 * closed and all others continue. Later ExtensionConfigs are also awaited: a Cluster created right after one must not bypass its hooks.
 * Upstream: the warm-up of core/reconcilers/extensionconfig, which ends the process instead and does not wait for later ones.
 */
export class Warmup {
  readonly #onEnd: (configs: readonly ExtensionConfig[]) => void
  /** Uids by name: an ExtensionConfig that was deleted and recreated has not been tried. */
  readonly #tried = new Map<string, string>()
  readonly #discovered = new Map<string, ExtensionConfig>()
  #all: readonly ExtensionConfig[] | undefined
  #isOver = false

  constructor(onEnd: (configs: readonly ExtensionConfig[]) => void) {
    this.#onEnd = onEnd
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Sets the ExtensionConfigs that exist at the start. */
  begin(configs: readonly ExtensionConfig[]): void {
    this.#all = configs
    this.#endIfAllTried()
  }

  hasTried({ metadata }: ExtensionConfig): boolean {
    return this.#tried.get(metadata.name) === metadata.uid
  }

  /** Records that an ExtensionConfig was tried; `config` has the handlers to start with. */
  recordTried(config: ExtensionConfig): void {
    this.#tried.set(config.metadata.name, config.metadata.uid)
    if (this.#isOver) return
    this.#discovered.set(config.metadata.name, config)
    this.#endIfAllTried()
  }

  forget(name: string): void {
    this.#tried.delete(name)
    this.#discovered.delete(name)
    if (this.#isOver || !this.#all) return
    this.#all = this.#all.filter(({ metadata }) => metadata.name !== name)
    this.#endIfAllTried()
  }

  #endIfAllTried(): void {
    if (this.#isOver || !this.#all?.every((config) => this.hasTried(config))) return
    this.#isOver = true
    this.#onEnd([...this.#discovered.values()])
    this.#discovered.clear()
  }
}
