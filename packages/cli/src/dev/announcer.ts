/** Updates the management cluster after each load of the extension: registers it, waits for discovery, and makes core repeat hook calls. */
import type { Client } from '@capstan/kube'
import { messageOf } from '@capstan/kube'
import { applyDemoClass, bringUpDemo } from '../demo.ts'
import type { RunningExtension } from './extension-process.ts'
import type { Registration } from './project.ts'
import { repeatHooks, demoChangesFor, register } from './register.ts'

export interface AnnouncerOptions {
  readonly client: Client
  readonly signal: AbortSignal
  /** URL of the extension server. */
  readonly url: string
  /** Whether to create and update the demo's ClusterClass and Cluster. */
  readonly demo: boolean
  /** Returns the project's registration; called after each load. */
  registration(): Registration
  /**
   * Called once, when the extension is registered and, with `demo`, the demo objects exist. `hook` is a hook that the extension
   * handles, or `Discovery` if it handles none.
   */
  ready(hook: string): void
  /** Called with the reason when an update fails and, with `demo`, when core does not call some handlers of ValidateTopology. */
  failed(problem: string): void
}

export class Announcer {
  readonly #options: AnnouncerOptions
  #announcing = new AbortController()
  /** Name from the first load. Later loads keep it, because the ExtensionConfig and its handlers are registered under it. */
  #name: string | undefined
  #loads = 0
  #ready = false

  constructor(options: AnnouncerOptions) {
    this.#options = options
  }

  /** Updates the management cluster for a newly loaded extension. Aborts an update that is still running. */
  announce(extension: RunningExtension): void {
    this.#announcing.abort()
    this.#announcing = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, this.#announcing.signal])
    void this.#announce(extension, signal).catch((err: unknown) => {
      if (!signal.aborted) this.#options.failed(messageOf(err))
    })
  }

  async #announce({ name, handlers }: RunningExtension, signal: AbortSignal): Promise<void> {
    const { client, url, demo, registration, ready, failed } = this.#options
    const projectRegistration = registration()
    this.#name ??= projectRegistration.name ?? name
    const load = String(this.#loads++)
    const registered = { name: this.#name, url, settings: projectRegistration.settings ?? {}, handlers, load }
    await register(client, registered, signal)

    const changes = demoChangesFor(this.#name, handlers)
    if (demo && changes.uncalled.length > 0) {
      const names = changes.uncalled.join(', ')
      failed(
        `Handlers are not called: ${names}. A ClusterClass names one handler of GenerateUpgradePlan, and each patch of it one handler of GeneratePatches and at most one each of ValidateTopology and DiscoverVariables.`,
      )
    }
    if (demo && !this.#ready) await bringUpDemo(client, signal, changes)
    else {
      if (demo) await applyDemoClass(client, changes)
      // Cached blocking responses, and the backoff after failed calls, belong to the previous version of the extension.
      await repeatHooks(client, load, signal)
    }
    if (!this.#ready) ready(handlers[0]?.hook ?? 'Discovery')
    this.#ready = true
  }
}
