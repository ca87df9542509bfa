/** Keeps the JavaScript heap of a server small. */
import { setMaxIdleHTTPParsers } from 'node:http'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Node's built-in modules that a server uses. Their compiled code is valid only for V8's initial flags. If they were loaded after
 * the flags are set, they would be compiled again, which takes 20 ms.
 */
const builtinModules = [
  'child_process',
  'cluster',
  'crypto',
  'dns',
  'fs/promises',
  'http2',
  'https',
  'net',
  'sqlite',
  'timers/promises',
  'worker_threads',
  'zlib',
].map((name) => `node:${name}`)

/**
 * Limit of V8's new space, in bytes. At any time, only half of new space contains objects. By default, V8 lets new space grow to 16 times
 * this limit under load.
 */
const NewSpace = 8 * 1024 * 1024
/** Number of idle HTTP/1.1 parsers to keep for later connections. */
const IdleParsers = 16
/**
 * Milliseconds without a garbage collection after which the process counts as idle in two cases: after the start, and after at least half
 * of many connections (`ManyConnections` or more) were closed.
 */
const ShortIdleTime = 1000
const ManyConnections = 64
/** Milliseconds without a garbage collection after which the process counts as idle, at all other times. */
const IdleTime = 30_000
/** Growth of the heap, in bytes, after which garbage is collected while the process is idle. */
const MinGrowth = 12 * 1024 * 1024
/**
 * Bytes in use above which the heap is not collected while idle, because a collection takes about 1.5 ms for each megabyte and delays
 * requests.
 */
const HeapSizeLimit = 192 * 1024 * 1024

/**
 * Makes V8 collect garbage before the garbage is as large as the live data. By default, V8 lets garbage grow to several times the size of
 * the live data. The cost is not measurable: most stored data is text, which the collector does not scan. Also limits new space, and
 * collects all garbage while the process is idle.
 */
export function keepHeapSmall(): void {
  for (const name of builtinModules) process.getBuiltinModule(name)
  // An idle parser needs only 10 KB, but prevents the release of the memory pages of its closed connection.
  setMaxIdleHTTPParsers(IdleParsers)
  setFlagsFromString('--heap-growing-percent=35')
  // Releases the memory of a compilation at its end. By default, a compiler thread releases it when idle, and each of Node's
  // four compiler threads has its own memory.
  setFlagsFromString('--no-maglev-destroy-on-background')
  // Begins with V8's default factor, so that modules load fast at the start.
  let factor = 2
  const setGrowthFactor = (next: number) => {
    if (next === factor) return
    factor = next
    setFlagsFromString(`--semi-space-growth-factor=${factor}`)
  }
  let collections = 0
  const idleCollector = whenIdle(() => {
    collectAll()
    collections = 0
  })
  // V8 accepts a limit of new space only before it starts, so growth is stopped here. New space grows after a collection and shrinks when
  // idle. While growth is stopped, every 32nd collection is checked, because a check costs as much as a request.
  new PerformanceObserver(() => {
    idleCollector.recordCollection()
    if (factor === 1 && ++collections % 32 !== 1) return
    const newSpace = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? NewSpace
    setGrowthFactor(Math.max(1, Math.floor(NewSpace / newSpace)))
  }).observe({ entryTypes: ['gc'] })
}

/**
 * Calls `collect` when the process is idle, if the heap has grown by `MinGrowth` and its objects use at most `HeapSizeLimit`. The caller
 * must call `recordCollection` after each garbage collection.
 */
function whenIdle(collect: () => void): { recordCollection(): void } {
  let size = getHeapStatistics().total_heap_size
  let starting = true
  let mostConnections = 0
  let isShortWait = true
  let timer = setTimeout(collectIfIdle, ShortIdleTime).unref()
  function collectIfIdle(): void {
    const remaining = connections()
    if (isShortWait && !starting && (mostConnections < ManyConnections || remaining > mostConnections / 2)) {
      isShortWait = false
      timer = setTimeout(collectIfIdle, IdleTime - ShortIdleTime).unref()
      return
    }
    starting = false
    mostConnections = remaining
    const { total_heap_size: now, used_heap_size: used } = getHeapStatistics()
    if (now < size + MinGrowth || used > HeapSizeLimit) return
    collect()
    size = getHeapStatistics().total_heap_size
  }
  return {
    recordCollection() {
      if (!starting) mostConnections = Math.max(mostConnections, connections())
      if (isShortWait) return void timer.refresh()
      isShortWait = true
      clearTimeout(timer)
      timer = setTimeout(collectIfIdle, ShortIdleTime).unref()
    },
  }
}

const connections = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

/**
 * Makes V8 collect all garbage and return the memory, which V8 otherwise keeps. Byte code is kept, but optimized code is dropped,
 * so the next thousand requests take 1.5 times as long. Therefore a process that has served requests usually counts as idle only after
 * `IdleTime`, not in short breaks between requests.
 */
function collectAll(): void {
  // Node's small buffers share a pool, and the newest pool is at the end of the memory. Allocating a new pool lets V8 return the free
  // memory below the old one.
  for (let piece = 0; piece < 5; piece++) Buffer.allocUnsafe(Buffer.poolSize / 4)
  setFlagsFromString('--no-flush-bytecode')
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
  setFlagsFromString('--flush-bytecode')
}
