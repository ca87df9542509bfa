/**
 * Cases with random changes, for states that the scripted cases do not reach. The seed and the number in the name of a case
 * determine the case, so that it can be run again. Changes whose result depends on timing in upstream are left out: of the
 * replicas of a MachineSet, of the label by which a MachineSet selects a Machine, and the pause of a MachineSet.
 */
import { seededRandom } from '@capstan/kube'
import type { Case, Cases } from '../twin.ts'
import { randomDeployment } from './deployment.ts'
import { randomDrain } from './drain.ts'
import { randomMachinePool, randomPoolMachines } from './machine-pool.ts'
import { randomResourceSet } from './resource-set.ts'
import { chooser } from './story.ts'
import { randomPoolHooks, randomTopologyPools } from './topology-pools.ts'
import { randomHooks, randomTopology } from './topology.ts'

const stories = [
  randomTopology,
  randomDeployment,
  randomHooks,
  randomDeployment,
  randomResourceSet,
  randomDrain,
  randomMachinePool,
  randomPoolMachines,
  randomTopologyPools,
  randomPoolHooks,
]

/** Returns `count` cases for a seed. */
export function randomCases(seed: number, count: number): Cases {
  const caseOf = (number: number): [string, Case] => [
    `random-${seed}-${String(number).padStart(2, '0')}`,
    stories[number % stories.length]!(chooser(seededRandom(seed * 10_000 + number))),
  ]
  return Object.fromEntries(Array.from({ length: count }, (_, number) => caseOf(number)))
}
