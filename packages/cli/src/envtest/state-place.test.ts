import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { findState, StatePath } from './state-place.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  servers.push(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const statePlace = { folder: '/tmp/etcd/capstan', isUnsafe: true }
const envtestEtcd: RequestListener = ({ url }, res) =>
  res.writeHead(url === StatePath ? 200 : 404).end(JSON.stringify(statePlace))
const unreachable = 'http://127.0.0.1:1'

test('returns the state folder from the first reachable server', async () => {
  expect(await findState([unreachable, await serve(envtestEtcd)], () => Promise.resolve())).toEqual(statePlace)
})

test('waits for a server that is not reachable yet', async () => {
  let isUp = false
  const url = await serve((req, res) => (isUp ? envtestEtcd(req, res as never) : void req.socket.destroy()))
  const sleep = () => {
    isUp = true
    return Promise.resolve()
  }
  expect(await findState([url], sleep)).toEqual(statePlace)
})

test('rejects a real etcd with an error that names the remedy', async () => {
  const realEtcd = await serve((_, res) => void res.writeHead(404).end())
  await expect(findState([realEtcd], () => Promise.resolve())).rejects.toThrow(
    `--etcd-servers ${realEtcd} is not the etcd launcher of capstan envtest, and no other etcd is supported; to store the state in a folder, use capstan apiserver --data`,
  )
})

test('fails after 20 seconds without a reachable server, and names the servers', async () => {
  let waited = 0
  const sleep = (ms: number) => {
    waited += ms
    return Promise.resolve()
  }
  await expect(findState([unreachable], sleep)).rejects.toThrow(`cannot reach --etcd-servers ${unreachable}: `)
  expect(waited).toBeGreaterThanOrEqual(20_000)
})

test('fails at once when the caller aborts while a server does not respond', async () => {
  const abort = new AbortController()
  const reason = new Error('another flag is invalid')
  const url = await serve(() => abort.abort(reason))
  await expect(findState([url], () => Promise.resolve(), abort.signal)).rejects.toBe(reason)
})
