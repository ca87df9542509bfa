import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { planOnDelete } from './on-delete.ts'
import { planProportionalScale } from './proportional-scale.ts'
import type { ScaledSet } from './proportional-scale.ts'
import { planRollingUpdate } from './plan-rolling-update.ts'
import type { Rollout, Scale, SetCounts } from './rollout-plan.ts'
import { machinesOf, planText, sum } from './rollout-plan.ts'

const aSet = (name: string, desired: number, overrides: Partial<SetCounts> = {}): SetCounts => ({
  name,
  desired,
  existing: desired,
  available: desired,
  upToDate: 0,
  ...overrides,
})

type Planner = (rollout: Rollout) => readonly Scale[]

const withDesired = (set: SetCounts, scales: readonly Scale[]): SetCounts => ({
  ...set,
  desired: scales.find((scale) => scale.set === set.name)?.to ?? set.desired,
})

const applyPlan = (rollout: Rollout, scales: readonly Scale[]): Rollout => ({
  ...rollout,
  current: withDesired(rollout.current, scales),
  old: rollout.old.map((set) => withDesired(set, scales)),
})

/** Simulates the MachineSet controller without failures: Machines become available, or are deleted, at once. */
const settle = (set: SetCounts): SetCounts => {
  const deletedCount = Math.max(set.existing - set.desired, 0)
  return {
    ...set,
    existing: set.desired,
    available: Math.max(set.available - deletedCount, 0) + Math.max(set.desired - set.existing, 0),
  }
}

const setText = ({ name, desired, existing, available }: SetCounts): string =>
  `${name} ${existing}/${desired}, ${available} available`

function simulate(start: Rollout, plan: Planner): string {
  const lines: string[] = []
  let rollout = start
  for (let step = 1; step < 30; step++) {
    lines.push(`${step}. ${[rollout.current, ...rollout.old].map(setText).join('; ')}`)
    const scales = plan(rollout)
    if (scales.length === 0) return lines.join('\n')
    lines.push(...planText(scales).map((line) => `   ${line}`))
    rollout = applyPlan(rollout, scales)
    rollout = { ...rollout, current: settle(rollout.current), old: rollout.old.map(settle) }
  }
  throw new Error(`the rollout does not end:\n${lines.join('\n')}`)
}

