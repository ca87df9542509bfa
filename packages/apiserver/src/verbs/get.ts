import type { KubeObject } from '@capstan/kube'
import { waitForRevision } from './list.ts'
import { type RequestContext, keyFor, type ServerContext, stored } from './context.ts'
import { parseRevision } from './steps/revision.ts'

/**
 * Returns the stored object in the version of the request, frozen and possibly shared. If the request has a resourceVersion, first waits up to
 * three seconds until the store has reached this revision.
 */
export async function get(server: ServerContext, { info, request, options, ended }: RequestContext): Promise<KubeObject> {
  await waitForRevision(server, parseRevision(options.resourceVersion), ended)
  return server.converter.convert(info, stored(server, info, keyFor(info, request.namespace, request.name!)))
}
