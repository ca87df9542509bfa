/**
 * The `etcd` program of a test environment. It stores no data. The API server gets from this program the path of a folder inside the
 * folder of `--data-dir`, and stores its state there. See docs/adr/0020-etcd-launcher.md.
 */
import { existsSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import { makeFolder } from '@capstan/kube/node'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted } from '../io.ts'
import { etcdCommand, etcdHelp, type EtcdOptions } from './etcd-flags.ts'
import { StatePath, type StateLocation } from './state-place.ts'

/** etcd version whose command line and endpoints this program imitates. */
const version = '3.6.8'

/** Runs the program until it is interrupted, or only prints help, version or a usage error. Resolves with the exit code. */
export async function runEtcd(argv: readonly string[], io: Io): Promise<number> {
  const command = etcdCommand(argv)
  switch (command.kind) {
    case 'help':
      io.out(etcdHelp)
      return ExitCodes.done
    case 'version':
      io.out(`etcd Version: ${version} (Capstan in place of etcd)`)
      return ExitCodes.done
    case 'rejected':
      io.err(command.reason)
      io.err('See etcd --help for the supported flags.')
      return ExitCodes.usage
    case 'serve':
      return serve(command.options, io)
  }
}

async function serve({ dataDir, clientURLs, isUnsafe }: EtcdOptions, io: Io): Promise<number> {
  const folder = resolve(dataDir)
  const servers: Server[] = []
  try {
    if (existsSync(`${folder}/member`)) throw new Error(`${folder} has the state of a real etcd, which Capstan cannot read`)
    await makeFolder(folder, 0o700)
    const place: StateLocation = { folder: `${folder}/capstan`, isUnsafe }
    const interrupted = untilInterrupted(io)
    for (const url of clientURLs) servers.push(await listen(url, requestHandler(place)))
    log(io, 'info', 'ready to serve client requests', { 'listen-client-urls': clientURLs.map(String), 'data-dir': folder })
    await interrupted
    return ExitCodes.done
  } catch (err) {
    log(io, 'fatal', 'discovery failed', { error: err instanceof Error ? err.message : String(err) })
    return ExitCodes.failed
  } finally {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}

async function listen(url: URL, handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<Server> {
  const server = createServer(handler)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    server.listen(Number(url.port || 80), host, done)
  })
  return server
}

const requestHandler =
  (place: StateLocation) =>
  ({ url }: IncomingMessage, res: ServerResponse): void => {
    const bodies: { readonly [path: string]: object } = {
      '/health': { health: 'true', reason: '' },
      '/version': { etcdserver: version, etcdcluster: '3.6.0', storage: '3.6.0' },
      [StatePath]: place,
    }
    const body = bodies[url?.split('?')[0] ?? '']
    if (!body) {
      res.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('404 page not found\n')
      return
    }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

/** Logs JSON lines to stderr, as etcd does. */
const log = (io: Io, level: 'info' | 'fatal', msg: string, fields: object): void =>
  io.err(JSON.stringify({ level, logger: 'capstan', msg, ...fields }))
