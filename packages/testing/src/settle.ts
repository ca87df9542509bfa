/**
 * Waits until all work that is due now is done (`settle`), also after each timer of a virtual clock (`advance`). Work inside the process is
 * microtasks, which are done after one turn of the event loop; pending work outside (a socket, key generation) is awaited.
 */
import type { Store } from '@capstan/apiserver'
import type { Manager } from '@capstan/controller'
import type { Transport, VirtualClock } from '@capstan/kube'
import { resourceName, withSend } from '@capstan/kube'

/** Places where work may be pending, and limits of the wait for it. */
export interface PendingWork {
  /**
   * Time without progress after which pending work is assumed to wait for virtual time; tests with blocked requests use a small value. With
   * the embedded server, the unit is a turn of the event loop of about a millisecond (default 1,000 turns); the first 20 turns, which are
   * shorter, do not count. With an external server, the unit is a real millisecond, because one turn may read every list from the server:
   * default one minute, because the server may wait for a CPU; at least two seconds.
   */
  readonly patience?: number
  readonly managers: () => readonly Manager[]
  readonly stores: () => readonly Store[]
  readonly traffic: Traffic
  /** Returns whether informers are up to date, for servers whose store is not accessible. */
  readonly isCaughtUp?: () => Promise<boolean>
  /** Aborts when the environment is closed. */
  readonly closed?: AbortSignal
}

/** Counts requests other than watches. */
export interface Traffic {
  /** Number of requests in progress. */
  readonly pending: number
  /** Number of all requests so far. */
  readonly total: number
  /** Wraps a transport to count its requests. */
  count(transport: Transport): Transport
}

export function createTraffic(): Traffic {
  let pending = 0
  let total = 0
  return {
    get pending() {
      return pending
    },
    get total() {
      return total
    },
    count: (transport) =>
      withSend(transport, async (request, signal) => {
        pending++
        total++
        try {
          return await transport.send(request, signal)
        } finally {
          pending--
        }
      }),
  }
}

/** Number of consecutive idle turns of the event loop after which the work counts as done. */
const QuietTurns = 2
const PatienceInProcess = 1000
const PatienceWithExternalServer = 60_000
/** Minimum of `patience` with an external server, which may respond more slowly than the embedded server. */
const MinPatienceWithExternalServer = 2000

/** Resolves when no work is pending, when the environment is closed, or after `patience` without progress. */
export async function settle(pendingWork: PendingWork): Promise<void> {
  let quietTurns = 0
  let progressBefore = ''
  let turnsWithoutProgress = 0
  let lastProgress = performance.now()
  const patience = pendingWork.isCaughtUp
    ? Math.max(pendingWork.patience ?? PatienceWithExternalServer, MinPatienceWithExternalServer)
    : (pendingWork.patience ?? PatienceInProcess)
  while (quietTurns < QuietTurns && !pendingWork.closed?.aborted) {
    // After some turns without progress, a thread or socket is probably pending: wait in real time.
    await (turnsWithoutProgress < 20 ? nextTurn() : pause())
    quietTurns = isQuiet(pendingWork) ? quietTurns + 1 : 0
    // Events may have arrived during the check.
    if (quietTurns === QuietTurns && pendingWork.isCaughtUp && !((await pendingWork.isCaughtUp()) && isQuiet(pendingWork)))
      quietTurns = 0
    const progress = `${pendingWork.traffic.total}/${pendingWork.traffic.pending}/${pendingWork
      .stores()
      .map((store) => store.revision)
      .join()}`
    if (progress !== progressBefore) lastProgress = performance.now()
    turnsWithoutProgress = progress === progressBefore ? turnsWithoutProgress + 1 : 0
    progressBefore = progress
    const waited = pendingWork.isCaughtUp ? performance.now() - lastProgress : turnsWithoutProgress - 20
    if (waited > patience) return
  }
}

/** Settles, then advances the clock by `ms` and settles after each timer. Stops early when the environment is closed. */
export async function advance(clock: VirtualClock, ms: number, pendingWork: PendingWork): Promise<void> {
  const end = clock.now() + ms
  await settle(pendingWork)
  while (!pendingWork.closed?.aborted && clock.step(end)) await settle(pendingWork)
}

function isQuiet({ managers, stores, traffic }: PendingWork): boolean {
  if (traffic.pending > 0) return false
  return managers().every((manager) => manager.idle && isCaughtUp(manager, stores()))
}

/** Whether every informer has the last change of its kind in the first store, which is the store of the management cluster. */
function isCaughtUp(manager: Manager, [store]: readonly Store[]): boolean {
  if (!store) return true
  return manager.informers().every((informer) => {
    const missing = store.since(informer.revision, resourceName(informer.kind))
    return missing.kind === 'changes' && missing.changes.length === 0
  })
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1))
