import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, it, test } from 'vitest'
import { listenPlain } from './listen-plain.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function serve(handle: (request: Request) => Promise<Response>) {
  const server = await listenPlain(handle, { host: '127.0.0.1', port: 0 })
  closers.push(server.close)
  const port = Number(new URL(server.url).port)
  /** Sends a request with this method and URL, and returns the status and the body of the response. */
  const send = (methodAndUrl: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(`${methodAndUrl} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
      )
      let text = ''
      socket.setEncoding('utf8').on('data', (part: string) => (text += part))
      socket.on('error', reject)
      socket.on('close', () => resolve(`${text.split(' ')[1]} ${text.slice(text.indexOf('\r\n\r\n') + 4)}`))
    })
  return { send, port }
}

const pathOf = async ({ url }: Request) => new Response(new URL(url).pathname)

test.each([
  ['GET /metrics?a=b', '200 /metrics'],
  ['GET //', '200 //'],
  ['GET //host/path', '200 //host/path'],
  ['GET http://host/path', '200 /path'],
  ['GET http://', '400 400 Bad Request\n'],
  ['GET http://user:password@host/path', '400 400 Bad Request\n'],
  ['HEAD /metrics', '200 '],
  ['POST /metrics', '405 '],
])('responds to %s with %s', async (methodAndUrl, expected) => {
  const { send } = await serve(pathOf)
  // Removes the framing of a chunked body.
  expect((await send(methodAndUrl)).replace(/^(\d+) (?:[0-9a-f]+\r\n(.*)\r\n)?0\r\n\r\n$/s, '$1 $2')).toBe(expected)
})

it('responds with 500 when the handler fails, and serves the next request', async () => {
  let fails = true
  const { send } = await serve(async (request) => {
    if (fails) throw new Error('a collector failed')
    return pathOf(request)
  })
  expect(await send('GET /metrics')).toContain('500 ')
  fails = false
  expect(await send('GET /metrics')).toContain('/metrics')
})

it('closes connections that send no request, so that later connections are served', async () => {
  const { send, port } = await serve(pathOf)
  const idle = Array.from({ length: 100 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  await Promise.all(idle.map((socket) => once(socket, 'connect')))
  await Promise.all(idle.map((socket) => once(socket.resume(), 'close')))
  expect(await send('GET /healthz')).toContain('/healthz')
}, 10_000)

it('rejects a port that is in use, with an error that names the port', async () => {
  const { port } = await serve(pathOf)
  await expect(listenPlain(pathOf, { host: '127.0.0.1', port })).rejects.toThrow(`Cannot listen on port ${port}: it is in use`)
})
