/** `capstan apiserver` in the place of etcd, kube-apiserver and its controllers: same flags, same credentials, one process. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCredentials, openAccess, type PlaneOptions, type ServedPlane, serverFlags } from './plane.ts'
import { freePorts, Programs, ready } from './programs.ts'
import { answers } from './real-plane.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

export interface CapstanPlaneOptions extends PlaneOptions {
  /** Names of kube-controller-manager's controllers. Default: all that there are. */
  readonly controllers?: readonly string[]
}

export async function startCapstanPlane(options: CapstanPlaneOptions = {}): Promise<ServedPlane> {
  const { flags = [], users = [], durable = false, progress = () => {}, controllers = ['*'] } = options
  const programs = new Programs('plane')
  try {
    const { folder } = programs
    const credentials = await makeCredentials(folder, users)
    const [port = 0] = await freePorts(1)
    const started = performance.now()
    const url = `https://127.0.0.1:${port}`
    const startServer = () =>
      programs.start(
        'apiserver',
        process.execPath,
        [
          'packages/cli/bin/capstan.js',
          'apiserver',
          ...serverFlags(credentials, port, flags),
          `--controllers=${controllers.join(',')}`,
          `--root-ca-file=${credentials.files.ca}`,
          ...(durable ? [`--data=${join(folder, 'data')}`] : []),
        ],
        { cwd: root },
      )
    const { close, ...access } = openAccess(credentials, url)
    const authorization = { headers: { authorization: `Bearer ${access.token}` } }
    const isReady = () => answers(`${url}/readyz`, { ca: access.ca, ...authorization })
    let server = startServer()
    await ready(server, isReady)
    const readyAfter = (performance.now() - started) / 1000
    progress(`capstan apiserver ready after ${readyAfter.toFixed(1)} s`)
    return {
      name: 'capstan',
      url,
      ...access,
      folder,
      programs: programs.all,
      readyAfter,
      async restart() {
        if (!durable) throw new Error('A server that keeps nothing has nothing to start again with: ask for a durable one')
        await server.kill()
        server = startServer()
        await ready(server, isReady)
      },
      async [Symbol.asyncDispose]() {
        close()
        await programs[Symbol.asyncDispose]()
      },
    }
  } catch (err) {
    await programs[Symbol.asyncDispose]()
    throw err
  }
}
