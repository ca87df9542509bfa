import type { KubeObject } from '@capstan/kube'
import { waitForRevision } from './list.ts'
import { type RequestContext, keyFor, type ServerContext, stored } from './context.ts'
import { parseRevision } from './steps/revision.ts'

/** Returns the stored object, shared and frozen. A resourceVersion in the request is the minimum revision. */
export async function get(server: ServerContext, { info, request, options, ended }: RequestContext): Promise<KubeObject> {
  await waitForRevision(server, parseRevision(options.resourceVersion), ended)
  return server.converter.convert(info, stored(server, info, keyFor(info, request.namespace, request.name!)))
}
