/**
 * Puts the same load on `capstan apiserver` and on kube-apiserver with etcd, both durable, on the same machine in the same run. For each
 * measurement, yields the figure of Capstan, the figure of kube-apiserver, and the ratio. The load generator (`load.ts`) must use little
 * CPU, because it shares the cores with the servers.
 */
import { type ApiRequest, messageOf, typeMeta } from '@capstan/kube'
import { startCapstanApiServer } from '../interop/processes/capstan-api-server.ts'
import type { RunningApiServer } from '../interop/processes/api-server.ts'
import { startRealApiServer } from '../interop/processes/real-api-server.ts'
import { cpuSeconds, residentBytes } from '../interop/processes/proc.ts'
import { CannotRun } from '../interop/shared/suite.ts'
import { toolPaths } from '../interop/shared/tools.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { median, megabytes } from './figure.ts'
import { Load } from './load.ts'
import { creation, installWidgets, Widget, widgets } from './server.ts'
import { measureDelivery } from './watch.ts'

type Unit = Figure['unit']

interface Side {
  readonly apiServer: RunningApiServer
  readonly load: Load
}

/** A figure that is measured for each server. */
interface Measurement {
  readonly name: string
  readonly unit: Unit
  /** Whether a smaller value is better. */
  readonly isLowerBetter?: boolean
  measure(side: Side, scale: Scale): Promise<number>
}

interface Scale {
  /** Number of requests for each measurement of requests per second; with one request in flight, a fifth of this number. */
  readonly requestCount: number
  /** Number of objects in the measured list. */
  readonly listed: number
  readonly watchers: number
  /** Number of objects that are created while the watchers receive events. */
  readonly changes: number
}

const full: Scale = { requestCount: 3000, listed: 9000, watchers: 200, changes: 800 }
const small: Scale = { requestCount: 200, listed: 400, watchers: 10, changes: 20 }

/** Measures how many requests per second the server answers. */
const rate = (name: string, inFlight: number, status: number, request: (index: number) => ApiRequest): Measurement => ({
  name: `${name}, ${inFlight} in flight`,
  unit: '/s',
  async measure({ load }, { requestCount }) {
    const requests = indices(inFlight === 1 ? Math.ceil(requestCount / 5) : requestCount).map(request)
    return requests.length / (await load.run(requests, inFlight, status))
  },
})

const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** Object that the measurement `creates, 16 in flight` has created. */
const created = (index: number) => ({ ...widgets, name: `w-16-${index}` })

/** The order matters: some measurements use objects that earlier measurements have created. */
const measurements: readonly Measurement[] = [
  ...[1, 16, 64].map((inFlight) => rate('creates', inFlight, 201, (index) => creation(`w-${inFlight}-${index}`))),
  rate('gets', 16, 200, (index) => ({ verb: 'get', ...created(index) })),
  rate('status patches', 16, 200, (index) => ({
    verb: 'patch',
    ...created(index),
    subresource: 'status',
    patchType: 'application/merge-patch+json',
    body: { status: { ready: index % 7 } },
  })),
  rate('server-side applies', 16, 200, (index) => ({
    verb: 'patch',
    ...created(index),
    patchType: 'application/apply-patch+yaml',
    options: { fieldManager: 'bench', force: true },
    body: {
      ...typeMeta(Widget),
      metadata: { name: created(index).name, namespace: widgets.namespace },
      spec: { replicas: 3, image: `registry.example.com/other:v${index}` },
    },
  })),
  {
    name: 'list of custom resources',
    unit: 'ms',
    isLowerBetter: true,
    async measure({ apiServer, load }, { listed }) {
      const { items } = await clientOf(apiServer).list(Widget)
      const missing = indices(Math.max(0, listed - items.length))
      await load.run(
        missing.map((index) => creation(`more-${index}`)),
        64,
        201,
      )
      const times: number[] = []
      for (let round = 0; round < 5; round++)
        times.push(await load.run([{ ...widgets, verb: 'list', options: { limit: listed } }], 1, 200))
      return median(times) * 1000
    },
  },
  {
    name: 'events delivered to watchers',
    unit: '/s',
    measure: ({ apiServer, load }, { watchers, changes }) => measureDelivery(clientOf(apiServer), load, watchers, changes),
  },
  {
    name: 'memory with all objects stored so far',
    unit: 'MB',
    isLowerBetter: true,
    measure: async ({ apiServer: { programs } }) => megabytes(programs.reduce((sum, { pid }) => sum + residentBytes(pid), 0)),
  },
]

/** Starts both servers and measures each figure, first with Capstan, then with kube-apiserver. Both servers run until the end. */
export async function* besideBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const scale = short ? small : full
  await toolPaths('etcd', 'kube-apiserver').catch((err: unknown) => {
    throw new CannotRun(messageOf(err))
  })
  await using ours = await startCapstanApiServer({ durable: true })
  await using theirs = await startRealApiServer({ durable: true, controllers: [] })
  yield* pair('spawn to ready', 's', [ours.readyAfter, theirs.readyAfter], true)
  const sides: Side[] = []
  for (const apiServer of [ours, theirs]) {
    const load = await Load.of(apiServer.kubeconfig)
    sides.push({ apiServer, load })
    await installWidgets(clientOf(apiServer))
    // Both servers get the same warm-up, which Capstan needs: V8 compiles hot functions during the first thousands of requests.
    await load.run(
      indices(scale.requestCount * 1.5).map((index) => creation(`warm-${index}`)),
      16,
      201,
    )
  }
  for (const { name, unit, isLowerBetter = false, measure } of measurements) {
    const values: number[] = []
    const cpuTimes: number[] = []
    for (const side of sides) {
      const before = cpuOf(side.apiServer)
      values.push(await measure(side, scale))
      cpuTimes.push(cpuOf(side.apiServer) - before)
    }
    yield* pair(name, unit, values, isLowerBetter)
    if (unit === '/s' && name.includes('in flight')) {
      const requests = name.includes(', 1 in flight') ? Math.ceil(scale.requestCount / 5) : scale.requestCount
      yield* pair(
        `${name}: CPU of the server for 1,000 requests`,
        's',
        cpuTimes.map((seconds) => (seconds / requests) * 1000),
        true,
      )
    }
  }
  for (const { load } of sides) load.close()
}

function* pair(name: string, unit: Unit, [ours = 0, theirs = 0]: readonly number[], isLowerBetter: boolean): Iterable<Figure> {
  yield { name: `${name}: Capstan`, value: ours, unit }
  yield { name: `${name}: kube-apiserver and etcd`, value: theirs, unit }
  yield { name: `${name}: Capstan is better by`, value: isLowerBetter ? theirs / ours : ours / theirs, unit: 'times' }
}

/** One client for each server, so that its connections are reused. */
const clients = new WeakMap<RunningApiServer, ReturnType<RunningApiServer['client']>>()

function clientOf(apiServer: RunningApiServer): ReturnType<RunningApiServer['client']> {
  let client = clients.get(apiServer)
  if (!client) clients.set(apiServer, (client = apiServer.client()))
  return client
}

/** Returns the CPU time of all processes of the server so far. */
const cpuOf = ({ programs }: RunningApiServer): number => programs.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0)
