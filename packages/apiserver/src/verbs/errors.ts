/** Errors about a resource rather than an object, with upstream's texts. */
import { type NamedResource, resourceName, StatusError } from '@capstan/kube'

/** Error for a path at which the server has no resource or subresource. */
export const unknownResource = (): StatusError =>
  new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })

export const methodNotAllowed = (): StatusError =>
  new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })

/**
 * Error for a verb that the subresource `status` or `scale` of a custom resource does not support. Upstream: the handler of custom resources
 * names the verb and the resource.
 */
export const verbNotSupported = (verb: string, { group, plural }: NamedResource): StatusError =>
  new StatusError('MethodNotAllowed', `${verb} is not supported on resources of kind "${resourceName({ group, plural })}"`, {
    details: { ...(group === '' ? {} : { group }), kind: plural },
  })

/** Name of the runtime.Scheme in error texts of upstream. */
export const schemeName = 'pkg/runtime/scheme.go:111'
