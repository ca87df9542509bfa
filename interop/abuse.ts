/**
 * Sends hostile inputs to our server and to a real one: both must respond with the same status, neither may exit, and other users must not
 * wait longer than twice as long as on the real server. Run by `npm run interop -- abuse`.
 */
import { explained } from './abuse/explained.ts'
import { type HostileInput, hostileInputs, largestInputs } from './abuse/inputs.ts'
import { type Observed, observed } from './abuse/observe.ts'
import { startCapstanPlane } from './capstan-plane.ts'
import { startRealPlane } from './real-plane.ts'
import { chosenByCommit, namesWith, type Outcome, type Suite, type SuiteOptions } from './suite.ts'

export const abuseSuite: Suite = {
  shows: 'hostile inputs get the status of a real server, and do not delay other users',
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager'],
  minutes: 60,
  run,
}

/** CI sends about one of so many parts of the inputs, chosen by the commit. */
const CommitParts = 6

/** Delay of other users, in milliseconds, that passes even if the real server is faster. */
const Tolerated = 250

async function run({ only, all = false }: SuiteOptions = {}): Promise<Outcome> {
  const hostile = hostileInputs()
  const every = [...hostile, ...largestInputs()]
  const names =
    only !== undefined ? namesWith(namesOf(every), only) : all ? namesOf(every) : chosenByCommit(namesOf(hostile), CommitParts)
  const inputs = every.filter(({ name }) => names.includes(name))
  console.log(`${inputs.length} of ${every.length} inputs`)
  const users = { users: [{ name: 'other' }] }
  await using ours = await startCapstanPlane(users)
  await using real = await startRealPlane(users)
  const sides = await Promise.all([ours, real].map(observed))
  let [passed, failed] = [0, 0]
  let worst = { name: 'none', delay: 0, real: 0 }
  for (const input of inputs) {
    // One after the other: they share the cores.
    const observe = async () => [await sides[0]!.observe(input), await sides[1]!.observe(input)] as const
    let [mine, theirs] = await observe()
    // Once may be chance, since the machine does other things, too: the medians of three count, on both sides.
    if (isTooLong(mine, theirs)) {
      const [second, third] = [await observe(), await observe()]
      mine = { ...mine, delay: median(mine.delay, second[0].delay, third[0].delay) }
      theirs = { ...theirs, delay: median(theirs.delay, second[1].delay, third[1].delay) }
    }
    if (mine.delay > worst.delay) worst = { name: input.name, delay: mine.delay, real: theirs.delay }
    const problems = [
      ...(mine.status === theirs.status || explained(input, mine.status, theirs.status)
        ? []
        : [`answers ${mine.status}, the real server ${theirs.status}`]),
      ...(isTooLong(mine, theirs)
        ? [`another user waits ${mine.delay.toFixed(0)} ms, at the real server ${theirs.delay.toFixed(0)} ms`]
        : []),
    ]
    if (problems.length === 0) passed++
    else {
      failed++
      console.log(`${input.name}: ${problems.join('; ')}`)
    }
  }
  for (const side of sides) {
    const isAlive = side.plane.programs.every(({ ending }) => ending === undefined)
    if (isAlive) passed++
    else failed++
    console.log(`${side.plane.name}: ${isAlive ? 'runs' : 'has ended'}`)
    side.close()
  }
  console.log(
    `${inputs.length} inputs; worst delay of another user: ${worst.delay.toFixed(0)} ms, real ${worst.real.toFixed(0)} ms (${worst.name})`,
  )
  return { passed, failed }
}

const namesOf = (inputs: readonly HostileInput[]): string[] => inputs.map(({ name }) => name)

const median = (...three: [number, number, number]): number => three.toSorted((a, b) => a - b)[1]!

const isTooLong = (mine: Observed, theirs: Observed): boolean => mine.delay > Math.max(Tolerated, 2 * theirs.delay)
