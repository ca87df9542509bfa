import { appendAll, equal, type FieldError, required, type UnknownObject } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { dnsLabel, portNumber, qualifiedName, requiredOneOf, subdomain } from '../checks.ts'
import { ageColumn, column, nameColumn } from '../columns.ts'
import type { EndpointAddress, Endpoints, EndpointSubset } from '../schemas/types.ts'
import { endpointIP } from '../service/validate.ts'

export const endpoints: BuiltinKind<Endpoints> = {
  createsOnUpdate: true,
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  columns: [nameColumn, column('Endpoints', addresses), ageColumn],
  default({ subsets = [] }) {
    for (const { ports = [] } of subsets) for (const port of ports) port.protocol ??= 'TCP'
  },
  validate({ subsets = [] }, old) {
    if (old && equal(subsets, old.subsets ?? [])) return []
    return subsets.flatMap((subset, index) => subsetErrors(`subsets[${index}]`, subset))
  },
}

function subsetErrors(path: string, { addresses: ready = [], notReadyAddresses = [], ports = [] }: EndpointSubset): FieldError[] {
  const errors: FieldError[] = []
  if (ready.length + notReadyAddresses.length === 0) {
    errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'))
  }
  for (const [index, address] of ready.entries()) appendAll(errors, addressErrors(`${path}.addresses[${index}]`, address))
  for (const [index, address] of notReadyAddresses.entries()) {
    appendAll(errors, addressErrors(`${path}.notReadyAddresses[${index}]`, address))
  }
  for (const [index, { name, port, protocol, appProtocol }] of ports.entries()) {
    const portPath = `${path}.ports[${index}]`
    if (name) appendAll(errors, dnsLabel(`${portPath}.name`, name))
    else if (ports.length > 1) errors.push(required(`${portPath}.name`))
    appendAll(
      errors,
      portNumber(`${portPath}.port`, port),
      requiredOneOf(`${portPath}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']),
    )
    if (appProtocol !== undefined) appendAll(errors, qualifiedName(`${portPath}.appProtocol`, appProtocol))
  }
  return errors
}

const addressErrors = (path: string, { ip, hostname, nodeName }: EndpointAddress): FieldError[] => [
  ...(hostname ? dnsLabel(`${path}.hostname`, hostname) : []),
  ...(nodeName === undefined ? [] : subdomain(`${path}.nodeName`, nodeName)),
  ...endpointIP(`${path}.ip`, ip),
]

/** Formats the first three endpoints, and the number of further endpoints. Upstream: formatEndpoints. */
function addresses(object: UnknownObject): string {
  const { subsets = [] } = object as unknown as Endpoints
  if (subsets.length === 0) return '<none>'
  const formatted = subsets.flatMap(({ addresses: ready = [], ports = [] }) =>
    ports.length === 0 ? ready.map(({ ip }) => ip) : ports.flatMap(({ port }) => ready.map(({ ip }) => hostPort(ip, port))),
  )
  const listed = formatted.slice(0, 3).join(',')
  return formatted.length > 3 ? `${listed} + ${formatted.length - 3} more...` : listed
}

const hostPort = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)
