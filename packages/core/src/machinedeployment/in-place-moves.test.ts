import type { Machine, MachineSet } from '@capstan/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrivals, moveCandidates, receiveAnnotations } from './in-place-moves.ts'
import { planRollingUpdate } from './plan-rolling-update.ts'
import type { InPlaceRollout, Rollout, SetCounts } from './rollout-plan.ts'

/**
 * State of a simulated rollout, in which MachineSets and Machines change as their controllers would change them. Cases with a comment about
 * replicas and limits are those of upstream's Test_RollingUpdateSequences in v1.14, with the same counts. The simulation returns a line for
 * each reconcile of the MachineDeployment: `ms1 6/5 -> 6/6` means that `status.replicas` is 6 and that the reconcile changes `spec.replicas`
 * from 5 to 6. A MachineSet that the reconcile creates has no arrow: `ms2 0/1` shows its new `spec.replicas`. `*` marks a Machine that is being
 * updated.
 */
interface World {
  replicas: number
  maxSurge: number
  maxUnavailable: number
  template: string
  /** Whether an extension can update all Machines in place. */
  isMovable: boolean
  /**
   * Whether annotations about moves stay on the sets while no Machine can move, as in upstream's simulation. The controllers of upstream
   * and of this project remove them.
   */
  keepsAnnotations: boolean
  sets: FakeSet[]
  /** Number of Machines created so far, including the initial ones. */
  created: number
}
interface FakeSet {
  name: string
  template: string
  /** `spec.replicas` */
  desired: number
  /** `status.replicas` */
  existing: number
  available: number
  upToDate: number
  machines: FakeMachine[]
  movesTo?: string | undefined
  receivesFrom: ReadonlySet<string>
  acknowledged: readonly string[]
}
interface FakeMachine {
  name: string
  isUpdating?: boolean
  /**
   * Whether the Machine is marked as moved. Its set removes the mark after the MachineDeployment has acknowledged the Machine, or while the set
   * receives Machines from no other set.
   */
  isPending?: boolean
}

const aSet = (name: string, template: string, names: readonly string[]): FakeSet => ({
  name,
  template,
  desired: names.length,
  existing: names.length,
  available: names.length,
  upToDate: 0,
  machines: names.map((machine) => ({ name: machine })),
  receivesFrom: new Set(),
  acknowledged: [],
})
const machineNames = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `m${from + index}`)

const aWorld = (replicas: number, maxSurge: number, maxUnavailable: number, overrides: Partial<World> = {}): World => ({
  replicas,
  maxSurge,
  maxUnavailable: maxUnavailable > replicas ? replicas : maxUnavailable,
  template: 'v2',
  isMovable: true,
  keepsAnnotations: true,
  sets: [aSet('ms1', 'v1', machineNames(1, replicas))],
  created: replicas,
  ...overrides,
})

const number = ({ name }: { name: string }): number => Number(name.replace(/\D/g, ''))
const byNumber = (a: { name: string }, b: { name: string }): number => number(a) - number(b)

/** Reconciles the MachineDeployment once; returns a line with the counts that it read and the changes that it decided. */
function reconcileDeployment(world: World): string {
  const existing = world.sets.find(({ template }) => template === world.template)
  const createdSet = existing ? undefined : aSet(`ms${world.sets.length + 1}`, world.template, [])
  const current = existing ?? createdSet!
  if (createdSet) world.sets.push(createdSet)
  const old = world.sets.filter((set) => set !== current)
  const arrived = current.machines.filter(({ isPending }) => isPending).map(({ name }) => name)
  const uncounted = arrived.filter((name) => !current.acknowledged.includes(name))
  const isUpdating = world.sets.some((set) => set.machines.some((machine) => machine.isUpdating))
  const rollout = rolloutOf(world, current, old, { movable: new Set(), arrived: uncounted, isUpdating })
  const movable = new Set(world.isMovable ? moveCandidates(rollout).map(({ name }) => name) : [])
  const plan = planRollingUpdate({ ...rollout, inPlace: { ...rollout.inPlace!, movable } })
  const lines = world.sets.map((set) => {
    const to = plan.find((scale) => scale.set === set.name)?.to ?? set.desired
    const currentCounts = `${set.existing}/${set === createdSet ? to : set.desired}`
    const counts = set === createdSet || to === set.desired ? currentCounts : `${currentCounts} -> ${set.existing}/${to}`
    return { set, to, counts: `${set.name} ${counts}, ${set.available} available, ${set.upToDate} upToDate` }
  })
  for (const { set, to } of lines) set.desired = to
  current.acknowledged = arrived
  if (movable.size > 0 || !world.keepsAnnotations) {
    current.receivesFrom = movable
    current.movesTo = undefined
    for (const set of old) {
      set.movesTo = movable.has(set.name) ? current.name : undefined
      set.receivesFrom = new Set()
      set.acknowledged = []
    }
  }
  return lines.map(({ set, counts }) => `${counts} (${machinesText(set)})`).join('; ')
}

