import { isReason, type KubeObject, type ObjectList } from '@capstan/kube'
import { removeNamed, requestedDeletion } from './delete.ts'
import { list } from './list.ts'
import type { RequestContext, ServerContext } from './context.ts'

/**
 * Lists the objects with the options of the request, and deletes them one after the other. Returns the objects as they were listed, except
 * objects that another request has removed meanwhile.
 */
export async function removeCollection(server: ServerContext, context: RequestContext): Promise<ObjectList> {
  const deletion = requestedDeletion(context)
  const listed = await list(server, context)
  const items: KubeObject[] = []
  for (const object of listed.items) {
    try {
      await removeNamed(server, context, object.metadata.namespace, object.metadata.name, deletion)
      items.push(object)
    } catch (err) {
      if (!isReason(err, 'NotFound')) throw err
    }
  }
  return { ...listed, items }
}
