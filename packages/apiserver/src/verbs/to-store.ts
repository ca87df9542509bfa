import { draft, type UnknownObject } from '@capstan/kube'
import { isComplete } from '../registry/definition.ts'
import { refuseTooLarge } from './object-size.ts'
import type { Call, Plane } from './plane.ts'

/**
 * The draft of an object in the version of the request, as it is to be stored.
 *
 * @throws StatusError when it is larger than anything stored may be
 */
export async function toStore(plane: Plane, call: Call, object: UnknownObject): Promise<UnknownObject> {
  const stored = await inStorageVersion(plane, call, object)
  refuseTooLarge(stored)
  return stored
}

async function inStorageVersion({ converter }: Plane, { definition }: Call, object: UnknownObject): Promise<UnknownObject> {
  const { stored, conversion, builtin, apiVersion } = definition
  if (!stored) {
    isComplete(definition, object)
    return object
  }
  if (conversion) return draft(await converter.show(stored, object))
  if (builtin) {
    stored.from![apiVersion]!(object)
    object.apiVersion = stored.apiVersion
    return object
  }
  object.apiVersion = stored.apiVersion
  stored.structural.prune(object)
  return object
}
