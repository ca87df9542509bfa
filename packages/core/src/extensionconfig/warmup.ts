import type { ExtensionConfig } from '@capstan/api'

/**
 * Warm-up: the first discovery of every ExtensionConfig that exists at the start, also of paused ones, as upstream. Until discovery was
 * tried for all of them, the registry may lack handlers, so no hook except Discovery can be called. At the end, an unreachable extension is
 * registered with the handlers of its status, so that its hooks fail for the Clusters that it selects. If it was never discovered, its
 * handlers are unknown, and all hooks fail for these Clusters. All other Clusters continue. Also after the warm-up, reconciles that call hooks
 * wait while a newer ExtensionConfig was not tried yet (`hasTried`): a Cluster created right after an ExtensionConfig must not bypass the hooks
 * of this extension. Upstream: the warm-up of core/reconcilers/extensionconfig, which ends the process when an extension stays unreachable for
 * 60 s, and does not wait for new ExtensionConfigs.
 */
export class Warmup {
  readonly #onEnd: (configs: readonly ExtensionConfig[]) => void
  /** Uids by name: an ExtensionConfig that was deleted and recreated has not been tried. */
  readonly #tried = new Map<string, string>()
  /** ExtensionConfigs that were tried during the warm-up, even if discovery failed. */
  readonly #triedDuringWarmup = new Map<string, ExtensionConfig>()
  /** Uids of the ExtensionConfigs that existed at the start and were not discovered since then. */
  readonly #undiscovered = new Set<string>()
  #configs: readonly ExtensionConfig[] | undefined
  #isOver = false

  /** @param onEnd called once, at the end of the warm-up; registers the handlers in the status of the ExtensionConfigs that were tried */
  constructor(onEnd: (configs: readonly ExtensionConfig[]) => void) {
    this.#onEnd = onEnd
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Sets the ExtensionConfigs that exist at the start. */
  begin(configs: readonly ExtensionConfig[]): void {
    this.#configs = configs
    for (const { metadata } of configs) this.#undiscovered.add(metadata.uid)
    this.#endIfAllTried()
  }

  /** Whether an ExtensionConfig existed at the start and was not discovered since then. If so, it is discovered even while it is paused. */
  isUndiscovered({ metadata }: ExtensionConfig): boolean {
    return this.#undiscovered.has(metadata.uid)
  }

  /** Whether discovery of an ExtensionConfig was tried, or skipped because it is paused. */
  hasTried({ metadata }: ExtensionConfig): boolean {
    return this.#tried.get(metadata.name) === metadata.uid
  }

  /**
   * Records that discovery of an ExtensionConfig was tried, or skipped because it is paused. During the warm-up, its handlers are
   * registered when the warm-up ends.
   */
  recordTried(config: ExtensionConfig): void {
    this.#tried.set(config.metadata.name, config.metadata.uid)
    if (this.#isOver) return
    this.#triedDuringWarmup.set(config.metadata.name, config)
    this.#endIfAllTried()
  }

  /** Records that an ExtensionConfig was discovered, by this process or another. */
  recordDiscovered(config: ExtensionConfig): void {
    this.#undiscovered.delete(config.metadata.uid)
    this.recordTried(config)
  }

  /** Removes a deleted ExtensionConfig, so that the warm-up does not wait for it. */
  forget(name: string): void {
    this.#tried.delete(name)
    this.#triedDuringWarmup.delete(name)
    if (this.#isOver || !this.#configs) return
    this.#configs = this.#configs.filter(({ metadata }) => metadata.name !== name)
    this.#endIfAllTried()
  }

  #endIfAllTried(): void {
    if (this.#isOver || !this.#configs?.every((config) => this.hasTried(config))) return
    this.#isOver = true
    this.#onEnd([...this.#triedDuringWarmup.values()])
    this.#triedDuringWarmup.clear()
  }
}
