/**
 * Sends hostile inputs to our server and to a real server: both must respond with the same status, except for the differences in
 * `abuse/explained.ts`, and neither may exit. On our server, another user must not wait longer than 250 ms, or than twice the time on the
 * real server if that is longer. Run by `npm run interop -- abuse`.
 */
import { explained } from './abuse/explained.ts'
import { type HostileInput, hostileInputs, largestInputs } from './abuse/inputs.ts'
import { type Observed, prepareObserver, type Observer } from './abuse/observe.ts'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { residentBytes } from './processes/proc.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { chosenByCommit, namesWith, type Outcome, type Suite, type SuiteOptions } from './shared/suite.ts'

export const abuseSuite: Suite = {
  shows: 'hostile inputs get the status of a real server, and do not delay other users',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  minutes: 60,
  run,
}

/** Number of parts into which `hostileInputs` is divided. In CI, and without `--only` and `--all`, one part is sent, chosen by the commit. */
const CommitParts = 6

/**
 * Memory in bytes beyond which a new real server replaces the old one: one server would use more than 20 GB after 50 of the largest inputs.
 */
const MemoryOfRealServer = 4 * 2 ** 30

/** Time limit for a request at the real server: a third of its default, because some of the largest inputs take minutes. */
const RealServerFlags = ['--request-timeout=20s']

/** Number of inputs between two progress messages. */
const ProgressInterval = 50

/** Delay of another user in milliseconds that the suite always accepts, even if it is more than twice that of the real server. */
const ToleratedDelay = 250

async function run(options: SuiteOptions = {}): Promise<Outcome> {
  const hostile = hostileInputs()
  const allInputs = [...hostile, ...largestInputs()]
  const names = chosenNames(namesOf(hostile), namesOf(allInputs), options)
  const inputs = allInputs.filter(({ name }) => names.includes(name))
  console.log(`${inputs.length} of ${allInputs.length} inputs`)
  const users = { users: [{ name: 'other' }] }
  await using ours = await startCapstanApiServer(users)
  const ourObserver = await prepareObserver(ours)
  let [passed, failed] = [0, 0]
  const count = (isPassed: boolean) => (isPassed ? passed++ : failed++)
  const checkStillRunning = ({ apiServer }: Observer) => {
    if (apiServer.programs.some(({ ending }) => ending !== undefined)) throw new Error(`${apiServer.name} has ended`)
  }
  let worst = { name: 'none', delay: 0, real: 0 }
  const totals = { ours: { cpuSeconds: 0, memory: 0 }, real: { cpuSeconds: 0, memory: 0 } }
  for (let sent = 0; sent < inputs.length; ) {
    await using real = await startRealApiServer({ ...users, flags: RealServerFlags })
    const realObserver = await prepareObserver(real)
    let isUsable = true
    while (isUsable && sent < inputs.length) {
      const input = inputs[sent++]!
      const { problems, ourResult, realResult } = await compare(input, ourObserver, realObserver)
      const [{ delay }, { delay: realDelay, status: realStatus }] = [ourResult, realResult]
      for (const [total, { cpuSeconds, memory }] of [
        [totals.ours, ourResult],
        [totals.real, realResult],
      ] as const) {
        total.cpuSeconds += cpuSeconds
        total.memory = Math.max(total.memory, memory)
      }
      if (delay > worst.delay) worst = { name: input.name, delay, real: realDelay }
      count(problems.length === 0)
      if (problems.length > 0) console.log(`${input.name}: ${problems.join('; ')}`)
      checkStillRunning(realObserver)
      if (sent % ProgressInterval === 0) console.log(`${sent} of ${inputs.length} inputs sent`)
      // A real server whose request timed out continues to work on the request, so a new server replaces it. A timeout leads to status
      // 504, or to 0 if the connection ends.
      isUsable = realStatus !== 504 && realStatus !== 0 && residentBytes(realObserver.server.pid) < MemoryOfRealServer
    }
    realObserver.close()
  }
  checkStillRunning(ourObserver)
  ourObserver.close()
  console.log(
    `${inputs.length} inputs; worst delay of another user: ${worst.delay.toFixed(0)} ms, real ${worst.real.toFixed(0)} ms (${worst.name})`,
  )
  for (const [name, { cpuSeconds, memory }] of Object.entries(totals))
    console.log(`${name}: ${cpuSeconds.toFixed(1)} s of CPU for all inputs, at most ${Math.round(memory / 2 ** 20)} MB of memory`)
  return { passed, failed }
}

/** Returns the names of the inputs to send: those that `only` selects, all with `all`, otherwise a part of the hostile inputs. */
function chosenNames(hostile: readonly string[], all: readonly string[], options: SuiteOptions): readonly string[] {
  if (options.only !== undefined) return namesWith(all, options.only)
  return options.all ? all : chosenByCommit(hostile, CommitParts)
}

interface Comparison {
  readonly problems: readonly string[]
  readonly ourResult: Observed
  readonly realResult: Observed
}

/**
 * Compares the statuses of both servers' responses to an input, and the delays of the other user. Sends the input to one server after the
 * other, because both servers use the same CPU cores.
 */
async function compare(input: HostileInput, ours: Observer, real: Observer): Promise<Comparison> {
  const observe = async () => [await ours.observe(input), await real.observe(input)] as const
  let [ourResult, realResult] = await observe()
  // Other programs may have slowed down this measurement, so the medians of three measurements are compared.
  if (isTooLong(ourResult, realResult)) {
    const [second, third] = [await observe(), await observe()]
    ourResult = { ...ourResult, delay: median(ourResult.delay, second[0].delay, third[0].delay) }
    realResult = { ...realResult, delay: median(realResult.delay, second[1].delay, third[1].delay) }
  }
  const problems = [
    ...(ourResult.status === realResult.status || explained(input, ourResult.status, realResult.status)
      ? []
      : [`responds with ${ourResult.status}, the real server with ${realResult.status}`]),
    ...(isTooLong(ourResult, realResult)
      ? [`another user waits ${ourResult.delay.toFixed(0)} ms, at the real server ${realResult.delay.toFixed(0)} ms`]
      : []),
  ]
  return { problems, ourResult, realResult }
}

const namesOf = (inputs: readonly HostileInput[]): string[] => inputs.map(({ name }) => name)

const median = (...values: [number, number, number]): number => values.toSorted((a, b) => a - b)[1]!

const isTooLong = (ours: Observed, real: Observed): boolean => ours.delay > Math.max(ToleratedDelay, 2 * real.delay)
