import { type Predicate, whenChanged } from '@capstan/controller'
import { conditionsOf, type KubeObject } from '@capstan/kube'

/**
 * Lets through what somebody else changed of an object: its metadata, its spec, conditions that are not `owned`. What a
 * controller writes into status itself is no news to it, and a pass that finds nothing to do counts against the key's rate.
 */
export const othersChange = <T extends KubeObject>(owned: readonly string[]): Predicate<T> =>
  whenChanged((object) => othersPart(object, owned))

function othersPart(object: KubeObject & { readonly status?: unknown }, owned: readonly string[]) {
  const { uid, generation, labels, annotations, finalizers, ownerReferences, deletionTimestamp } = object.metadata
  return {
    metadata: { uid, generation, labels, annotations, finalizers, ownerReferences, deletionTimestamp },
    conditions: conditionsOf(object).filter(({ type }) => !owned.includes(type)),
  }
}
