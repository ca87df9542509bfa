/**
 * Subresources that connect to a pod, a node or a Service. No node of this server has a kubelet, so the response is that
 * of a real server that cannot reach the target. Upstream: pkg/registry/core/pod/strategy.go and pkg/registry/core/pod/rest,
 * v1.36.
 */
import { badRequest, isRecord, notFound, type Status, StatusError } from '@capstan/kube'
import { containersOf } from '../kinds/pod/defaults.ts'
import type { Endpoints, Node, Pod } from '../kinds/schemas/types.ts'
import { type RequestContext, keyFor, type ServerContext, stored } from '@capstan/apiserver/kinds'

const connections = new Set(['log', 'exec', 'attach', 'portforward', 'proxy'])

/** Reports whether a subresource opens a connection. A path of the target may follow, as in `proxy/PATH`. */
export const isConnection = (subresource: string | undefined): boolean =>
  subresource !== undefined && connections.has(subresource.split('/')[0]!)

/**
 * Returns a success without content (204) for the log of a pod that is not assigned to a node.
 * @throws StatusError in all other cases: the request is invalid, or the target does not exist or cannot be reached
 */
export function connect(server: ServerContext, context: RequestContext): Status {
  const { info, request } = context
  const { namespace, name = '' } = request
  const connection = request.subresource!.split('/')[0]!
  if (info.storage === 'services') throw unreachableService(server, context)
  const object = stored(server, info, keyFor(info, namespace, name))
  if (info.storage === 'nodes') throw unreachableNode(object as unknown as Node, '')
  const pod = object as unknown as Pod
  if (connection === 'proxy') throw unreachablePod(pod)

  const container = connection === 'portforward' ? '' : containerOf(pod, request.body)
  const { nodeName } = pod.spec
  if (!nodeName) {
    if (connection === 'log') return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 204 }
    throw badRequest(`pod ${name} does not have a host assigned`)
  }
  const node = server.store.get({ resource: 'nodes', namespace: '', name: nodeName })
  if (!node) throw notFound(info, nodeName) // Upstream's error also names pods instead of nodes.
  const kubeletPath = { log: 'containerLogs', portforward: 'portForward' }[connection] ?? connection
  throw unreachableNode(node as unknown as Node, `${kubeletPath}/${namespace}/${name}${container === '' ? '' : `/${container}`}`)
}

/** Returns the name of the requested container. @throws StatusError BadRequest when it is ambiguous or does not exist */
function containerOf({ metadata, spec }: Pod, body: unknown): string {
  const requestedContainer = isRecord(body) && typeof body.container === 'string' ? body.container : ''
  const containers = containersOf(spec).map(({ name }) => name)
  if (requestedContainer !== '') {
    if (containers.includes(requestedContainer)) return requestedContainer
    throw badRequest(`container ${requestedContainer} is not valid for pod ${metadata.name}`)
  }
  const regularNames = (spec.containers ?? []).map(({ name }) => name)
  if (regularNames.length === 1) return regularNames[0]!
  const defaultContainer = metadata.annotations?.['kubectl.kubernetes.io/default-container']
  if (defaultContainer !== undefined && containers.includes(defaultContainer)) return defaultContainer
  const initNames = (spec.initContainers ?? []).map(({ name }) => name)
  const initContainersText = initNames.length > 0 ? ` or one of the init containers: [${initNames.join(' ')}]` : ''
  throw badRequest(
    `a container name must be specified for pod ${metadata.name}, choose one of: [${regularNames.join(' ')}]${initContainersText}`,
  )
}

const KubeletPort = 10250

function unreachableNode({ status }: Node, path: string): StatusError {
  const address = (status.addresses ?? [])[0]?.address
  if (address === undefined) return new StatusError('', 'no preferred addresses found; known addresses: []')
  const host = `${address}:${status.daemonEndpoints?.kubeletEndpoint?.Port || KubeletPort}`
  return new StatusError('', `Get "https://${host}/${path}": dial tcp ${host}: connect: connection refused`)
}

function unreachablePod({ status, spec }: Pod): StatusError {
  const ip = status.podIPs?.[0]?.ip
  if (ip === undefined) return badRequest('address not allowed')
  const port = spec.containers?.[0]?.ports?.[0]?.containerPort ?? 80
  const text = `error trying to reach service: dial tcp ${ip}:${port}: connect: connection refused`
  return new StatusError('ServiceUnavailable', text)
}

function unreachableService(
  { store }: ServerContext,
  { info, request: { namespace = '', name = '' } }: RequestContext,
): StatusError {
  const endpoints = store.get({ resource: 'endpoints', namespace, name }) as unknown as Endpoints | undefined
  if (!endpoints) return notFound(info, name)
  const readySubset = (endpoints.subsets ?? []).find(({ addresses = [] }) => addresses.length > 0)
  if (!readySubset) return new StatusError('ServiceUnavailable', `no endpoints available for service "${name}"`)
  const host = `${readySubset.addresses![0]!.ip}:${readySubset.ports?.[0]?.port ?? 80}`
  const text = `error trying to reach service: dial tcp ${host}: connect: connection refused`
  return new StatusError('ServiceUnavailable', text)
}
