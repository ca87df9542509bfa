import { draft, type KubeObject, type UnknownObject } from '@capstan/kube'
import { decode, draftOf, modify, type RequestContext, exists, type ServerContext } from '@capstan/apiserver/kinds'

/** PUT namespaces/x/finalize: changes only `spec.finalizers`. Without finalizers, a namespace that is being deleted is removed. */
export function finalize(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const body = draftOf(context.info, context.request.body)
  // Errors of the body take precedence over the error for a missing namespace.
  if (!exists(server, context)) decode(context, draft(body), 'body')
  return modify(server, context, {
    replaces: true,
    apply(current) {
      const { metadata, spec } = decode(context, draft(body), 'body', current)
      const object: UnknownObject = { ...draft(current), spec }
      for (const field of ['resourceVersion', 'uid'] as const) {
        if (metadata[field] === undefined) delete (object.metadata as Partial<typeof metadata>)[field]
        else object.metadata[field] = metadata[field]
      }
      return object
    },
  })
}
