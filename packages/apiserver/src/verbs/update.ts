import { draft, type KubeObject } from '@capstan/kube'
import { decode, draftOf } from './decode.ts'
import { modify } from './modify.ts'
import type { Call, Plane } from './plane.ts'

/** PUT: the object becomes what the client sent. */
export function update(plane: Plane, call: Call): Promise<KubeObject> {
  const body = draftOf(call.definition, call.request.body)
  return modify(plane, call, {
    replaces: true,
    apply: (current) => decode(call, draft(body), 'body', current),
  })
}
