/** ComponentStatuses of the control plane. Upstream: pkg/registry/core/componentstatus, v1.36. */
import { freeze, type KubeObject, notFound, type ObjectList } from '@capstan/kube'
import { type RequestContext, selectionOf } from '@capstan/apiserver/kinds'

/** This process runs neither a scheduler nor a controller manager, and stores the objects itself. */
const components: { readonly [name: string]: readonly [status: 'True' | 'False', message: string] } = {
  scheduler: ['False', connectionRefused(10259)],
  'controller-manager': ['False', connectionRefused(10257)],
  'etcd-0': ['True', 'ok'],
}

/** Returns the named ComponentStatus or, without a name in the request, the list. @throws StatusError NotFound */
export function componentStatuses({ info, options, request }: RequestContext): KubeObject | ObjectList {
  if (request.name === undefined) {
    const selects = selectionOf(info, options)
    const items = Object.keys(components)
      .map(statusOf)
      .filter((item) => selects === undefined || selects(item))
    return freeze({ kind: 'ComponentStatusList', apiVersion: 'v1', metadata: {}, items }) as unknown as ObjectList
  }
  if (!Object.hasOwn(components, request.name)) throw notFound({ group: '', plural: 'componentstatus' }, request.name)
  return freeze(statusOf(request.name))
}

function statusOf(name: string): KubeObject {
  const [status, message] = components[name]!
  return {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name } as KubeObject['metadata'],
    conditions: [{ type: 'Healthy', status, message }],
  } as KubeObject
}

function connectionRefused(port: number): string {
  return `Get "https://127.0.0.1:${port}/healthz": dial tcp 127.0.0.1:${port}: connect: connection refused`
}
