import { isReason, type KubeObject, type ObjectList } from '@capstan/kube'
import { removeNamed, requestedDeletion } from './delete.ts'
import type { Call, Plane } from './plane.ts'
import { selectionOf } from './selection.ts'

/** Deletes what is selected, one object after the other; answers what it deleted. */
export async function removeCollection(plane: Plane, call: Call): Promise<ObjectList> {
  const { definition, options, request } = call
  const selection = selectionOf(definition, options)
  const deletion = requestedDeletion(call)
  const items: KubeObject[] = []
  const stored = plane.store.list(definition.storage, request.namespace)
  for (const object of await plane.converter.showAll(definition, stored)) {
    if (selection && !selection(object)) continue
    try {
      await removeNamed(plane, call, object.metadata.namespace, object.metadata.name, deletion)
      items.push(object)
    } catch (err) {
      if (!isReason(err, 'NotFound')) throw err
    }
  }
  return {
    apiVersion: definition.apiVersion,
    kind: definition.listKind,
    metadata: { ...(definition.builtin ? {} : { continue: '' }), resourceVersion: String(plane.store.revision) },
    items,
  }
}
