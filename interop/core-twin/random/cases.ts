/**
 * Cases with random changes, for states that the scripted cases do not reach. The seed and the number in the name of a case
 * determine the case, so that it can be run again. Changes whose result depends on timing in upstream are left out: changes of the
 * replicas of a MachineSet, of the pause of a MachineSet, and of the label by which a MachineSet selects a Machine.
 */
import { seededRandom } from '@capstan/kube'
import type { Case, Cases } from '../twin.ts'
import { randomDeployment } from './deployment.ts'
import { randomDrain } from './drain.ts'
import { randomExternalRemediation, randomHealthChecks } from './health-check.ts'
import { randomMachinePool, randomPoolMachines } from './machine-pool.ts'
import { randomMachines } from './machine.ts'
import { randomResourceSet } from './resource-set.ts'
import { type Choose, chooser } from './story.ts'
import { randomPoolHooks, randomTopologyPools } from './topology-pools.ts'
import { randomHooks, randomTopology } from './topology.ts'

/** A type of random case: creates certain objects, and performs random changes of them. */
interface Story {
  readonly run: (choose: Choose) => Case
  /** Share of the cases of this story in which both managers restart. Default: 0. Few cases restart, because a restart is slow. */
  readonly restarts?: number
}

/** Stories by name. The name of a case contains the name of its story. */
const stories: { readonly [name: string]: Story } = {
  topology: { run: randomTopology, restarts: 0.4 },
  deployment: { run: randomDeployment, restarts: 0.4 },
  hooks: { run: randomHooks },
  machines: { run: randomMachines },
  'resource-set': { run: randomResourceSet },
  'health-checks': { run: randomHealthChecks, restarts: 0.4 },
  drain: { run: randomDrain },
  'machine-pool': { run: randomMachinePool },
  'pool-machines': { run: randomPoolMachines },
  'topology-pools': { run: randomTopologyPools },
  'pool-hooks': { run: randomPoolHooks },
  'external-remediation': { run: randomExternalRemediation },
}

/** The end of the names of cases in which both managers restart. */
const Restart = '-restart'
export const isRestarted = (name: string): boolean => name.endsWith(Restart)

/** Returns `count` cases for a seed. */
export function randomCases(seed: number, count: number): Cases {
  const caseOf = (number: number): [string, Case] => {
    const [story, { run, restarts = 0 }] = Object.entries(stories)[number % Object.keys(stories).length]!
    const random = seededRandom(seed * 10_000 + number)
    const restart = random.next() < restarts ? Restart : ''
    return [`random-${seed}-${String(number).padStart(2, '0')}-${story}${restart}`, run(chooser(random))]
  }
  return Object.fromEntries(Array.from({ length: count }, (_, number) => caseOf(number)))
}