describe('a rolling update', () => {
  test('replaces one Machine at a time with maxSurge 1', () => {
    const start = { replicas: 3, maxSurge: 1, maxUnavailable: 0, current: aSet('new', 0), old: [aSet('old', 3)] }
    expect(simulate(start, planRollingUpdate)).toMatchInlineSnapshot(`
      "1. new 0/0, 0 available; old 3/3, 3 available
         new 0 -> 1: 3 current Machines < 3 MachineDeployment spec.replicas + 1 maxSurge
      2. new 1/1, 1 available; old 3/3, 3 available
         old 3 -> 2: 4 available replicas > 3 minimum available replicas
      3. new 1/1, 1 available; old 2/2, 2 available
         new 1 -> 2: 3 current Machines < 3 MachineDeployment spec.replicas + 1 maxSurge
      4. new 2/2, 2 available; old 2/2, 2 available
         old 2 -> 1: 4 available replicas > 3 minimum available replicas
      5. new 2/2, 2 available; old 1/1, 1 available
         new 2 -> 3: 3 current Machines < 3 MachineDeployment spec.replicas + 1 maxSurge
      6. new 3/3, 3 available; old 1/1, 1 available
         old 1 -> 0: 4 available replicas > 3 minimum available replicas
      7. new 3/3, 3 available; old 0/0, 0 available"
    `)
  })

  test('deletes first with maxSurge 0', () => {
    const start = { replicas: 3, maxSurge: 0, maxUnavailable: 1, current: aSet('new', 0), old: [aSet('old', 3)] }
    expect(simulate(start, planRollingUpdate)).toMatchInlineSnapshot(`
      "1. new 0/0, 0 available; old 3/3, 3 available
         old 3 -> 2: 3 available replicas > 2 minimum available replicas
      2. new 0/0, 0 available; old 2/2, 2 available
         new 0 -> 1: 2 current Machines < 3 MachineDeployment spec.replicas
      3. new 1/1, 1 available; old 2/2, 2 available
         old 2 -> 1: 3 available replicas > 2 minimum available replicas
      4. new 1/1, 1 available; old 1/1, 1 available
         new 1 -> 2: 2 current Machines < 3 MachineDeployment spec.replicas
      5. new 2/2, 2 available; old 1/1, 1 available
         old 1 -> 0: 3 available replicas > 2 minimum available replicas
      6. new 2/2, 2 available; old 0/0, 0 available
         new 2 -> 3: 2 current Machines < 3 MachineDeployment spec.replicas
      7. new 3/3, 3 available; old 0/0, 0 available"
    `)
  })

  test('uses maxSurge and maxUnavailable together, and scales the oldest set down first', () => {
    const start = {
      replicas: 6,
      maxSurge: 1,
      maxUnavailable: 3,
      current: aSet('new', 0),
      old: [aSet('oldest', 2), aSet('old', 4)],
    }
    expect(simulate(start, planRollingUpdate)).toMatchInlineSnapshot(`
      "1. new 0/0, 0 available; oldest 2/2, 2 available; old 4/4, 4 available
         new 0 -> 1: 6 current Machines < 6 MachineDeployment spec.replicas + 1 maxSurge
         oldest 2 -> 0: 6 available replicas > 3 minimum available replicas
         old 4 -> 3: 4 available replicas > 3 minimum available replicas
      2. new 1/1, 1 available; oldest 0/0, 0 available; old 3/3, 3 available
         new 1 -> 4: 4 current Machines < 6 MachineDeployment spec.replicas + 1 maxSurge
         old 3 -> 2: 4 available replicas > 3 minimum available replicas
      3. new 4/4, 4 available; oldest 0/0, 0 available; old 2/2, 2 available
         new 4 -> 5: 6 current Machines < 6 MachineDeployment spec.replicas + 1 maxSurge
         old 2 -> 0: 6 available replicas > 3 minimum available replicas
      4. new 5/5, 5 available; oldest 0/0, 0 available; old 0/0, 0 available
         new 5 -> 6: 5 current Machines < 6 MachineDeployment spec.replicas + 1 maxSurge
      5. new 6/6, 6 available; oldest 0/0, 0 available; old 0/0, 0 available"
    `)
  })

  test('applies a change of replicas during the rollout', () => {
    const start = { replicas: 2, maxSurge: 1, maxUnavailable: 0, current: aSet('new', 3), old: [aSet('old', 3)] }
    expect(simulate(start, planRollingUpdate)).toMatchInlineSnapshot(`
      "1. new 3/3, 3 available; old 3/3, 3 available
         new 3 -> 2: scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas
         old 3 -> 0: 6 available replicas > 2 minimum available replicas
      2. new 2/2, 2 available; old 0/0, 0 available"
    `)
  })

  test.each([
    ['waits for new Machines to be available', { current: aSet('new', 1, { available: 0 }), old: [aSet('old', 3)] }, []],
    [
      'creates no Machine while Machines being deleted still exist',
      { current: aSet('new', 1), old: [aSet('old', 2, { existing: 3, available: 3 })] },
      [],
    ],
    [
      'removes one replica of an old set with an unavailable Machine when the rollout is stuck',
      { current: aSet('new', 1), old: [aSet('old', 3, { available: 2 })] },
      ['old 3 -> 2: unblocking rollout stuck due to unavailable Machine on an old MachineSet'],
    ],
    [
      'scales an old set without available Machines to 0',
      { current: aSet('new', 3), old: [aSet('old', 1, { available: 0 })] },
      [
        'old 1 -> 0: scale down to align to existing Machines or scale down by removing unavailable replicas (and no available replicas exist on the MachineSet)',
      ],
    ],
    [
      'removes replicas without a Machine',
      { current: aSet('new', 1), old: [aSet('old', 3, { existing: 2, available: 2 })] },
      [
        'old 3 -> 2: scale down to align to existing Machines or scale down by removing unavailable replicas (and no available replicas exist on the MachineSet)',
      ],
    ],
    ['scales no set when the rollout is complete', { current: aSet('new', 3), old: [aSet('old', 0)] }, []],
  ])('%s', (_, sets, plan) => {
    expect(planText(planRollingUpdate({ replicas: 3, maxSurge: 1, maxUnavailable: 0, ...sets }))).toEqual(plan)
  })
})

