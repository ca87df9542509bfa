import { describe, expect, test } from 'vitest'
import { leastUsedDomain, planPool, type PoolMachine } from './plan.ts'

/**
 * Returns one machine for each letter: `r` ready, `n` not ready, `o` outdated and ready, `x` outdated and not ready, `d` being deleted,
 * `m` marked by the annotation `cluster.x-k8s.io/delete-machine` and ready, `k` like `m` and outdated.
 */
const machines = (letters: string): PoolMachine[] =>
  Array.from(letters, (letter, index) => ({
    name: `${letter}${index}`,
    isOutdated: 'oxk'.includes(letter),
    isReady: 'romk'.includes(letter),
    isDeleting: letter === 'd',
    isMarked: 'mk'.includes(letter),
    created: index,
  }))

describe('a pool', () => {
  test.each([
    ['of the wanted size creates and removes no machine', 'rr', 2, 0, []],
    ['that is too small creates all missing machines', 'r', 4, 3, []],
    ['does not count machines that are being deleted', 'rd', 2, 1, []],
    ['that is too large removes the oldest machines', 'rrr', 1, 0, ['r0', 'r1']],
    ['that is too large first removes machines that are not ready', 'rrn', 2, 0, ['n2']],
    ['that is too large removes marked machines before machines that are not ready', 'rnm', 2, 0, ['m2']],
    ['with a new template creates one more machine', 'oo', 2, 1, []],
    ['waits until the new machine is ready', 'oon', 2, 0, []],
    ['removes an outdated machine once the new one is ready', 'oor', 2, 0, ['o0']],
    ['first removes outdated machines that are not ready', 'xor', 2, 0, ['x0']],
    ['keeps its only ready machine, although it is marked, and removes one that is not ready', 'kx', 1, 0, ['x1']],
    ['with an outdated machine creates a new machine while another machine is being deleted', 'odr', 2, 1, []],
    ['that scales down during a replacement removes several outdated machines in one step', 'ooor', 2, 0, ['o0', 'o1']],
    ['of size 0 removes all machines', 'oo', 0, 0, ['o0', 'o1']],
  ] as const)('%s', (_, letters, replicas, create, remove) => {
    expect(planPool(machines(letters), replicas)).toEqual({ create, remove })
  })

  test('without failure domains places the next machine in none', () => {
    expect(leastUsedDomain([], [])).toBeUndefined()
  })

  test.each([
    [['a', 'b'], [], 'a'],
    [['a', 'b'], ['a', undefined], 'b'],
    [['a', 'b'], ['a', 'b', 'b'], 'a'],
  ])(
    'places the next machine in the failure domain with the fewest machines: of %j, with machines in %j',
    (domains, used, expected) => {
      expect(leastUsedDomain(domains, used)).toBe(expected)
    },
  )

  test('keeps the wanted number of ready machines during a replacement, and completes it', () => {
    let current = machines('ooo')
    let created = 0
    for (let step = 0; step < 20; step++) {
      const { create, remove } = planPool(current, 3)
      if (create === 0 && remove.length === 0 && current.every(({ isReady }) => isReady)) break
      current = current.filter(({ name }) => !remove.includes(name)).map((machine) => ({ ...machine, isReady: true }))
      expect(current.filter(({ isReady }) => isReady).length).toBeGreaterThanOrEqual(3)
      for (let index = 0; index < create; index++)
        current.push({ ...machines('n')[0]!, name: `new${created++}`, created: 100 + created })
    }
    expect(current.map(({ isOutdated }) => isOutdated)).toEqual([false, false, false])
  })
})
