/** The kinds of `scheduling.k8s.io/v1`. Upstream: pkg/apis/scheduling and pkg/registry/scheduling, v1.36. */
import { type FieldError, forbidden } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { oneOf } from './checks.ts'
import { immutable } from './same.ts'
import { ageColumn, at, column, nameColumn, number, text } from './columns.ts'
import type { PriorityClass } from './schemas/types.ts'

/** System priority classes, which can be used even when their objects do not exist. */
export const systemPriorityClasses = [
  {
    name: 'system-node-critical',
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
  {
    name: 'system-cluster-critical',
    value: 2_000_000_000,
    description: 'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
] as const

const HighestUserDefinable = 1_000_000_000

const priorityclasses: BuiltinKind<PriorityClass> = {
  columns: [
    nameColumn,
    column('Value', (o) => number(o, 'value'), { type: 'integer' }),
    column('Global-Default', (o) => at(o, 'globalDefault') === true, { type: 'boolean' }),
    ageColumn,
    column('PreemptionPolicy', (o) => text(o, 'preemptionPolicy')),
  ],
  default(priorityClass) {
    priorityClass.preemptionPolicy ??= 'PreemptLowerPriority'
  },
  prepare({ metadata }, old) {
    // The generation never changes.
    if (!old) metadata.generation = 1
  },
  validate(priorityClass, old) {
    const { value, preemptionPolicy } = priorityClass
    if (old) {
      return [
        ...(value === old.value ? [] : [forbidden('value', 'may not be changed in an update.')]),
        ...immutable('preemptionPolicy', preemptionPolicy, old.preemptionPolicy),
      ]
    }
    return [
      ...nameAndValueErrors(priorityClass),
      ...oneOf('preemptionPolicy', preemptionPolicy, ['PreemptLowerPriority', 'Never']),
    ]
  },
}

function nameAndValueErrors({ metadata: { name }, value, globalDefault = false }: PriorityClass): FieldError[] {
  if (!name.startsWith('system-')) {
    const text = `maximum allowed value of a user defined priority is ${HighestUserDefinable}`
    return value > HighestUserDefinable ? [forbidden('value', text)] : []
  }
  const systemClass = systemPriorityClasses.find((candidate) => candidate.name === name)
  const reject = (problem: string) => [
    forbidden('metadata.name', `priority class names with 'system-' prefix are reserved for system use only. error: ${problem}`),
  ]
  if (!systemClass) return reject(`${name} is not a known system priority class`)
  if (value !== systemClass.value) return reject(`value of ${name} PriorityClass must be ${systemClass.value}`)
  return globalDefault ? reject(`globalDefault of ${name} PriorityClass must be false`) : []
}

export const scheduling: KindTable = { priorityclasses }
