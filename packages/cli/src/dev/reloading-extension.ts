/** Serves the extension of a module over TLS, and reloads it when one of its files changes. */
import type { Clock } from '@capstan/kube'
import { seconds } from '@capstan/kube'
import type { Line } from '@capstan/lab'
import { closeAll } from '../close-all.ts'
import { ExtensionProcesses, type RunningExtension } from './extension-process.ts'
import { lineOfLog, lineOfOutput, lineOfReload, displayPath } from './lines.ts'
import { Reloader } from './reloader.ts'
import { serveExtension } from './serve-extension.ts'
import { watchFolders } from './watch-folders.ts'

export interface ReloadingOptions {
  /** Path of the module that exports the extension. */
  readonly module: string
  /** Port requested by the user. Default: 9443. 0 selects a free port. */
  readonly port: number | undefined
  readonly clock: Clock
  /** Publishes the CA bundle (PEM) with which clients verify the server's certificate. */
  trust(bundle: string): Promise<void>
  report(line: Line): void
  /** Called after each successful load. This extension handles later calls. */
  loaded(extension: RunningExtension): void
}

export interface ReloadingExtension {
  readonly url: string
  /** Loads the extension for the first time, and watches the folders of its files. */
  start(): void
  /** Watches the folders of these files as well. */
  watch(files: readonly string[]): void
  /** Waits a limited time for pending calls, then ends the server and the processes. */
  close(): Promise<void>
}

/** Starts the TLS server. @throws Error that names the port when it is in use */
export async function reloadingExtension(options: ReloadingOptions): Promise<ReloadingExtension> {
  const { module, port, clock, trust, report, loaded } = options
  const processes = new ExtensionProcesses({
    clock,
    log: (entry) => report(lineOfLog(entry)),
    printed: (text) => report(lineOfOutput(text)),
  })
  const folders = watchFolders(() => reloader.changed())
  const reloader = new Reloader({
    clock,
    load: (signal) => processes.load(module, signal),
    watch: (files) => folders.add(files),
    onReload(reload) {
      report(lineOfReload(reload, displayPath(module)))
      if (reload.kind === 'loaded') loaded(reload.extension)
    },
  })
  const listening = await serveExtension(reloader.handle, { port, clock, trust })
  return {
    url: listening.url,
    start() {
      folders.add([module])
      reloader.start()
    },
    watch: (files) => folders.add(files),
    close() {
      folders.close()
      return closeAll([() => listening.close(seconds(1)), () => reloader.close(), () => processes.close()])
    },
  }
}