const rolloutOf = (world: World, current: SetCounts, old: readonly SetCounts[], inPlace: InPlaceRollout): Rollout => ({
  ...world,
  current,
  old,
  inPlace,
})

const machinesText = ({ machines }: FakeSet): string =>
  machines.map(({ name, isUpdating }) => `${name}${isUpdating ? '*' : ''}`).join(',')

/** Reconciles a MachineSet once. */
function reconcileSet(world: World, set: FakeSet): void {
  for (const machine of set.machines) if (!machine.isPending) machine.isUpdating = false
  for (const machine of set.machines) {
    if (set.receivesFrom.size === 0 || set.acknowledged.includes(machine.name)) machine.isPending = false
  }
  const pending = set.receivesFrom.size === 0 ? 0 : set.machines.filter(({ isPending }) => isPending).length
  const surplus = set.machines.length - pending - set.desired
  if (set.machines.length < set.desired) {
    for (let missing = set.desired - set.machines.length; missing > 0; missing--)
      set.machines.push({ name: `m${++world.created}` })
  } else if (surplus > 0 && set.movesTo !== undefined) {
    const target = world.sets.find(({ name }) => name === set.movesTo)!
    if (!target.receivesFrom.has(set.name)) throw new Error(`${target.name} does not expect Machines of ${set.name}`)
    const moved = set.machines.filter(({ isUpdating }) => !isUpdating).slice(0, surplus)
    set.machines = set.machines.filter((machine) => !moved.includes(machine))
    target.machines.push(...moved.map(({ name }) => ({ name, isUpdating: true, isPending: true })))
    target.machines.sort(byNumber)
  } else if (surplus > 0) {
    const rank = (machine: FakeMachine): number => (machine.isUpdating ? -1000 - number(machine) : number(machine))
    const removed = set.machines.toSorted((a, b) => rank(a) - rank(b)).slice(0, surplus)
    set.machines = set.machines.filter((machine) => !removed.includes(machine))
  }
  set.machines.sort(byNumber)
  const settled = set.machines.filter(({ isUpdating }) => !isUpdating).length
  set.existing = set.machines.length
  set.available = settled
  set.upToDate = set.template === world.template ? settled : 0
}

const isOver = ({ sets, template, replicas }: World): boolean =>
  sets.every((set) => {
    const expectedCount = set.template === template ? replicas : 0
    const counts = [set.desired, set.existing, set.available, set.machines.length]
    return counts.every((count) => count === expectedCount)
  })

function simulate(world: World): string {
  const lines: string[] = []
  for (let reconcile = 1; reconcile < 60; reconcile++) {
    lines.push(`${reconcile}. ${reconcileDeployment(world)}`)
    for (const set of world.sets) reconcileSet(world, set)
    if (isOver(world)) return [...lines, `${reconcile + 1}. ${reconcileDeployment(world)}`].join('\n')
  }
  throw new Error(`the rollout does not end:\n${lines.join('\n')}`)
}

/** State in the middle of a rollout: `ms2` has three of the Machines when a user changes the replicas or the template. */
const duringRollout = (replicas: number, template: string, oldNames: readonly string[], machineCount: number): World =>
  aWorld(replicas, 3, 1, {
    template,
    sets: [aSet('ms1', 'v1', oldNames), aSet('ms2', 'v2', machineNames(1, 3))],
    created: machineCount,
  })

