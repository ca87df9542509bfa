import { type Transport, withSend } from '@capstan/kube'

/**
 * Wraps the transport of controllers so that requests without an abort signal are rejected: such requests would continue after the
 * reconcile's timeout and after the manager has stopped. Accepts Events without a signal, because they are sent independently of the
 * reconcile that records them.
 */
export const abortable = (transport: Transport): Transport =>
  withSend(transport, (request, signal) => {
    if (signal || request.plural === 'events') return transport.send(request, signal)
    return Promise.reject(new TypeError(`${request.verb} ${request.plural}: the request has no abort signal`))
  })
