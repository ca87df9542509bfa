/** Types and functions for cases that perform the same random changes on upstream's core and on Capstan's. */
import { keyOf, type Kind, type KubeObject, type Random } from '@capstan/kube'
import type { Twin } from '../twin.ts'

/** Number of changes in a case. */
const Changes = 7

/** A change, and its name in reports, which contains most of its random values. */
export type Change = readonly [name: string, apply: (twin: Twin) => Promise<void>]
/** Returns a change with random values. */
export type RandomChange = (choose: Choose) => Change

/** Returns one of the values at random. */
export type Choose = <T>(...values: readonly T[]) => T
/** Returns a `Choose` that uses the given random numbers. */
export const chooser =
  (random: Random): Choose =>
  (...values) =>
    values[Math.floor(random.next() * values.length)]!

const restart: Change = ['both managers restart', (twin) => twin.whileStopped(() => Promise.resolve())]

/**
 * Performs random changes. After each change, waits until both cores are idle, and compares their objects. If the case stops the managers,
 * one of the changes, but not the first or the last, is a restart of both managers.
 */
export async function perform(twin: Twin, choose: Choose, changes: readonly RandomChange[]): Promise<void> {
  const restartedAt = twin.stopsManagers ? choose(2, 3, 4, 5, 6) : undefined
  for (let number = 1; number <= Changes; number++) {
    const [name, apply] = number === restartedAt ? restart : choose(...changes)(choose)
    await apply(twin)
    await twin.settle(`${number}: ${name}`)
  }
}

/** Returns an object with the earliest creation time; `undefined` if there is no object. */
export const first = <T extends KubeObject>(objects: readonly T[]): T | undefined =>
  objects.toSorted((a, b) => (a.metadata.creationTimestamp! < b.metadata.creationTimestamp! ? -1 : 1))[0]

/**
 * Patches all objects of a kind, or those that `isPatched` accepts. Most random changes of Machines apply to all Machines instead of
 * one: which of several equal Machines a controller deletes depends on their random names, so a change of one Machine could have
 * different results.
 */
export const patchAll = (
  twin: Twin,
  kind: Kind,
  body: object,
  isPatched: (object: KubeObject) => boolean = () => true,
): Promise<void> =>
  twin.runOnBoth(`patch every ${kind.kind}`, async (client) => {
    const { items } = await client.list(kind, { namespace: twin.namespace })
    for (const object of items.filter(isPatched))
      await client.patch(kind, keyOf(object), { type: 'merge', body }, { fieldManager: 'twin' })
  })

/** Returns a merge patch that sets or removes an annotation. */
export const annotation = (key: string, value: string | null) => ({ metadata: { annotations: { [key]: value } } })
/** Formats a random value for the name of a change. */
export const text = (value: unknown): string => JSON.stringify(value)
