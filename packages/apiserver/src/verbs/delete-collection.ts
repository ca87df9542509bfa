import { isReason, type KubeObject, type ObjectList } from '@capstan/kube'
import { removeNamed, requestedDeletion } from './delete.ts'
import { list } from './list.ts'
import type { Call, Plane } from './plane.ts'

/** Deletes what a list with these options would show, one object after the other; answers what it deleted. */
export async function removeCollection(plane: Plane, call: Call): Promise<ObjectList> {
  const deletion = requestedDeletion(call)
  const found = await list(plane, call)
  const items: KubeObject[] = []
  for (const object of found.items) {
    try {
      await removeNamed(plane, call, object.metadata.namespace, object.metadata.name, deletion)
      items.push(object)
    } catch (err) {
      if (!isReason(err, 'NotFound')) throw err
    }
  }
  return { ...found, items }
}
