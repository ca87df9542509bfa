import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ControlPlane, type PlannedMachine, planStep, type Step } from './plan.ts'

const aMachine = (name: string, fields: Partial<PlannedMachine> = {}): PlannedMachine => ({
  name,
  created: `2026-01-01T00:00:0${name.slice(1)}Z`,
  deleting: false,
  hasNode: true,
  healthy: true,
  outdated: [],
  deleteFirst: false,
  updatable: false,
  update: 'none',
  ...fields,
})
const aControlPlane = (fields: Partial<ControlPlane> = {}): ControlPlane => ({
  replicas: 3,
  maxSurge: 1,
  machines: [],
  failureDomains: [],
  certificatesAvailable: true,
  ...fields,
})
const three = [aMachine('m1'), aMachine('m2'), aMachine('m3')]
const old = { outdated: ['Version v1.35.0, v1.36.0 required'] }
const updatable = { ...old, updatable: true }

const stepText = (controlPlane: ControlPlane): string => {
  const step = planStep(controlPlane)
  switch (step.kind) {
    case 'create':
      return `create${step.failureDomain ? ` in ${step.failureDomain}` : ''}: ${step.reason}`
    case 'delete':
      return `delete ${step.machine}: ${step.reason}`
    case 'update':
      return `update ${step.machine}: ${step.reason}`
    case 'resume':
      return `resume ${step.machine}`
    case 'wait':
      return `wait ${step.messages.join(' ')}`
    case 'none':
      return 'none'
  }
}