describe('a rolling update in place', () => {
  test('updates one Machine at a time with maxSurge 1, after creating one Machine', () => {
    // 3 replicas, maxSurge 1, maxUnavailable 0
    expect(simulate(aWorld(3, 1, 0))).toMatchInlineSnapshot(`
      "1. ms1 3/3, 3 available, 0 upToDate (m1,m2,m3); ms2 0/1, 0 available, 0 upToDate ()
      2. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m1,m2,m3); ms2 1/1, 1 available, 1 upToDate (m4)
      3. ms1 2/2, 2 available, 0 upToDate (m2,m3); ms2 2/1 -> 2/2, 1 available, 1 upToDate (m1*,m4)
      4. ms1 2/2, 2 available, 0 upToDate (m2,m3); ms2 2/2, 1 available, 1 upToDate (m1*,m4)
      5. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m2,m3); ms2 2/2, 2 available, 2 upToDate (m1,m4)
      6. ms1 1/1, 1 available, 0 upToDate (m3); ms2 3/2 -> 3/3, 2 available, 2 upToDate (m1,m2*,m4)
      7. ms1 1/1, 1 available, 0 upToDate (m3); ms2 3/3, 2 available, 2 upToDate (m1,m2*,m4)
      8. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m3); ms2 3/3, 3 available, 3 upToDate (m1,m2,m4)
      9. ms1 0/0, 0 available, 0 upToDate (); ms2 4/3, 3 available, 3 upToDate (m1,m2,m3*,m4)
      10. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3, 3 available, 3 upToDate (m1,m2,m4)"
    `)
  })

  test('moves Machines without a surge Machine when one may be unavailable', () => {
    // 3 replicas, maxSurge 0, maxUnavailable 1
    expect(simulate(aWorld(3, 0, 1))).toMatchInlineSnapshot(`
      "1. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m1,m2,m3); ms2 0/0, 0 available, 0 upToDate ()
      2. ms1 2/2, 2 available, 0 upToDate (m2,m3); ms2 1/0 -> 1/1, 0 available, 0 upToDate (m1*)
      3. ms1 2/2, 2 available, 0 upToDate (m2,m3); ms2 1/1, 0 available, 0 upToDate (m1*)
      4. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m2,m3); ms2 1/1, 1 available, 1 upToDate (m1)
      5. ms1 1/1, 1 available, 0 upToDate (m3); ms2 2/1 -> 2/2, 1 available, 1 upToDate (m1,m2*)
      6. ms1 1/1, 1 available, 0 upToDate (m3); ms2 2/2, 1 available, 1 upToDate (m1,m2*)
      7. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m3); ms2 2/2, 2 available, 2 upToDate (m1,m2)
      8. ms1 0/0, 0 available, 0 upToDate (); ms2 3/2 -> 3/3, 2 available, 2 upToDate (m1,m2,m3*)
      9. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3, 2 available, 2 upToDate (m1,m2,m3*)
      10. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3, 3 available, 3 upToDate (m1,m2,m3)"
    `)
  })

  test('creates no surge Machine when maxUnavailable allows moves', () => {
    // 6 replicas, maxSurge 3, maxUnavailable 1
    expect(simulate(aWorld(6, 3, 1))).toMatchInlineSnapshot(`
      "1. ms1 6/6 -> 6/5, 6 available, 0 upToDate (m1,m2,m3,m4,m5,m6); ms2 0/0, 0 available, 0 upToDate ()
      2. ms1 5/5, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 1/0 -> 1/1, 0 available, 0 upToDate (m1*)
      3. ms1 5/5, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 1/1, 0 available, 0 upToDate (m1*)
      4. ms1 5/5 -> 5/4, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 1/1, 1 available, 1 upToDate (m1)
      5. ms1 4/4, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 2/1 -> 2/2, 1 available, 1 upToDate (m1,m2*)
      6. ms1 4/4, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 2/2, 1 available, 1 upToDate (m1,m2*)
      7. ms1 4/4 -> 4/3, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 2/2, 2 available, 2 upToDate (m1,m2)
      8. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 3/2 -> 3/3, 2 available, 2 upToDate (m1,m2,m3*)
      9. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3, 2 available, 2 upToDate (m1,m2,m3*)
      10. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3, 3 available, 3 upToDate (m1,m2,m3)
      11. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 4/3 -> 4/4, 3 available, 3 upToDate (m1,m2,m3,m4*)
      12. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 4/4, 3 available, 3 upToDate (m1,m2,m3,m4*)
      13. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m5,m6); ms2 4/4, 4 available, 4 upToDate (m1,m2,m3,m4)
      14. ms1 1/1, 1 available, 0 upToDate (m6); ms2 5/4 -> 5/5, 4 available, 4 upToDate (m1,m2,m3,m4,m5*)
      15. ms1 1/1, 1 available, 0 upToDate (m6); ms2 5/5, 4 available, 4 upToDate (m1,m2,m3,m4,m5*)
      16. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m6); ms2 5/5, 5 available, 5 upToDate (m1,m2,m3,m4,m5)
      17. ms1 0/0, 0 available, 0 upToDate (); ms2 6/5 -> 6/6, 5 available, 5 upToDate (m1,m2,m3,m4,m5,m6*)
      18. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 5 available, 5 upToDate (m1,m2,m3,m4,m5,m6*)
      19. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)"
    `)
  })

  test('moves as many Machines at once as may be unavailable', () => {
    // 6 replicas, maxSurge 1, maxUnavailable 3
    expect(simulate(aWorld(6, 1, 3))).toMatchInlineSnapshot(`
      "1. ms1 6/6 -> 6/3, 6 available, 0 upToDate (m1,m2,m3,m4,m5,m6); ms2 0/0, 0 available, 0 upToDate ()
      2. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 3/0 -> 3/3, 0 available, 0 upToDate (m1*,m2*,m3*)
      3. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3, 0 available, 0 upToDate (m1*,m2*,m3*)
      4. ms1 3/3 -> 3/0, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3, 3 available, 3 upToDate (m1,m2,m3)
      5. ms1 0/0, 0 available, 0 upToDate (); ms2 6/3 -> 6/6, 3 available, 3 upToDate (m1,m2,m3,m4*,m5*,m6*)
      6. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 3 available, 3 upToDate (m1,m2,m3,m4*,m5*,m6*)
      7. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)"
    `)
  })

  test('creates only one surge Machine when maxSurge is 10', () => {
    // 6 replicas, maxSurge 10, maxUnavailable 0
    expect(simulate(aWorld(6, 10, 0))).toMatchInlineSnapshot(`
      "1. ms1 6/6, 6 available, 0 upToDate (m1,m2,m3,m4,m5,m6); ms2 0/1, 0 available, 0 upToDate ()
      2. ms1 6/6 -> 6/5, 6 available, 0 upToDate (m1,m2,m3,m4,m5,m6); ms2 1/1, 1 available, 1 upToDate (m7)
      3. ms1 5/5, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 2/1 -> 2/2, 1 available, 1 upToDate (m1*,m7)
      4. ms1 5/5, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 2/2, 1 available, 1 upToDate (m1*,m7)
      5. ms1 5/5 -> 5/4, 5 available, 0 upToDate (m2,m3,m4,m5,m6); ms2 2/2, 2 available, 2 upToDate (m1,m7)
      6. ms1 4/4, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 3/2 -> 3/3, 2 available, 2 upToDate (m1,m2*,m7)
      7. ms1 4/4, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 3/3, 2 available, 2 upToDate (m1,m2*,m7)
      8. ms1 4/4 -> 4/3, 4 available, 0 upToDate (m3,m4,m5,m6); ms2 3/3, 3 available, 3 upToDate (m1,m2,m7)
      9. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 4/3 -> 4/4, 3 available, 3 upToDate (m1,m2,m3*,m7)
      10. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 4/4, 3 available, 3 upToDate (m1,m2,m3*,m7)
      11. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m4,m5,m6); ms2 4/4, 4 available, 4 upToDate (m1,m2,m3,m7)
      12. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 5/4 -> 5/5, 4 available, 4 upToDate (m1,m2,m3,m4*,m7)
      13. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 5/5, 4 available, 4 upToDate (m1,m2,m3,m4*,m7)
      14. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m5,m6); ms2 5/5, 5 available, 5 upToDate (m1,m2,m3,m4,m7)
      15. ms1 1/1, 1 available, 0 upToDate (m6); ms2 6/5 -> 6/6, 5 available, 5 upToDate (m1,m2,m3,m4,m5*,m7)
      16. ms1 1/1, 1 available, 0 upToDate (m6); ms2 6/6, 5 available, 5 upToDate (m1,m2,m3,m4,m5*,m7)
      17. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m6); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m7)
      18. ms1 0/0, 0 available, 0 upToDate (); ms2 7/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6*,m7)
      19. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m7)"
    `)
  })

  test('moves all Machines at once when all may be unavailable', () => {
    // 6 replicas, maxSurge 0, maxUnavailable 10
    expect(simulate(aWorld(6, 0, 10))).toMatchInlineSnapshot(`
      "1. ms1 6/6 -> 6/0, 6 available, 0 upToDate (m1,m2,m3,m4,m5,m6); ms2 0/0, 0 available, 0 upToDate ()
      2. ms1 0/0, 0 available, 0 upToDate (); ms2 6/0 -> 6/6, 0 available, 0 upToDate (m1*,m2*,m3*,m4*,m5*,m6*)
      3. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 0 available, 0 upToDate (m1*,m2*,m3*,m4*,m5*,m6*)
      4. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)"
    `)
  })

  test('creates additional Machines when replicas increase during the rollout', () => {
    // 6 replicas, maxSurge 3, maxUnavailable 1, scale up to 12
    expect(simulate(duringRollout(12, 'v2', machineNames(4, 6), 6))).toMatchInlineSnapshot(`
      "1. ms1 3/3, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3 -> 3/9, 3 available, 0 upToDate (m1,m2,m3)
      2. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m4,m5,m6); ms2 9/9, 9 available, 9 upToDate (m1,m2,m3,m7,m8,m9,m10,m11,m12)
      3. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 10/9 -> 10/10, 9 available, 9 upToDate (m1,m2,m3,m4*,m7,m8,m9,m10,m11,m12)
      4. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 10/10, 9 available, 9 upToDate (m1,m2,m3,m4*,m7,m8,m9,m10,m11,m12)
      5. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m5,m6); ms2 10/10, 10 available, 10 upToDate (m1,m2,m3,m4,m7,m8,m9,m10,m11,m12)
      6. ms1 1/1, 1 available, 0 upToDate (m6); ms2 11/10 -> 11/11, 10 available, 10 upToDate (m1,m2,m3,m4,m5*,m7,m8,m9,m10,m11,m12)
      7. ms1 1/1, 1 available, 0 upToDate (m6); ms2 11/11, 10 available, 10 upToDate (m1,m2,m3,m4,m5*,m7,m8,m9,m10,m11,m12)
      8. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m6); ms2 11/11, 11 available, 11 upToDate (m1,m2,m3,m4,m5,m7,m8,m9,m10,m11,m12)
      9. ms1 0/0, 0 available, 0 upToDate (); ms2 12/11 -> 12/12, 11 available, 11 upToDate (m1,m2,m3,m4,m5,m6*,m7,m8,m9,m10,m11,m12)
      10. ms1 0/0, 0 available, 0 upToDate (); ms2 12/12, 11 available, 11 upToDate (m1,m2,m3,m4,m5,m6*,m7,m8,m9,m10,m11,m12)
      11. ms1 0/0, 0 available, 0 upToDate (); ms2 12/12, 12 available, 12 upToDate (m1,m2,m3,m4,m5,m6,m7,m8,m9,m10,m11,m12)"
    `)
  })

  test('deletes surplus Machines when replicas decrease during the rollout, and those that are being updated first', () => {
    // 12 replicas, maxSurge 3, maxUnavailable 1, scale down to 6
    expect(simulate(duringRollout(6, 'v2', machineNames(4, 12), 12))).toMatchInlineSnapshot(`
      "1. ms1 9/9 -> 9/2, 9 available, 0 upToDate (m4,m5,m6,m7,m8,m9,m10,m11,m12); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3)
      2. ms1 2/2, 2 available, 0 upToDate (m11,m12); ms2 10/3 -> 10/6, 3 available, 3 upToDate (m1,m2,m3,m4*,m5*,m6*,m7*,m8*,m9*,m10*)
      3. ms1 2/2, 2 available, 0 upToDate (m11,m12); ms2 6/6, 3 available, 3 upToDate (m1,m2,m3,m4*,m5*,m6*)
      4. ms1 2/2 -> 2/0, 2 available, 0 upToDate (m11,m12); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)
      5. ms1 0/0, 0 available, 0 upToDate (); ms2 8/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6,m11*,m12*)
      6. ms1 0/0, 0 available, 0 upToDate (); ms2 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)"
    `)
  })

  test('updates Machines again when the template changes during the rollout', () => {
    // 6 replicas, maxSurge 3, maxUnavailable 1, change spec
    expect(simulate(duringRollout(6, 'v3', machineNames(4, 6), 6))).toMatchInlineSnapshot(`
      "1. ms1 3/3 -> 3/2, 3 available, 0 upToDate (m4,m5,m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 0/0, 0 available, 0 upToDate ()
      2. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 1/0 -> 1/1, 0 available, 0 upToDate (m4*)
      3. ms1 2/2, 2 available, 0 upToDate (m5,m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 1/1, 0 available, 0 upToDate (m4*)
      4. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m5,m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 1/1, 1 available, 1 upToDate (m4)
      5. ms1 1/1, 1 available, 0 upToDate (m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 2/1 -> 2/2, 1 available, 1 upToDate (m4,m5*)
      6. ms1 1/1, 1 available, 0 upToDate (m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 2/2, 1 available, 1 upToDate (m4,m5*)
      7. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m6); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 2/2, 2 available, 2 upToDate (m4,m5)
      8. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 3/2 -> 3/3, 2 available, 2 upToDate (m4,m5,m6*)
      9. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3, 3 available, 0 upToDate (m1,m2,m3); ms3 3/3, 2 available, 2 upToDate (m4,m5,m6*)
      10. ms1 0/0, 0 available, 0 upToDate (); ms2 3/3 -> 3/2, 3 available, 0 upToDate (m1,m2,m3); ms3 3/3, 3 available, 3 upToDate (m4,m5,m6)
      11. ms1 0/0, 0 available, 0 upToDate (); ms2 2/2, 2 available, 0 upToDate (m2,m3); ms3 4/3 -> 4/4, 3 available, 3 upToDate (m1*,m4,m5,m6)
      12. ms1 0/0, 0 available, 0 upToDate (); ms2 2/2, 2 available, 0 upToDate (m2,m3); ms3 4/4, 3 available, 3 upToDate (m1*,m4,m5,m6)
      13. ms1 0/0, 0 available, 0 upToDate (); ms2 2/2 -> 2/1, 2 available, 0 upToDate (m2,m3); ms3 4/4, 4 available, 4 upToDate (m1,m4,m5,m6)
      14. ms1 0/0, 0 available, 0 upToDate (); ms2 1/1, 1 available, 0 upToDate (m3); ms3 5/4 -> 5/5, 4 available, 4 upToDate (m1,m2*,m4,m5,m6)
      15. ms1 0/0, 0 available, 0 upToDate (); ms2 1/1, 1 available, 0 upToDate (m3); ms3 5/5, 4 available, 4 upToDate (m1,m2*,m4,m5,m6)
      16. ms1 0/0, 0 available, 0 upToDate (); ms2 1/1 -> 1/0, 1 available, 0 upToDate (m3); ms3 5/5, 5 available, 5 upToDate (m1,m2,m4,m5,m6)
      17. ms1 0/0, 0 available, 0 upToDate (); ms2 0/0, 0 available, 0 upToDate (); ms3 6/5 -> 6/6, 5 available, 5 upToDate (m1,m2,m3*,m4,m5,m6)
      18. ms1 0/0, 0 available, 0 upToDate (); ms2 0/0, 0 available, 0 upToDate (); ms3 6/6, 5 available, 5 upToDate (m1,m2,m3*,m4,m5,m6)
      19. ms1 0/0, 0 available, 0 upToDate (); ms2 0/0, 0 available, 0 upToDate (); ms3 6/6, 6 available, 6 upToDate (m1,m2,m3,m4,m5,m6)"
    `)
  })

  test('replaces Machines that no extension can update', () => {
    expect(simulate(aWorld(2, 1, 0, { isMovable: false }))).toMatchInlineSnapshot(`
      "1. ms1 2/2, 2 available, 0 upToDate (m1,m2); ms2 0/1, 0 available, 0 upToDate ()
      2. ms1 2/2 -> 2/1, 2 available, 0 upToDate (m1,m2); ms2 1/1, 1 available, 1 upToDate (m3)
      3. ms1 1/1, 1 available, 0 upToDate (m2); ms2 1/1 -> 1/2, 1 available, 1 upToDate (m3)
      4. ms1 1/1 -> 1/0, 1 available, 0 upToDate (m2); ms2 2/2, 2 available, 2 upToDate (m3,m4)
      5. ms1 0/0, 0 available, 0 upToDate (); ms2 2/2, 2 available, 2 upToDate (m3,m4)"
    `)
  })
})

