/**
 * Starts `capstan apiserver`: one process that replaces etcd, kube-apiserver and kube-controller-manager. It gets credentials and
 * flags from `api-server.ts`, as the kube-apiserver of `real-api-server.ts` does.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCredentials, type ApiServerOptions, type RunningApiServer, serve, serverFlags, withoutGiven } from './api-server.ts'
import { freePorts, Programs } from './programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface CapstanApiServerOptions extends ApiServerOptions {
  /** Names of controllers to run, as in kube-controller-manager. Default: all controllers. */
  readonly controllers?: readonly string[]
}

/** Starts `capstan apiserver` on loopback. Resolves when it is ready. */
export async function startCapstanApiServer(options: CapstanApiServerOptions = {}): Promise<RunningApiServer> {
  const { flags = [], users = [], durable = false, progress = () => {}, controllers = ['*'] } = options
  const programs = new Programs('capstan-api-server')
  try {
    const { folder } = programs
    const credentials = await makeCredentials(folder, users)
    const [port = 0] = await freePorts(1)
    const apiServer = await serve(programs, credentials, {
      name: 'capstan',
      url: `https://127.0.0.1:${port}`,
      since: performance.now(),
      isDurable: durable,
      start: () =>
        programs.start(
          'apiserver',
          process.execPath,
          [
            'packages/cli/bin/capstan.js',
            'apiserver',
            // With a loopback address, the Service "kubernetes" has no endpoints, as with `real-api-server.ts`.
            ...withoutGiven(['--advertise-address=127.0.0.1'], flags),
            ...serverFlags(credentials, port, flags),
            `--controllers=${controllers.join(',')}`,
            `--root-ca-file=${credentials.files.ca}`,
            ...(durable ? [`--data=${join(folder, 'data')}`] : []),
          ],
          { cwd: root },
        ),
    })
    progress(`capstan apiserver ready after ${apiServer.readyAfter.toFixed(1)} s`)
    return apiServer
  } catch (err) {
    await programs[Symbol.asyncDispose]()
    throw err
  }
}
