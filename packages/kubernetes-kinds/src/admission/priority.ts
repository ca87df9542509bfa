/** Sets the priority of a pod from its PriorityClass, and allows only one default PriorityClass. Upstream: plugin/pkg/admission/priority. */
import type { PriorityClass, Pod } from '../kinds/schemas/types.ts'
import { systemPriorityClasses } from '../kinds/scheduling.ts'
import { type Store, forbidden, type Plugin, type PluginWrite } from '@capstan/apiserver/kinds'

const storage = 'priorityclasses.scheduling.k8s.io'
const preempting = 'PreemptLowerPriority'

export const priority: Plugin = {
  name: 'Priority',
  appliesTo: (info) => info.storage === 'pods' || info.storage === storage,
  mutate(write) {
    if (write.info.storage !== 'pods' || write.subresource !== undefined) return
    if (write.operation === 'CREATE') setPriority(write)
    else if (write.operation === 'UPDATE') keepPriority(write)
  },
  validate(write) {
    const { info, operation, store, object } = write
    if (info.storage !== storage || operation === 'DELETE' || object.globalDefault !== true) return
    const name = defaultClass(store)?.metadata.name
    if (name === undefined || (operation === 'UPDATE' && name === object.metadata.name)) return
    throw forbidden(write, `PriorityClass ${name} is already marked as default. Only one default can exist`)
  },
}

const specOf = (object: unknown): Pod['spec'] => (object as Pod).spec

function setPriority(write: PluginWrite): void {
  const spec = specOf(write.object)
  const { name, value, preemptionPolicy } = classOf(write, spec.priorityClassName ?? '')
  if (name !== '') spec.priorityClassName = name
  const computed = 'priority admission controller computed'
  if (spec.priority !== undefined && spec.priority !== value) {
    const text = `the integer value of priority (${spec.priority}) must not be provided in pod spec`
    throw forbidden(write, `${text}; ${computed} ${value} from the given PriorityClass name`)
  }
  spec.priority = value
  if (preemptionPolicy === undefined) return
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy) {
    const text = `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec`
    throw forbidden(write, `${text}; ${computed} ${preemptionPolicy} from the given PriorityClass name`)
  }
  spec.preemptionPolicy = preemptionPolicy
}

/** Keeps priority and preemptionPolicy of a pod when an update omits them: at creation this plugin has set them, not the client. */
function keepPriority({ object, old }: PluginWrite): void {
  const [spec, before] = [specOf(object), specOf(old)]
  if (spec.priority === undefined && before.priority !== undefined) spec.priority = before.priority
  if (spec.preemptionPolicy === undefined && before.preemptionPolicy !== undefined) {
    spec.preemptionPolicy = before.preemptionPolicy
  }
}

interface Priority {
  readonly name: string
  readonly value: number
  readonly preemptionPolicy: string | undefined
}

function classOf(write: PluginWrite, name: string): Priority {
  const { store } = write
  if (name === '') {
    const defaultPriorityClass = defaultClass(store)
    return defaultPriorityClass ? priorityOf(defaultPriorityClass) : { name, value: 0, preemptionPolicy: preempting }
  }
  const priorityClass = store.get({ resource: storage, namespace: '', name }) as unknown as PriorityClass | undefined
  if (priorityClass) return priorityOf(priorityClass)
  // System priority classes can be used even when their objects do not exist.
  const systemClass = systemPriorityClasses.find((candidate) => candidate.name === name)
  if (systemClass) return { name, value: systemClass.value, preemptionPolicy: preempting }
  throw forbidden(write, `no PriorityClass with name ${name} was found`)
}

const priorityOf = ({ metadata: { name }, value, preemptionPolicy }: PriorityClass): Priority => ({
  name,
  value,
  preemptionPolicy,
})

/** Returns the default class. If several classes became the default concurrently, the class with the lowest value is used. */
const defaultClass = (store: Store): PriorityClass | undefined =>
  (store.list(storage, undefined) as unknown as PriorityClass[])
    .filter(({ globalDefault }) => globalDefault === true)
    .toSorted((a, b) => a.value - b.value)[0]
