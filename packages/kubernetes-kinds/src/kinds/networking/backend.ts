/** Validates the backends of Ingresses, and references to objects of any kind. */
import {
  appendAll,
  dnsLabelProblems,
  type FieldError,
  invalid,
  pathSegmentProblems,
  required,
  subdomainProblems,
} from '@capstan/kube'
import { portNameProblems, portNumber, problems } from '../checks.ts'
import type { IngressBackend, IngressServiceBackend } from '../schemas/types.ts'

export function backendErrors(path: string, { resource, service }: IngressBackend): FieldError[] {
  if (resource && service) return [invalid(path, '', 'cannot set both resource and service backends')]
  if (resource) return referenceErrors(`${path}.resource`, resource)
  return service ? serviceErrors(path, service) : [invalid(path, '', 'resource or service backend is required')]
}

function serviceErrors(path: string, { name, port }: IngressServiceBackend): FieldError[] {
  const errors = name === '' ? [required(`${path}.service.name`)] : problems(`${path}.service.name`, name, dnsLabelProblems(name))
  if (port.name && port.number) errors.push(invalid(path, '', 'cannot set both port name & port number'))
  else if (port.name) appendAll(errors, problems(`${path}.service.port.name`, port.name, portNameProblems(port.name)))
  else if (port.number) appendAll(errors, portNumber(`${path}.service.port.number`, port.number))
  else errors.push(required(path, 'port name or number is required'))
  return errors
}

/** Validates a reference, by name, to an object of any kind. */
export function referenceErrors(
  path: string,
  { apiGroup, kind, name }: { apiGroup?: string | null; kind: string; name: string },
): FieldError[] {
  return [
    // For a backend, Go encodes an absent apiGroup as `null`.
    ...(apiGroup === undefined || apiGroup === null ? [] : problems(`${path}.apiGroup`, apiGroup, subdomainProblems(apiGroup))),
    ...(kind === '' ? [required(`${path}.kind`)] : problems(`${path}.kind`, kind, pathSegmentProblems(kind))),
    ...(name === '' ? [required(`${path}.name`)] : problems(`${path}.name`, name, pathSegmentProblems(name))),
  ]
}
