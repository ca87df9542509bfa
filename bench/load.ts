/**
 * A load generator that must use little CPU, because it shares the cores with the server. Requests are encoded before the measurement starts,
 * and each connection has one request in flight. Of a response, only the status, the length and the end are parsed; events of a watch are
 * counted by their line breaks. The benches of `beside.ts` and `watch.ts` use this generator.
 */
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { type ApiRequest, methodOf, urlOf } from '@capstan/kube'
import { type ClusterAccess, loadKubeconfig } from '@capstan/kube/node'
import { now } from './figure.ts'

/**
 * Sends requests with the client certificate of a kubeconfig file. Later runs reuse the connections of `run`, until `close`; each
 * watch has its own connection.
 */
export class Load {
  readonly #access: ClusterAccess
  #connections: Connection[] = []

  private constructor(access: ClusterAccess) {
    this.#access = access
  }

  static async of(kubeconfig: string): Promise<Load> {
    return new Load(await loadKubeconfig(kubeconfig))
  }

  /**
   * Sends all requests, at most `inFlight` at once.
   * @returns seconds until the last response
   * @throws Error for a response whose status is not `status`
   */
  async run(requests: readonly ApiRequest[], inFlight: number, status: number): Promise<number> {
    const bytes = requests.map((request) => this.#bytesOf(request))
    // The server closes idle connections.
    this.#connections = this.#connections.filter((connection) => connection.isOpen)
    while (this.#connections.length < inFlight) this.#connections.push(await Connection.open(this.#access))
    const started = now()
    let next = 0
    const send = async (connection: Connection) => {
      while (next < bytes.length) {
        const response = await connection.exchange(bytes[next++]!)
        if (statusOf(response) !== status) throw new Error(`expected status ${status}, got: ${response.toString()}`)
      }
    }
    await Promise.all(this.#connections.slice(0, inFlight).map(send))
    return (now() - started) / 1000
  }

  /** Opens `count` watches, each on its own connection. */
  async watch(request: ApiRequest, count: number): Promise<Watches> {
    const open = async (resourceVersion: string | undefined, watcher: Watcher) => {
      const options = { ...request.options, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
      const connection = await Connection.open(this.#access)
      const head = await connection.openStream(this.#bytesOf({ ...request, options }), watcher)
      if (statusOf(head) !== 200) throw new Error(`A watch was rejected: ${head.toString()}`)
      return connection
    }
    const watches = new Watches(open)
    for (let i = 0; i < count; i++) await watches.add()
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
      // With this header the server closes the connection at the end of a watch, so that `Connection` detects the end.
      ...(verb === 'watch' ? ['connection: close'] : []),
      ...(body === undefined
        ? []
        : [`content-type: ${patchType ?? 'application/json'}`, `content-length: ${Buffer.byteLength(content)}`]),
    ]
    return Buffer.from(`${head.join('\r\n')}\r\n\r\n${content}`)
  }
}

/** Receives a streamed response: its bytes, which are valid only during the call, and its end. */
interface Watcher {
  onBytes(bytes: Buffer): void
  onEnd(err: Error): void
}

/** Watch streams, whose events are counted. */
class Watches {
  readonly #open: (resourceVersion: string | undefined, watcher: Watcher) => Promise<Connection>
  readonly #connections: Connection[] = []
  readonly #received: number[] = []
  #waitFor = Infinity
  #total = 0
  #arrived = () => {}
  #failed: (err: Error) => void = () => {}

  constructor(open: (resourceVersion: string | undefined, watcher: Watcher) => Promise<Connection>) {
    this.#open = open
  }

  async add(): Promise<void> {
    const index = this.#received.push(0) - 1
    const lines = new Lines((count) => {
      this.#received[index]! += count
      if ((this.#total += count) >= this.#waitFor) this.#arrived()
    })
    const begin = async (resourceVersion: string | undefined) => {
      lines.begin()
      this.#connections[index] = await this.#open(resourceVersion, {
        onBytes: (bytes) => lines.take(bytes),
        // The server closes watches that read too slowly. Like any client, this client watches again from the last event that it
        // received.
        onEnd: () => void begin(revisionIn(lines.last)).catch((err: Error) => this.#failed(err)),
      })
    }
    await begin(undefined)
  }

  /**
   * Resolves when all watches together have received `count` events per watch since they were opened.
   * @throws Error if one of the watches has then received more or fewer than `count` events
   */
  async all(count: number): Promise<void> {
    this.#waitFor = count * this.#connections.length
    await new Promise<void>((resolve, reject) => {
      this.#arrived = resolve
      this.#failed = reject
      if (this.#total >= this.#waitFor) resolve()
    })
    const wrong = this.#received.find((received) => received !== count)
    if (wrong !== undefined) throw new Error(`A watcher got ${wrong} events instead of ${count}`)
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

/**
 * Counts events in a chunked response, and stores the last one. Each line is an event, except lines that end with CRLF, which belong to the
 * chunk format.
 */
class Lines {
  readonly #counted: (count: number) => void
  /** The received part of an incomplete line. */
  #rest: Buffer = Buffer.alloc(0)
  #last: Buffer = Buffer.alloc(0)

  constructor(counted: (count: number) => void) {
    this.#counted = counted
  }

  get last(): string {
    return this.#last.toString()
  }

  begin(): void {
    this.#rest = Buffer.alloc(0)
  }

  take(bytes: Buffer): void {
    let count = 0
    let nextLine = 0
    let lastLine = 0
    for (let index = bytes.indexOf(LineFeed); index >= 0; index = bytes.indexOf(LineFeed, index + 1)) {
      if ((index > 0 ? bytes[index - 1] : this.#rest.at(-1)) === CarriageReturn) continue
      count++
      lastLine = nextLine
      nextLine = index + 1
    }
    const line = bytes.subarray(lastLine, nextLine)
    if (count > 0) this.#last = count > 1 ? Buffer.from(line) : Buffer.concat([this.#rest, line])
    const incompleteLine = bytes.subarray(nextLine)
    this.#rest = count > 0 ? Buffer.from(incompleteLine) : Buffer.concat([this.#rest, incompleteLine])
    if (count > 0) this.#counted(count)
  }
}

/** Returns the first resourceVersion in an event. The header of a chunk may interrupt the line. */
function revisionIn(line: string): string | undefined {
  return /"resourceVersion":"(\d+)"/.exec(line.replaceAll(/\r\n[0-9a-f]+\r\n/g, ''))?.[1]
}

/** Buffer for reads of all connections. They can share it, because data is processed before the next read. */
const sharedBuffer = Buffer.allocUnsafe(64 * 1024)

/** HTTP/1.1 over TLS, one request after another. */
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
        onread: { buffer: sharedBuffer, callback: (length: number) => this.#receiveBytes(sharedBuffer.subarray(0, length)) },
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

  #receiveBytes(bytes: Buffer): boolean {
    this.#receive(bytes)
    return true
  }

  get isOpen(): boolean {
    return this.#socket.readyState === 'open'
  }

  /** Sends a request. @returns the whole response, head and body */
  exchange(request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      const response = new ResponseState()
      this.#receive = (bytes) => {
        if (response.take(bytes)) resolve(response.all())
      }
      this.#socket.write(request, (err) => err && reject(err))
    })
  }

  /** Sends a request. @returns the head of its streamed response; the watcher receives the rest */
  openStream(request: Buffer, { onBytes, onEnd }: Watcher): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      let head: Buffer = Buffer.alloc(0)
      this.#receive = (bytes) => {
        head = Buffer.concat([head, bytes])
        const end = endOfHead(head)
        if (end < 0) return
        this.#receive = onBytes
        this.#fail = onEnd
        if (head.length > end) onBytes(head.subarray(end))
        resolve(head.subarray(0, end))
      }
      this.#socket.write(request, (err) => err && reject(err))
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

const statusOf = (response: Buffer): number => Number(response.toString('latin1', 9, 12))

/** Returns the number of bytes of the head; -1 while the head is incomplete. */
function endOfHead(response: Buffer): number {
  const end = response.indexOf('\r\n\r\n')
  return end < 0 ? -1 : end + 4
}

/** A response that is being received, in one or many reads. */
class ResponseState {
  readonly #pieces: Buffer[] = []
  #length = 0
  /** Length of the response in bytes. `undefined` before the end of the head, and for a response without Content-Length. */
  #expectedLength: number | undefined
  #headEnded = false

  /**
   * Adds received bytes.
   * @returns whether the response is complete, according to its Content-Length or its last chunk. The bytes of the last chunk occur in no body,
   *   because the servers' JSON has no CRLF.
   */
  take(bytes: Buffer): boolean {
    this.#pieces.push(Buffer.from(bytes))
    this.#length += bytes.length
    if (!this.#headEnded) {
      const head = this.all()
      const end = endOfHead(head)
      if (end < 0) return false
      this.#headEnded = true
      const length = /\r\ncontent-length: *(\d+)/i.exec(head.toString('latin1', 0, end))?.[1]
      if (length !== undefined) this.#expectedLength = end + Number(length)
    }
    if (this.#expectedLength !== undefined) return this.#length >= this.#expectedLength
    return this.#tail().equals(LastChunk)
  }

  all(): Buffer {
    if (this.#pieces.length > 1) this.#pieces.splice(0, Infinity, Buffer.concat(this.#pieces))
    return this.#pieces[0]!
  }

  #tail(): Buffer {
    let tail = this.#pieces.at(-1)!
    for (let i = this.#pieces.length - 2; i >= 0 && tail.length < LastChunk.length; i--)
      tail = Buffer.concat([this.#pieces[i]!, tail])
    return tail.subarray(-LastChunk.length)
  }
}
