import { draft, type KubeObject, type UnknownObject } from '@capstan/kube'
import { decode, draftOf } from './decode.ts'
import { modify } from './modify.ts'
import { type Call, isThere, type Plane } from './plane.ts'

/** PUT namespaces/x/finalize: only `spec.finalizers` counts; with the last one gone, so is a namespace that is being deleted. */
export function finalize(plane: Plane, call: Call): Promise<KubeObject> {
  const body = draftOf(call.definition, call.request.body)
  if (!isThere(plane, call)) decode(call, draft(body), 'body')
  return modify(plane, call, {
    replaces: true,
    apply(current) {
      const { metadata, spec } = decode(call, draft(body), 'body', current)
      const object: UnknownObject = { ...draft(current), spec }
      for (const field of ['resourceVersion', 'uid'] as const) {
        if (metadata[field] === undefined) delete (object.metadata as Partial<typeof metadata>)[field]
        else object.metadata[field] = metadata[field]
      }
      return object
    },
  })
}
