import { draft, type UnknownObject } from '@capstan/kube'
import { markDefaulted } from '../../registry/resource-info.ts'
import { refuseTooLarge } from './object-size.ts'
import type { RequestContext, ServerContext } from '../context.ts'

/**
 * Converts a draft from the version of the request to the storage version.
 * @throws StatusError when it exceeds the size limit
 */
export async function toStore(server: ServerContext, context: RequestContext, object: UnknownObject): Promise<UnknownObject> {
  const stored = await inStorageVersion(server, context, object)
  refuseTooLarge(stored)
  return stored
}

async function inStorageVersion(
  { converter }: ServerContext,
  { info }: RequestContext,
  object: UnknownObject,
): Promise<UnknownObject> {
  const { stored, conversion, builtin, apiVersion } = info
  if (!stored) {
    markDefaulted(info, object)
    return object
  }
  if (conversion) return draft(await converter.show(stored, object))
  if (builtin) {
    stored.convertFrom![apiVersion]!(object)
    object.apiVersion = stored.apiVersion
    return object
  }
  object.apiVersion = stored.apiVersion
  stored.structural.prune(object)
  return object
}
