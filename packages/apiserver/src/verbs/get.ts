import { type KubeObject, StatusError } from '@capstan/kube'
import { inVersion } from '../registry/definition.ts'
import { reached } from './list.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'

/** The object as stored, shared and frozen. A resourceVersion in the request is the oldest state that will do. */
export async function get(plane: Plane, { definition, request, options, signal }: Call): Promise<KubeObject> {
  const { resourceVersion = '' } = options
  if (!/^\d*$/.test(resourceVersion)) {
    const value = JSON.stringify(resourceVersion)
    throw new StatusError('', `resourceVersion: Invalid value: ${value}: strconv.ParseUint: parsing ${value}: invalid syntax`)
  }
  await reached(plane, definition, Number(resourceVersion), signal)
  return inVersion(definition, stored(plane, definition, keyFor(definition, request.namespace, request.name!)))
}
