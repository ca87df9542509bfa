/** Refusals that are about the resource, not about an object, in upstream's words. */
import { type NamedResource, resourceName, StatusError } from '@capstan/kube'

/** No such resource, or subresource, in a group version that is served. */
export const unknownResource = (): StatusError =>
  new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })

export const methodNotAllowed = (): StatusError =>
  new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })

/** Upstream's handler of custom resources knows all methods, and says which of them a resource has not. */
export const verbNotSupported = (verb: string, { group, plural }: NamedResource): StatusError =>
  new StatusError('MethodNotAllowed', `${verb} is not supported on resources of kind "${resourceName({ group, plural })}"`, {
    details: { ...(group === '' ? {} : { group }), kind: plural },
  })

/** What upstream's registry of types is called in its refusals. */
export const schemeName = 'pkg/runtime/scheme.go:111'
