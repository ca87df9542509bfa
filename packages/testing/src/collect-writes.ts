import { type ApiRequest, type Transport, withSend } from '@capstan/kube'

/**
 * Wraps the transport of controllers: appends each request that is not a get or a list to `writes`. Tests count these requests instead of
 * the server's revisions, because a real server also writes by itself, such as its Leases.
 */
export const collectWrites =
  (writes: ApiRequest[]) =>
  (transport: Transport): Transport =>
    withSend(transport, (request, signal) => {
      if (request.verb !== 'get' && request.verb !== 'list') writes.push(request)
      return transport.send(request, signal)
    })