describe('arrivals', () => {
  const prefix = 'in-place-updates.internal.cluster.x-k8s.io'
  const current = {
    metadata: { name: 'ms2', uid: 'ms2', annotations: { [`${prefix}/acknowledged-move`]: 'm1,gone' } },
  } as unknown as MachineSet
  const aMachine = (name: string, owner: string, annotations: object = { [`${prefix}/pending-acknowledge-move`]: '' }): Machine =>
    ({
      metadata: {
        name,
        annotations,
        ownerReferences: [
          { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', name: owner, uid: owner, controller: true },
        ],
      },
    }) as unknown as Machine

  test('are the Machines of the set that are marked as moved; those that the annotation of the set does not list as acknowledged are uncounted', () => {
    const machines = [aMachine('m3', 'ms2'), aMachine('m1', 'ms2'), aMachine('m2', 'ms2', {}), aMachine('m4', 'ms1')]
    expect(arrivals(current, machines)).toEqual({ all: ['m1', 'm3'], uncounted: ['m3'] })
    expect(arrivals(undefined, machines)).toEqual({ all: [], uncounted: [] })
  })

  test('are written to the annotations of the set, with the sorted names of the sets that send Machines', () => {
    expect(receiveAnnotations(new Set(['ms1', 'ms0']), { all: ['m1', 'm3'], uncounted: [] })).toEqual({
      [`${prefix}/receive-machines-from-machinesets`]: 'ms0,ms1',
      [`${prefix}/acknowledged-move`]: 'm1,m3',
    })
    expect(receiveAnnotations(new Set(), { all: [], uncounted: [] })).toEqual({})
  })
})

test('in-place updates respect maxSurge and maxUnavailable, create at most one Machine, and end, in any order of reconciles', () => {
  const limits = fc
    .record({ replicas: fc.integer({ min: 1, max: 8 }), surge: fc.nat({ max: 3 }), unavailable: fc.nat({ max: 3 }) })
    .filter(({ surge, unavailable }) => surge + unavailable > 0)
  fc.assert(
    fc.property(limits, fc.infiniteStream(fc.nat({ max: 9 })), ({ replicas, surge, unavailable }, chance) => {
      const world = aWorld(replicas, surge, unavailable, { keepsAnnotations: false })
      const least = replicas - Math.min(unavailable, replicas)
      for (let step = 0; step < 2000; step++) {
        const actor = chance.next().value! % (world.sets.length + 1)
        if (actor === 0) reconcileDeployment(world)
        else reconcileSet(world, world.sets[actor - 1]!)
        const allMachines = world.sets.flatMap((set) => set.machines)
        expect(allMachines.length).toBeLessThanOrEqual(replicas + surge)
        expect(allMachines.filter(({ isUpdating }) => !isUpdating).length).toBeGreaterThanOrEqual(least)
        expect(new Set(allMachines.map(({ name }) => name)).size).toBe(allMachines.length)
        if (isOver(world)) {
          // A surge Machine is created when no Machine may be unavailable, and a surplus Machine is deleted at the end.
          expect(world.created).toBeLessThanOrEqual(replicas + (surge > 0 ? 1 : 0))
          return
        }
      }
      throw new Error('the rollout does not end')
    }),
    { seed: 1, numRuns: 300 },
  )
})

test('a rollout ends with the desired Machines despite changes by users and extensions', () => {
  const limits = fc
    .record({ replicas: fc.integer({ min: 1, max: 6 }), surge: fc.nat({ max: 2 }), unavailable: fc.nat({ max: 2 }) })
    .filter(({ surge, unavailable }) => surge + unavailable > 0)
  fc.assert(
    fc.property(limits, fc.infiniteStream(fc.nat({ max: 99 })), ({ replicas, surge, unavailable }, chance) => {
      const world = aWorld(replicas, surge, unavailable, { keepsAnnotations: false })
      const draw = () => chance.next().value!
      for (let step = 0; step < 3000; step++) {
        const actor = draw() % (world.sets.length + 1)
        if (actor === 0) reconcileDeployment(world)
        else reconcileSet(world, world.sets[actor - 1]!)
        const allNames = world.sets.flatMap((set) => set.machines.map(({ name }) => name))
        expect(new Set(allNames).size).toBe(allNames.length)
        if (step < 200) {
          const action = draw()
          if (action < 3) world.replicas = 1 + (draw() % 6)
          else if (action < 5) world.template = `v${1 + (draw() % 3)}`
          else if (action < 7) world.isMovable = !world.isMovable
        } else if (isOver(world)) return
      }
      throw new Error(`the rollout does not end: ${reconcileDeployment(world)}`)
    }),
    { seed: 1, numRuns: 100 },
  )
})
