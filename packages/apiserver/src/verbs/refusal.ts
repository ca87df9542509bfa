/** Refusals that are about the resource, not about an object. */
import { StatusError } from '@capstan/kube'
import type { Definition } from '../registry/definition.ts'

export const noSuchResource = (): StatusError =>
  new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })

export const methodNotAllowed = (): StatusError =>
  new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })

export const verbNotSupported = ({ group, plural, storage }: Definition, verb: string): StatusError =>
  new StatusError('MethodNotAllowed', `${verb} is not supported on resources of kind "${storage}"`, {
    details: { ...(group === '' ? {} : { group }), kind: plural },
  })