describe('the next step', () => {
  test.each([
    ['of a new control plane has no preconditions', { certificatesAvailable: false }, 'create: first control plane machine'],
    ['of a complete control plane is none', { machines: three }, 'none'],
    [
      'of a scale-up waits for a Machine to become healthy',
      { machines: [aMachine('m1', { healthy: false })] },
      'wait * waiting for control plane components to become healthy',
    ],
    [
      'of a scale-up after a remediation creates the replacement while the etcd members have a quorum',
      { replicas: 5, isRemediating: true, machines: [...three, aMachine('m4', { healthy: false })] },
      'create: 4 Machines < 5 replicas',
    ],
    [
      'of a scale-up after a remediation waits while the replacement could cost the quorum of etcd',
      { isRemediating: true, machines: [aMachine('m1'), aMachine('m2', { healthy: false })] },
      'wait * waiting for etcd cluster to become healthy',
    ],
    [
      'of a scale-up after a remediation waits for a healthy Machine and the quorum of etcd',
      { isRemediating: true, machines: [aMachine('m1', { healthy: false }), aMachine('m2', { healthy: false })] },
      'wait * waiting for control plane components to become healthy * waiting for etcd cluster to become healthy',
    ],
    [
      'of a scale-up waits for a Machine to be deleted',
      { machines: [aMachine('m1', { deleting: true, healthy: false })] },
      'wait * waiting for a control plane Machine to complete deletion',
    ],
    [
      'of a scale-up waits for certificates',
      { machines: [aMachine('m1')], certificatesAvailable: false },
      'wait * cluster certificates are missing or unknown',
    ],
    [
      'of a scale-up waits for a pending version',
      { machines: [aMachine('m1')], pendingVersion: 'v1.37.0' },
      'wait * waiting for a version upgrade to v1.37.0 to be propagated',
    ],
    ['of a scale-up creates a Machine', { machines: [aMachine('m1')] }, 'create: 1 Machines < 3 replicas'],
    ['of a scale-down deletes the oldest Machine', { machines: three, replicas: 1 }, 'delete m1: 3 Machines > 1 replicas'],
    [
      'of a scale-down deletes a Machine that a user marked',
      { machines: [three[0]!, three[1]!, aMachine('m3', { deleteFirst: true })], replicas: 1 },
      'delete m3: 3 Machines > 1 replicas',
    ],
    [
      'of a scale-down does not need certificates',
      { machines: three, replicas: 1, certificatesAvailable: false },
      'delete m1: 3 Machines > 1 replicas',
    ],
    [
      'of a scale-down waits for the remaining Machines to become healthy',
      { machines: [three[0]!, three[1]!, aMachine('m3', { healthy: false })], replicas: 1 },
      'wait * waiting for control plane components to become healthy',
    ],
    [
      'of a scale-down does not wait until the Machine that it deletes is healthy',
      { machines: [aMachine('m1', { healthy: false }), three[1]!, three[2]!], replicas: 1 },
      'delete m1: 3 Machines > 1 replicas',
    ],
    [
      'of a rollout creates a Machine first',
      { machines: [aMachine('m1', old), three[1]!, three[2]!] },
      'create: Machine m1 not up-to-date',
    ],
    [
      'of a rollout with maxSurge 0 deletes a Machine first',
      { machines: [aMachine('m1', old), three[1]!, three[2]!], maxSurge: 0 },
      'delete m1: Machine m1 not up-to-date',
    ],
    [
      'of a rollout deletes an unhealthy outdated Machine before an older healthy one',
      { machines: [aMachine('m1', old), aMachine('m2', { ...old, healthy: false }), three[2]!, aMachine('m4')] },
      'delete m2: Machines m1, m2 not up-to-date',
    ],
    [
      'of a rollout updates the Machine that it would otherwise delete',
      { machines: [aMachine('m1', updatable), three[1]!, three[2]!], maxSurge: 0 },
      'update m1: Machine m1 not up-to-date',
    ],
    [
      'of a rollout creates an additional Machine first although it could update one',
      { machines: [aMachine('m1', updatable), three[1]!, three[2]!] },
      'create: Machine m1 not up-to-date',
    ],
    [
      'of a rollout deletes an outdated Machine when there are enough up-to-date Machines',
      { machines: [aMachine('m1', updatable), aMachine('m2'), aMachine('m3'), aMachine('m4')] },
      'delete m1: Machine m1 not up-to-date',
    ],
    [
      'of a rollout deletes the only unhealthy Machine instead of updating it',
      { machines: [aMachine('m1', { ...updatable, healthy: false }), three[1]!, three[2]!], maxSurge: 0 },
      'delete m1: Machine m1 not up-to-date',
    ],
    [
      'of a rollout waits for other Machines to become healthy before it updates a Machine',
      { machines: [aMachine('m1', updatable), aMachine('m2', { healthy: false }), three[2]!], maxSurge: 0 },
      'wait * waiting for control plane components to become healthy',
    ],
    [
      'waits while a Machine is being updated',
      { machines: [aMachine('m1', { update: 'running' }), aMachine('m2', old)], replicas: 5 },
      'wait * waiting for in-place update of Machine m1 to complete',
    ],
    [
      'continues an interrupted update first',
      {
        machines: [aMachine('m1', { ...old, update: 'interrupted' }), aMachine('m2', { healthy: false })],
        certificatesAvailable: false,
      },
      'resume m1',
    ],
    [
      'waits for the deletion of a Machine that has an interrupted update',
      { machines: [aMachine('m1', { ...old, update: 'interrupted', deleting: true }), three[1]!, three[2]!] },
      'wait * waiting for in-place update of Machine m1 to complete',
    ],
  ] as const)('%s', (_, controlPlane, expected) => {
    expect(stepText(aControlPlane(controlPlane))).toBe(expected)
  })

  test.each([
    [
      'uses the failure domain with the fewest Machines',
      [aMachine('m1', { failureDomain: 'a' })],
      'create in b: 1 Machines < 3 replicas',
    ],
    ['uses the first of equal failure domains', [], 'create in a: first control plane machine'],
    [
      'uses the failure domain with the fewest Machines that need no replacement',
      [
        aMachine('m1', { failureDomain: 'a', ...old }),
        aMachine('m2', { failureDomain: 'b' }),
        aMachine('m3', { failureDomain: 'c' }),
      ],
      'create in a: Machine m1 not up-to-date',
    ],
  ] as const)('a new Machine %s', (_, machines, expected) => {
    expect(stepText(aControlPlane({ machines, failureDomains: ['a', 'b', 'c'] }))).toBe(expected)
  })

  test('a Machine outside of all failure domains is deleted before the others', () => {
    const machines = [
      aMachine('m1', { failureDomain: 'a' }),
      aMachine('m2', { failureDomain: 'gone' }),
      aMachine('m3', { failureDomain: 'b' }),
    ]
    expect(stepText(aControlPlane({ machines, replicas: 1, failureDomains: ['a', 'b'] }))).toBe(
      'delete m2: 3 Machines > 1 replicas',
    )
  })

  test('a Machine of the failure domain with the most Machines is deleted first', () => {
    const machines = [
      aMachine('m1', { failureDomain: 'a' }),
      aMachine('m2', { failureDomain: 'b' }),
      aMachine('m3', { failureDomain: 'b' }),
    ]
    expect(stepText(aControlPlane({ machines, replicas: 1, failureDomains: ['a', 'b'] }))).toBe(
      'delete m2: 3 Machines > 1 replicas',
    )
  })
})

function machinesAfter(
  machines: readonly PlannedMachine[],
  step: Exclude<Step, { kind: 'none' | 'wait' }>,
  name: () => string,
): readonly PlannedMachine[] {
  if (step.kind === 'create') return [...machines, aMachine(name(), { failureDomain: step.failureDomain })]
  if (step.kind === 'delete') return machines.filter((machine) => machine.name !== step.machine)
  return machines.map((machine) => (machine.name === step.machine ? { ...machine, outdated: [], updatable: false } : machine))
}

/**
 * Performs planned steps until there are none; new Machines are healthy at once. Returns one line for each step, with the number of
 * Machines before the step, and the resulting control plane.
 */
