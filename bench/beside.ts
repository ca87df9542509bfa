/**
 * The same load on `capstan apiserver` and on kube-apiserver with etcd, both durable, on this machine in this run: each figure of
 * ours is followed by theirs and by how ours stands to it. Client and server share the cores, so a fast server also waits for it.
 */
import { readFileSync } from 'node:fs'
import { messageOf } from '@capstan/kube'
import { startCapstanPlane } from '../interop/capstan-plane.ts'
import type { ServedPlane } from '../interop/plane.ts'
import { startRealPlane } from '../interop/real-plane.ts'
import { CannotRun } from '../interop/suite.ts'
import { toolPaths } from '../interop/tools.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, median, megabytes, now } from './figure.ts'
import { aWidget, installWidgets, Widget } from './server.ts'
import { deliver } from './watch.ts'

type Unit = Figure['unit']

/** One figure, measured on one plane. Objects that it needs were made by those before it. */
interface Measurement {
  readonly name: string
  readonly unit: Unit
  /** Whether a smaller value is the better one. */
  readonly lessIsMore?: boolean
  measure(plane: ServedPlane, scale: Scale): Promise<number>
}

interface Scale {
  readonly creates: number
  readonly listed: number
  readonly watchers: number
  readonly changes: number
}

const full: Scale = { creates: 3000, listed: 9000, watchers: 200, changes: 100 }
const small: Scale = { creates: 200, listed: 400, watchers: 10, changes: 20 }

const rate = (name: string, inFlight: number, act: (plane: ServedPlane, index: number) => Promise<unknown>): Measurement => ({
  name: `${name}, ${inFlight} in flight`,
  unit: '/s',
  async measure(plane, { creates }) {
    const count = inFlight === 1 ? Math.ceil(creates / 5) : creates
    return count / (await inParallel(count, inFlight, (index) => act(plane, index)))
  },
})

const key = (index: number) => ({ namespace: 'default', name: `w-16-${index}` })

const measurements: readonly Measurement[] = [
  ...[1, 16, 64].map((inFlight) =>
    rate('creates', inFlight, (plane, index) => clientOf(plane).create(Widget, aWidget(`w-${inFlight}-${index}`))),
  ),
  rate('gets', 16, (plane, index) => clientOf(plane).get(Widget, key(index))),
  rate('status patches', 16, (plane, index) =>
    clientOf(plane).patch(
      Widget,
      key(index),
      { type: 'merge', body: { status: { ready: index % 7 } } },
      { subresource: 'status' },
    ),
  ),
  rate('server-side applies', 16, (plane, index) =>
    clientOf(plane).apply(
      Widget,
      { metadata: key(index), spec: { replicas: 3, image: `registry.example.com/other:v${index}` } },
      { fieldManager: 'bench', force: true },
    ),
  ),
  {
    name: 'list of custom resources, parsed by the client',
    unit: 'ms',
    lessIsMore: true,
    async measure(plane, { listed }) {
      const client = clientOf(plane)
      const { items } = await client.list(Widget)
      await inParallel(Math.max(0, listed - items.length), 64, (index) => client.create(Widget, aWidget(`more-${index}`)))
      const times: number[] = []
      for (let round = 0; round < 3; round++) {
        const started = now()
        await client.list(Widget, { limit: listed })
        times.push(now() - started)
      }
      return median(times)
    },
  },
  {
    name: 'events delivered to watchers',
    unit: '/s',
    measure: (plane, { watchers, changes }) => deliver(clientOf(plane), watchers, changes),
  },
  {
    name: 'memory with what is stored by now',
    unit: 'MB',
    lessIsMore: true,
    measure: async ({ programs }) => megabytes(programs.reduce((sum, { pid }) => sum + residentBytes(pid), 0)),
  },
]

/** Server processes beside each other; each plane lives until its last figure. */
export async function* besideBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const scale = short ? small : full
  await toolPaths('etcd', 'kube-apiserver').catch((err: unknown) => {
    throw new CannotRun(messageOf(err))
  })
  await using ours = await startCapstanPlane({ durable: true })
  await using theirs = await startRealPlane({ durable: true, controllers: [] })
  yield* pair('spawn to ready', 's', [ours.readyAfter, theirs.readyAfter], true)
  for (const plane of [ours, theirs]) await installWidgets(clientOf(plane))
  // The first requests compile code, here and there.
  for (const plane of [ours, theirs]) {
    await inParallel(scale.creates / 2, 16, (index) => clientOf(plane).create(Widget, aWidget(`warm-${index}`)))
  }
  for (const { name, unit, lessIsMore = false, measure } of measurements) {
    const values: number[] = []
    const burnt: number[] = []
    for (const plane of [ours, theirs]) {
      const before = cpuSeconds(plane)
      values.push(await measure(plane, scale))
      burnt.push(cpuSeconds(plane) - before)
    }
    yield* pair(name, unit, values, lessIsMore)
    if (unit === '/s' && name.includes('in flight')) {
      const requests = name.includes(', 1 in flight') ? Math.ceil(scale.creates / 5) : scale.creates
      yield* pair(
        `${name}: CPU of the server for 1,000 requests`,
        's',
        burnt.map((seconds) => (seconds / requests) * 1000),
        true,
      )
    }
  }
}

function* pair(name: string, unit: Unit, [ours = 0, theirs = 0]: readonly number[], lessIsMore: boolean): Iterable<Figure> {
  yield { name: `${name}: Capstan`, value: ours, unit }
  yield { name: `${name}: kube-apiserver and etcd`, value: theirs, unit }
  yield { name: `${name}: ours is better by`, value: lessIsMore ? theirs / ours : ours / theirs, unit: 'times' }
}

/** One client for each plane: connections are kept. */
const clients = new WeakMap<ServedPlane, ReturnType<ServedPlane['client']>>()

function clientOf(plane: ServedPlane): ReturnType<ServedPlane['client']> {
  let client = clients.get(plane)
  if (!client) clients.set(plane, (client = plane.client()))
  return client
}

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

/** User and system time of all processes of the plane. Linux counts it in hundredths of a second. */
const cpuSeconds = ({ programs }: ServedPlane): number =>
  programs.reduce((sum, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) / 100
  }, 0)
