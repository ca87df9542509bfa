/**
 * Lets everything that can happen now happen, without letting time pass. Work in one process is microtasks, and done after one turn
 * of the event loop; what is under way outside (a socket, a key being generated) is waited for.
 */
import type { Store } from '@capstan/apiserver'
import type { Manager } from '@capstan/controller'
import type { Transport, VirtualClock } from '@capstan/kube'
import { resourceName } from '@capstan/kube'

/** Work that may be pending. */
export interface Busy {
  /**
   * Turns without any progress after which what is busy must be waiting for virtual time; a test that makes something deaf wants few.
   * Default: a second of them in one process, a minute on a server elsewhere, which may have to wait for a core.
   */
  readonly patience?: number
  readonly managers: () => readonly Manager[]
  readonly stores: () => readonly Store[]
  readonly traffic: Traffic
  /** Of a server whose stores are out of sight: whether informers hold what it holds. */
  readonly isCaughtUp?: () => Promise<boolean>
  /** Aborted once the environment is closed. */
  readonly closed?: AbortSignal
}

/** Requests that have been sent and not answered yet. */
export interface Traffic {
  readonly underWay: number
  readonly total: number
  /** The same transport, counted. */
  count(transport: Transport): Transport
}

export function createTraffic(): Traffic {
  let underWay = 0
  let total = 0
  return {
    get underWay() {
      return underWay
    },
    get total() {
      return total
    },
    count: (transport) => ({
      close: () => transport.close(),
      watch: (request, signal) => transport.watch(request, signal),
      async send(request, signal) {
        underWay++
        total++
        try {
          return await transport.send(request, signal)
        } finally {
          underWay--
        }
      },
    }),
  }
}

/** Turns of the event loop that must pass quietly before nothing more is expected. */
const QuietTurns = 2
/** Real milliseconds, about. */
const PatienceInProcess = 1000
const PatienceElsewhere = 60_000
/** A server elsewhere may take longer to answer than a test in one process wants to wait. */
const LeastPatienceElsewhere = 1000

export async function settle(busy: Busy): Promise<void> {
  let quiet = 0
  let before = ''
  let still = 0
  const patience = busy.isCaughtUp
    ? Math.max(busy.patience ?? PatienceElsewhere, LeastPatienceElsewhere)
    : (busy.patience ?? PatienceInProcess)
  while (quiet < QuietTurns && !busy.closed?.aborted) {
    // After some turns without progress, a thread or socket is pending: wait in real time.
    await (still < 20 ? turn() : pause())
    quiet = isQuiet(busy) ? quiet + 1 : 0
    // While that was asked, something may have arrived.
    if (quiet === QuietTurns && busy.isCaughtUp && !((await busy.isCaughtUp()) && isQuiet(busy))) quiet = 0
    const now = `${busy.traffic.total}/${busy.traffic.underWay}/${busy
      .stores()
      .map((store) => store.revision)
      .join()}`
    still = now === before ? still + 1 : 0
    before = now
    if (still > 20 + patience) return
  }
}

/** Runs the clock to `clock.now() + ms`, settling after everything that comes due. */
export async function advance(clock: VirtualClock, ms: number, busy: Busy): Promise<void> {
  const end = clock.now() + ms
  await settle(busy)
  while (!busy.closed?.aborted && clock.step(end)) await settle(busy)
}

function isQuiet({ managers, stores, traffic }: Busy): boolean {
  if (traffic.underWay > 0) return false
  return managers().every((manager) => manager.idle && isCaughtUp(manager, stores()))
}

/** Every informer knows of the last change of its kind in the store that is served. Only the first store is the managers'. */
function isCaughtUp(manager: Manager, [store]: readonly Store[]): boolean {
  if (!store) return true
  return manager.informers().every((informer) => {
    const missing = store.since(informer.revision, resourceName(informer.kind))
    return missing.kind === 'changes' && missing.changes.length === 0
  })
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1))