function performSteps(controlPlane: ControlPlane): { steps: string[]; controlPlane: ControlPlane } {
  const steps: string[] = []
  let serial = controlPlane.machines.length
  while (steps.length < 100) {
    const step = planStep(controlPlane)
    if (step.kind === 'none') return { steps, controlPlane }
    if (step.kind === 'wait') throw new Error(step.messages.join())
    steps.push(`${controlPlane.machines.length} ${stepText(controlPlane)}`)
    controlPlane = { ...controlPlane, machines: machinesAfter(controlPlane.machines, step, () => `m${++serial}`) }
  }
  throw new Error(`the plan does not end after ${steps.length} steps`)
}

test('a control plane scales to 1, 3, 5 and again 1 replicas over three failure domains', () => {
  const lines: string[] = []
  let controlPlane = aControlPlane({ failureDomains: ['a', 'b', 'c'] })
  for (const replicas of [1, 3, 5, 1]) {
    const result = performSteps({ ...controlPlane, replicas })
    lines.push(`to ${replicas}`, ...result.steps.map((step) => `  ${step}`))
    controlPlane = result.controlPlane
  }
  expect(`\n${lines.join('\n')}`).toMatchInlineSnapshot(`
    "
    to 1
      0 create in a: first control plane machine
    to 3
      1 create in b: 1 Machines < 3 replicas
      2 create in c: 2 Machines < 3 replicas
    to 5
      3 create in a: 3 Machines < 5 replicas
      4 create in b: 4 Machines < 5 replicas
    to 1
      5 delete m1: 5 Machines > 1 replicas
      4 delete m2: 4 Machines > 1 replicas
      3 delete m4: 3 Machines > 1 replicas
      2 delete m5: 2 Machines > 1 replicas"
  `)
})

test('a new version replaces one Machine at a time, creating before deleting', () => {
  const machines = three.map((machine, i) => ({ ...machine, ...old, failureDomain: ['a', 'b', 'c'][i] }))
  expect(
    `\n${performSteps(aControlPlane({ machines, failureDomains: ['a', 'b', 'c'] })).steps.join('\n')}`,
  ).toMatchInlineSnapshot(`
    "
    3 create in a: Machines m1, m2, m3 not up-to-date
    4 delete m1: Machines m1, m2, m3 not up-to-date
    3 create in b: Machines m2, m3 not up-to-date
    4 delete m2: Machines m2, m3 not up-to-date
    3 create in c: Machine m3 not up-to-date
    4 delete m3: Machine m3 not up-to-date"
  `)
})

test('an in-place upgrade with maxSurge 1 replaces one Machine and updates the others; with maxSurge 0 it updates all Machines', () => {
  const machines = three.map((machine) => ({ ...machine, ...updatable }))
  expect(`\n${performSteps(aControlPlane({ machines })).steps.join('\n')}`).toMatchInlineSnapshot(`
    "
    3 create: Machines m1, m2, m3 not up-to-date
    4 update m1: Machines m1, m2, m3 not up-to-date
    4 update m2: Machines m2, m3 not up-to-date
    4 delete m3: Machine m3 not up-to-date"
  `)
  const [first] = machines
  expect(`\n${performSteps(aControlPlane({ machines, maxSurge: 0 })).steps.join('\n')}`).toMatchInlineSnapshot(`
    "
    3 update m1: Machines m1, m2, m3 not up-to-date
    3 update m2: Machines m2, m3 not up-to-date
    3 update m3: Machine m3 not up-to-date"
  `)
  expect(performSteps(aControlPlane({ machines: [first!], replicas: 1 })).steps).toEqual([
    '1 create: Machine m1 not up-to-date',
    '2 delete m1: Machine m1 not up-to-date',
  ])
})

test('a control plane that scales or rolls out has at least min(initial, replicas - 1) and at most max(initial, replicas + maxSurge) Machines, and in the end `replicas` up-to-date Machines', () => {
  const parameters = fc.record({
    replicas: fc.constantFrom(1, 3, 5),
    surge: fc.constantFrom(0, 1),
    initial: fc.constantFrom(1, 3, 5),
    outdated: fc.array(fc.constantFrom({}, old, updatable), { minLength: 5, maxLength: 5 }),
    domains: fc.constantFrom<string[]>([], ['a'], ['a', 'b', 'c']),
  })
  fc.assert(
    fc.property(parameters, ({ replicas, surge, initial, outdated, domains }) => {
      const maxSurge = replicas < 3 ? 1 : surge
      const machines = Array.from({ length: initial }, (_, i) =>
        aMachine(`m${i + 1}`, { ...outdated[i], failureDomain: domains[i % (domains.length || 1)] }),
      )
      const { steps, controlPlane: end } = performSteps(aControlPlane({ replicas, maxSurge, machines, failureDomains: domains }))
      for (const step of steps) {
        expect(Number.parseInt(step, 10)).toBeLessThanOrEqual(Math.max(initial, replicas + maxSurge))
        expect(Number.parseInt(step, 10)).toBeGreaterThanOrEqual(Math.min(initial, replicas - 1))
      }
      expect(end.machines).toHaveLength(replicas)
      expect(end.machines.every((machine) => machine.outdated.length === 0)).toBe(true)
    }),
    { seed: 1 },
  )
})
