import { type Predicate, whenChanged } from '@capstan/controller'
import { conditionsOf, type KubeObject, legacyConditionsOf } from '@capstan/kube'

/**
 * Accepts new and deleted objects, and changes of metadata (except managedFields and resourceVersion) and spec, of conditions that are not in
 * `owned`, and of v1beta1 conditions that are not in `ownedLegacy`. Ignores other changes of the status: most of them are the controller's
 * own, and would only cause no-op reconciles, which count against the rate limit of the key.
 */
export const changedByOthers = <T extends KubeObject>(owned: readonly string[], ownedLegacy: readonly string[]): Predicate<T> =>
  whenChanged((object) => fieldsOfOtherWriters(object, owned, ownedLegacy))

function fieldsOfOtherWriters(
  object: KubeObject & { readonly status?: unknown },
  owned: readonly string[],
  ownedLegacy: readonly string[],
) {
  const { uid, generation, labels, annotations, finalizers, ownerReferences, deletionTimestamp } = object.metadata
  return {
    metadata: { uid, generation, labels, annotations, finalizers, ownerReferences, deletionTimestamp },
    conditions: conditionsOf(object).filter(({ type }) => !owned.includes(type)),
    legacyConditions: legacyConditionsOf(object).filter(({ type }) => !ownedLegacy.includes(type)),
  }
}