test('a rolling update respects maxSurge and maxUnavailable, and ends, even if MachineSets act late', () => {
  const limits = fc
    .record({
      replicas: fc.integer({ min: 0, max: 8 }),
      maxSurge: fc.integer({ min: 0, max: 3 }),
      maxUnavailable: fc.integer({ min: 0, max: 3 }),
    })
    .filter(({ maxSurge, maxUnavailable }) => maxSurge + maxUnavailable > 0)
  const oldSizes = fc.array(fc.nat({ max: 8 }), { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(limits, oldSizes, fc.infiniteStream(fc.nat({ max: 3 })), (spec, sizes, chance) => {
      let remaining = spec.replicas
      const old = sizes.map((size, index) => {
        const desired = index === sizes.length - 1 ? remaining : Math.min(size, remaining)
        remaining -= desired
        return aSet(`old${index}`, desired)
      })
      let rollout: Rollout = { ...spec, current: aSet('new', 0), old }
      const minAvailable = spec.replicas - Math.min(spec.maxUnavailable, spec.replicas)
      const choice = () => chance.next().value!

      for (let step = 0; step < 2000; step++) {
        rollout = applyPlan(rollout, planRollingUpdate(rollout))
        const allSets = () => [rollout.current, ...rollout.old]
        expect(sum(allSets(), machinesOf)).toBeLessThanOrEqual(spec.replicas + spec.maxSurge)
        // Some MachineSets act now, others later. A MachineSet may delete an available Machine before an unavailable one.
        const act = (set: SetCounts): SetCounts => {
          if (choice() === 0) return set
          const existing = set.existing + Math.sign(set.desired - set.existing)
          const lost = existing < set.existing && (choice() < 2 || set.available > existing) ? 1 : 0
          const available = Math.min(existing, Math.max(set.available - lost, 0) + (choice() === 3 ? 1 : 0))
          return { ...set, existing, available }
        }
        rollout = { ...rollout, current: act(rollout.current), old: rollout.old.map(act) }
        expect(sum(allSets(), (set) => set.available)).toBeGreaterThanOrEqual(minAvailable)
        if (rollout.current.available === spec.replicas && rollout.old.every((set) => set.existing === 0)) return
      }
      throw new Error('the rollout does not end')
    }),
    { seed: 1, numRuns: 1000 },
  )
})

describe('the strategy OnDelete', () => {
  test.each([
    ['scales no set before a user deletes a Machine', { current: aSet('new', 0), old: [aSet('old', 3)] }, []],
    [
      'scales the old set down after a user has deleted one of its Machines',
      { current: aSet('new', 0), old: [aSet('old', 3, { existing: 2, available: 2 })] },
      ['old 3 -> 2: scale down to align to existing Machines'],
    ],
    [
      'scales the current set up once the old set is scaled down',
      { current: aSet('new', 0), old: [aSet('old', 2)] },
      ['new 0 -> 1: 2 current Machines < 3 MachineDeployment spec.replicas'],
    ],
    [
      'scales the oldest set down first',
      { current: aSet('new', 1), old: [aSet('oldest', 1), aSet('old', 3)] },
      [
        'oldest 1 -> 0: scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas',
        'old 3 -> 2: scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas',
      ],
    ],
    [
      'counts a Machine that a user has deleted as one of the surplus replicas',
      { current: aSet('new', 1), old: [aSet('old', 4, { existing: 3 })] },
      [
        'old 4 -> 2: scale down to align to existing Machines; scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas',
      ],
    ],
  ])('%s', (_, sets, plan) => {
    expect(planText(planOnDelete({ replicas: 3, maxSurge: 0, maxUnavailable: 0, ...sets }))).toEqual(plan)
  })
})

describe('while the rollout is paused', () => {
  const scaled = (name: string, desired: number, overrides: Partial<ScaledSet> = {}): ScaledSet => ({
    ...aSet(name, desired),
    recordedDesired: 10,
    recordedMax: 11,
    ...overrides,
  })
  const paused = { replicas: 10, maxSurge: 1, isRollingUpdate: true, existing: 10 }
  test.each([
    [
      'the only active set gets all replicas',
      { ...paused, current: scaled('new', 0), old: [scaled('old', 8)] },
      ['old 8 -> 10: no other MachineSet is active'],
    ],
    [
      'without an active set, the current one gets all replicas',
      { ...paused, current: scaled('new', 0), old: [scaled('old', 0)] },
      ['new 0 -> 10: no other MachineSet is active'],
    ],
    [
      'without a current set and without active sets, the newest old set gets all replicas',
      { ...paused, current: undefined, old: [scaled('older', 0), scaled('old', 0)] },
      ['old 0 -> 10: no other MachineSet is active'],
    ],
    [
      'old sets are scaled to 0 when the current one has all replicas',
      { ...paused, current: scaled('new', 10), old: [scaled('old', 1)] },
      ['old 1 -> 0: the current MachineSet has all replicas'],
    ],
    [
      'an increase of replicas is distributed by size',
      { ...paused, replicas: 20, current: scaled('new', 4), old: [scaled('old', 7)] },
      [
        'old 7 -> 13: its share of 21 replicas while the rollout is paused',
        'new 4 -> 8: its share of 21 replicas while the rollout is paused',
      ],
    ],
    [
      'a reduction of replicas is distributed by size',
      { ...paused, replicas: 5, current: scaled('new', 4), old: [scaled('old', 7)] },
      [
        'old 7 -> 4: its share of 6 replicas while the rollout is paused',
        'new 4 -> 2: its share of 6 replicas while the rollout is paused',
      ],
    ],
    [
      'zero replicas scale all sets to 0',
      { ...paused, replicas: 0, current: scaled('new', 4), old: [scaled('old', 7)] },
      [
        'old 7 -> 0: its share of 0 replicas while the rollout is paused',
        'new 4 -> 0: its share of 0 replicas while the rollout is paused',
      ],
    ],
    ['no set is scaled when the replicas are unchanged', { ...paused, current: scaled('new', 4), old: [scaled('old', 7)] }, []],
    [
      'no set is scaled with OnDelete when several sets are active',
      { ...paused, replicas: 20, isRollingUpdate: false, current: scaled('new', 4), old: [scaled('old', 7)] },
      [],
    ],
  ])('%s', (_, rollout, plan) => {
    expect(planText(planProportionalScale(rollout))).toEqual(plan)
  })
})
