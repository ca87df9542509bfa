import type { KubeObject } from '@capstan/kube'
import { inVersion } from '../registry/definition.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'

/** The object as stored, shared and frozen. */
export function get(plane: Plane, { definition, request }: Call): KubeObject {
  return inVersion(definition, stored(plane, definition, keyFor(definition, request.namespace, request.name!)))
}
