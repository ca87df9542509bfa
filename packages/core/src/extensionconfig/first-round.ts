import type { ExtensionConfig } from '@capstan/api'

/**
 * The first try of every ExtensionConfig. Until each one that was there at the start had its turn, "no handler" means nothing and
 * no hook can be called. One that cannot be reached takes part with the handlers that its status remembers, so that Clusters that
 * it matches fail closed and all others go on. One that comes later is waited for, too: a Cluster made right after it must not slip
 * past its hooks. Upstream: the warm-up of core/reconcilers/extensionconfig, which ends the process instead, and does not wait later.
 */
export class FirstRound {
  readonly #done: (configs: readonly ExtensionConfig[]) => void
  /** Uids by name: one that was deleted and made again has not been tried. */
  readonly #tried = new Map<string, string>()
  readonly #toBeginWith = new Map<string, ExtensionConfig>()
  #all: readonly ExtensionConfig[] | undefined
  #over = false

  constructor(done: (configs: readonly ExtensionConfig[]) => void) {
    this.#done = done
  }

  get over(): boolean {
    return this.#over
  }

  /** Tells which ExtensionConfigs there are at the start. */
  begin(configs: readonly ExtensionConfig[]): void {
    this.#all = configs
    this.#end()
  }

  hasTried({ metadata }: ExtensionConfig): boolean {
    return this.#tried.get(metadata.name) === metadata.uid
  }

  /** It had its turn; `config` has the handlers to begin with. */
  tried(config: ExtensionConfig): void {
    this.#tried.set(config.metadata.name, config.metadata.uid)
    if (this.#over) return
    this.#toBeginWith.set(config.metadata.name, config)
    this.#end()
  }

  gone(name: string): void {
    this.#tried.delete(name)
    this.#toBeginWith.delete(name)
    if (this.#over || !this.#all) return
    this.#all = this.#all.filter(({ metadata }) => metadata.name !== name)
    this.#end()
  }

  #end(): void {
    if (this.#over || !this.#all?.every((config) => this.hasTried(config))) return
    this.#over = true
    this.#done([...this.#toBeginWith.values()])
    this.#toBeginWith.clear()
  }
}
