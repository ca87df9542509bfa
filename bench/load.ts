/**
 * A load that costs its sender little, since sender and server share the cores: requests are bytes before the clock starts, each
 * connection carries one at a time, and of an answer only its status and its end are looked for. The same for every server.
 */
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { type ApiRequest, methodOf, urlOf } from '@capstan/kube'
import { type ClusterAccess, loadKubeconfig } from '@capstan/kube/node'
import { now } from './figure.ts'

/** Whoever the kubeconfig file says, on connections that are kept until it is closed. */
export class Load {
  readonly #access: ClusterAccess
  readonly #connections: Connection[] = []

  private constructor(access: ClusterAccess) {
    this.#access = access
  }

  static async of(kubeconfig: string): Promise<Load> {
    return new Load(await loadKubeconfig(kubeconfig))
  }

  /** Sends all of `requests`, so many at a time. @returns the seconds until the last answer @throws Error for an answer that is not `status` */
  async run(requests: readonly ApiRequest[], inFlight: number, status: number): Promise<number> {
    const bytes = requests.map((request) => this.#bytesOf(request))
    while (this.#connections.length < inFlight) this.#connections.push(await Connection.open(this.#access))
    const started = now()
    let next = 0
    const send = async (connection: Connection) => {
      while (next < bytes.length) {
        const answer = await connection.exchange(bytes[next++]!)
        if (statusOf(answer) !== status) throw new Error(`${status} was expected, and this came: ${answer.toString()}`)
      }
    }
    await Promise.all(this.#connections.slice(0, inFlight).map(send))
    return (now() - started) / 1000
  }

  /** Opens `count` watches, on a connection each. */
  async watch(request: ApiRequest, count: number): Promise<Watches> {
    const bytes = this.#bytesOf(request)
    const watches = new Watches()
    for (let i = 0; i < count; i++) await watches.add(await Connection.open(this.#access), bytes)
    return watches
  }

  close(): void {
    for (const connection of this.#connections.splice(0)) connection.close()
  }

  #bytesOf(request: ApiRequest): Buffer {
    const { host } = new URL(this.#access.server)
    const { verb, patchType, body } = request
    const content = body === undefined ? '' : JSON.stringify(body)
    const head = [
      `${methodOf(verb)} ${urlOf(request)} HTTP/1.1`,
      `host: ${host}`,
      'user-agent: bench',
      'accept: application/json',
      ...(body === undefined
        ? []
        : [`content-type: ${patchType ?? 'application/json'}`, `content-length: ${Buffer.byteLength(content)}`]),
    ]
    return Buffer.from(`${head.join('\r\n')}\r\n\r\n${content}`)
  }
}

/** Streams of events, of which it is counted how many have come. */
export class Watches {
  readonly #connections: Connection[] = []
  #received: number[] = []
  #awaited = Infinity
  #total = 0
  #arrived = () => {}
  #broken: (err: Error) => void = () => {}

  async add(connection: Connection, request: Buffer): Promise<void> {
    const index = this.#connections.push(connection) - 1
    this.#received.push(0)
    const counted = (lines: number) => {
      this.#received[index]! += lines
      if ((this.#total += lines) >= this.#awaited) this.#arrived()
    }
    const head = await connection.beginning(request, counted, (err) => this.#broken(err))
    if (statusOf(head) !== 200) throw new Error(`A watch was refused: ${head.toString()}`)
  }

  /** Resolves when each has got `count` events. @throws Error when one has got more, or ended */
  async all(count: number): Promise<void> {
    this.#awaited = count * this.#connections.length
    await new Promise<void>((resolve, reject) => {
      this.#arrived = resolve
      this.#broken = reject
      if (this.#total >= this.#awaited) resolve()
    })
    const wrong = this.#received.find((received) => received !== count)
    if (wrong !== undefined) throw new Error(`A watcher got ${wrong} events instead of ${count}`)
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

/** What has been read is looked at before anything else is: one piece of memory does for all connections. */
const room = Buffer.allocUnsafe(64 * 1024)

/** HTTP/1.1 over TLS, one request after the other. */
class Connection {
  readonly #socket: TLSSocket
  #receive: (bytes: Buffer) => void = () => {}
  #fail: (err: Error) => void = () => {}

  private constructor(access: ClusterAccess, ready: () => void, failed: (err: Error) => void) {
    const { hostname, port } = new URL(access.server)
    this.#fail = failed
    this.#socket = connect(
      {
        host: hostname,
        port: Number(port),
        ca: access.ca,
        cert: access.certificate,
        key: access.key,
        ALPNProtocols: ['http/1.1'],
        onread: { buffer: room, callback: (length: number) => this.#took(room.subarray(0, length)) },
      } as ConnectionOptions,
      ready,
    )
    this.#socket.setNoDelay(true)
    this.#socket.on('error', (err) => this.#fail(err))
    this.#socket.on('close', () => this.#fail(new Error('The server closed the connection')))
  }

  static open(access: ClusterAccess): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const connection = new Connection(access, () => resolve(connection), reject)
    })
  }

  #took(bytes: Buffer): boolean {
    this.#receive(bytes)
    return true
  }

  /** @returns all that came, head and body */
  exchange(request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      let answer: Buffer | undefined
      this.#receive = (bytes) => {
        answer = answer ? Buffer.concat([answer, bytes]) : Buffer.from(bytes)
        if (isWhole(answer)) resolve(answer)
      }
      this.#socket.write(request, (err) => err && reject(err))
    })
  }

  /** @returns the head of an answer that goes on: `lines` is told how many ends of lines come from then on, those of chunks aside */
  beginning(request: Buffer, lines: (count: number) => void, broken: (err: Error) => void): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      let head: Buffer = Buffer.alloc(0)
      let last = 0
      const count = (bytes: Buffer) => {
        let found = 0
        for (let at = bytes.indexOf(LineFeed); at >= 0; at = bytes.indexOf(LineFeed, at + 1)) {
          if ((at > 0 ? bytes[at - 1] : last) !== CarriageReturn) found++
        }
        last = bytes[bytes.length - 1]!
        if (found > 0) lines(found)
      }
      this.#receive = (bytes) => {
        head = Buffer.concat([head, bytes])
        const end = endOfHead(head)
        if (end < 0) return
        this.#receive = count
        this.#fail = broken
        if (head.length > end) count(head.subarray(end))
        resolve(head.subarray(0, end))
      }
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#fail = () => {}
    this.#socket.destroy()
  }
}

const LineFeed = 0x0a
const CarriageReturn = 0x0d
const LastChunk = Buffer.from('\r\n0\r\n\r\n')

const statusOf = (answer: Buffer): number => Number(answer.toString('latin1', 9, 12))

function endOfHead(answer: Buffer): number {
  const end = answer.indexOf('\r\n\r\n')
  return end < 0 ? -1 : end + 4
}

/** By its length; or by its last chunk, which nothing within JSON looks like, since that has no line breaks of this kind. */
function isWhole(answer: Buffer): boolean {
  const end = endOfHead(answer)
  if (end < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.toString('latin1', 0, end))?.[1]
  if (length !== undefined) return answer.length >= end + Number(length)
  return answer.subarray(-LastChunk.length).equals(LastChunk)
}
