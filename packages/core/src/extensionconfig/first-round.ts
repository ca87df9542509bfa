import type { ExtensionConfig } from '@capstan/api'

/**
 * The first try of every ExtensionConfig after the start: until each had its turn, "no handler" means nothing and no hook can be
 * called. One that cannot be reached takes part with the handlers that its status remembers, so that Clusters that it matches
 * fail closed and all others go on. Upstream: the warm-up of core/reconcilers/extensionconfig, which ends the process instead.
 */
export class FirstRound {
  readonly #done: (configs: readonly ExtensionConfig[]) => void
  readonly #tried = new Map<string, ExtensionConfig | undefined>()
  #all: readonly string[] | undefined
  #over = false

  constructor(done: (configs: readonly ExtensionConfig[]) => void) {
    this.#done = done
  }

  get over(): boolean {
    return this.#over
  }

  /** Tells which ExtensionConfigs there are at the start. */
  begin(names: readonly string[]): void {
    this.#all = names
    this.#end()
  }

  /** `config` with the handlers to begin with, or `undefined` when it is gone. */
  tried(name: string, config: ExtensionConfig | undefined): void {
    this.#tried.set(name, config)
    this.#end()
  }

  #end(): void {
    if (this.#over || !this.#all?.every((name) => this.#tried.has(name))) return
    this.#over = true
    this.#done([...this.#tried.values()].filter((config) => config !== undefined))
    this.#tried.clear()
  }
}
