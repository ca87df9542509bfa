/** Helpers for tests with real sockets: servers that are closed after the test, endless writers, memory in use. */
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Waits for one turn of the event loop. */
export const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Listens on loopback and returns the `https` URL. Adds to `closing` a function that closes the server and its connections. */
export async function serving(
  server: Server,
  closing: (() => void)[],
  connected: (socket: Socket) => void = () => {},
): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    connected(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Writes chunks until the stream is destroyed. */
export function flood(to: Writable, chunk: () => string | Buffer = () => Buffer.alloc(64 * 1024, ' ')): void {
  const pour = () => {
    while (!to.destroyed && to.write(chunk()));
    if (!to.destroyed) to.once('drain', pour)
  }
  pour()
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Returns the bytes in use after garbage collection. */
export async function memory(): Promise<number> {
  for (let i = 0; i < 5; i++) {
    collect()
    await turn()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
