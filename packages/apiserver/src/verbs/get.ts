import type { KubeObject } from '@capstan/kube'
import { reached } from './list.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'
import { parseRevision } from './revision.ts'

/** The object as stored, shared and frozen. A resourceVersion in the request is the oldest state that will do. */
export async function get(plane: Plane, { definition, request, options, signal }: Call): Promise<KubeObject> {
  await reached(plane, definition, parseRevision(options.resourceVersion), signal)
  return plane.converter.show(definition, stored(plane, definition, keyFor(definition, request.namespace, request.name!)))
}
