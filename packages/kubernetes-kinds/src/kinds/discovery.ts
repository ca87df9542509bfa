/** The kinds of `discovery.k8s.io/v1`. Upstream: pkg/apis/discovery and pkg/registry/discovery, v1.36. */
import { isIPv4, isIPv6 } from 'node:net'
import {
  dnsLabelProblems,
  type FieldError,
  invalid,
  labelValueProblems,
  qualifiedNameProblems,
  required,
  subdomainProblems,
} from '@capstan/kube'
import { addressErrors, endpointAddressErrors } from './addresses.ts'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { labels, oneOf, problems, requiredOneOf } from './checks.ts'
import { noMoreThan } from './counts.ts'
import { nullIfNone } from './go-nulls.ts'
import { immutable, same, unique } from './same.ts'
import { ageColumn, column, list, nameColumn, text } from './columns.ts'
import type { DiscoveryV1EndpointPort, Endpoint, EndpointHints, EndpointSlice } from './schemas/types.ts'

const MaxEndpoints = 1000
const MaxPorts = 20_000
const MaxAddresses = 100
const MaxTopologyLabels = 16
const MaxHints = 8

const endpointslices: BuiltinKind<EndpointSlice> = {
  generation: (slice, old) => !same(slice.metadata.labels, old.metadata.labels),
  columns: [
    nameColumn,
    column('AddressType', (o) => text(o, 'addressType')),
    column('Ports', (o) =>
      firstThree(list<DiscoveryV1EndpointPort>(o, 'ports').map(({ port, name }) => String(port ?? name ?? '*'))),
    ),
    column('Endpoints', (o) => firstThree(list<Endpoint>(o, 'endpoints').flatMap(({ addresses }) => addresses ?? []))),
    ageColumn,
  ],
  default(slice) {
    nullIfNone(slice, 'endpoints')
    nullIfNone(slice, 'ports')
    for (const port of slice.ports ?? []) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
  prepare(slice, old) {
    // deprecatedTopology is kept only if an endpoint of the stored EndpointSlice has it.
    const hadTopology = old?.endpoints?.some(({ deprecatedTopology }) => deprecatedTopology !== undefined) === true
    if (!hadTopology) for (const endpoint of slice.endpoints ?? []) delete endpoint.deprecatedTopology
  },
  warnings: ({ addressType }) => (addressType === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : []),
  validate({ addressType, ...slice }, old) {
    const endpoints = slice.endpoints ?? []
    const ports = slice.ports ?? []
    return [
      ...requiredOneOf('addressType', addressType, ['FQDN', 'IPv4', 'IPv6']),
      ...portErrors(ports),
      // Unchanged endpoints that an older server accepted stay valid.
      ...(old && same(endpoints, old.endpoints ?? []) ? [] : endpointErrors(endpoints, addressType)),
      ...(old ? immutable('addressType', addressType, old.addressType) : []),
    ]
  },
}

function firstThree(texts: readonly string[]): string {
  if (texts.length === 0) return '<unset>'
  const hiddenCount = texts.length - 3
  return `${texts.slice(0, 3).join(',')}${hiddenCount > 0 ? ` + ${hiddenCount} more...` : ''}`
}

function endpointErrors(endpoints: readonly Endpoint[], type: string): FieldError[] {
  const tooMany = noMoreThan('endpoints', endpoints, MaxEndpoints)
  if (tooMany.length > 0) return tooMany
  return endpoints.flatMap(({ addresses, nodeName, deprecatedTopology, hostname, hints }, index) => {
    const path = `endpoints[${index}]`
    return [
      ...(addresses?.length ? [] : [required(`${path}.addresses`, 'must contain at least 1 address')]),
      ...noMoreThan(`${path}.addresses`, addresses, MaxAddresses),
      ...(addresses ?? []).flatMap((address, addressIndex) =>
        addressOfTypeErrors(type, `${path}.addresses`, addressIndex, address),
      ),
      ...(nodeName === undefined ? [] : problems(`${path}.nodeName`, nodeName, subdomainProblems(nodeName))),
      ...noMoreThan(`${path}.deprecatedTopology`, Object.keys(deprecatedTopology ?? {}), MaxTopologyLabels),
      ...labels(`${path}.deprecatedTopology`, deprecatedTopology),
      ...(hostname === undefined ? [] : problems(`${path}.hostname`, hostname, dnsLabelProblems(hostname))),
      ...hintErrors(`${path}.hints`, hints),
    ]
  })
}

function addressOfTypeErrors(type: string, path: string, addressIndex: number, address: string): FieldError[] {
  const addressPath = `${path}[${addressIndex}]`
  if (type === 'FQDN') return domainErrors(addressPath, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const malformed = addressErrors(addressPath, address)
  if (malformed.length > 0) return malformed
  const fits = type === 'IPv4' ? isIPv4(address) : isIPv6(address)
  return [...(fits ? [] : [invalid(path, address, `must be an ${type} address`)]), ...endpointAddressErrors(addressPath, address)]
}

/** Upstream: IsFullyQualifiedDomainName. */
function domainErrors(path: string, name: string): FieldError[] {
  if (name === '') return [required(path)]
  const domain = name.replace(/\.$/, '')
  const texts = subdomainProblems(domain)
  if (texts.length > 0) return problems(path, domain, texts)
  return domain.includes('.') ? [] : [invalid(path, domain, 'should be a domain with at least two segments separated by dots')]
}

function hintErrors(path: string, { forZones = [], forNodes = [] }: EndpointHints = {}): FieldError[] {
  const tooMany = [...noMoreThan(`${path}.forZones`, forZones, MaxHints), ...noMoreThan(`${path}.forNodes`, forNodes, MaxHints)]
  if (tooMany.length > 0) return tooMany
  const zonePath = (index: number) => `${path}.forZones[${index}].name`
  const nodePath = (index: number) => `${path}.forNodes[${index}].name`
  return [
    ...unique(
      forZones.map(({ name }) => name),
      zonePath,
    ),
    ...forZones.flatMap(({ name }, index) => problems(zonePath(index), name, labelValueProblems(name))),
    ...unique(
      forNodes.map(({ name }) => name),
      nodePath,
    ),
    ...forNodes.flatMap(({ name }, index) => problems(nodePath(index), name, subdomainProblems(name))),
  ]
}

function portErrors(ports: readonly DiscoveryV1EndpointPort[]): FieldError[] {
  const tooMany = noMoreThan('ports', ports, MaxPorts)
  if (tooMany.length > 0) return tooMany
  return [
    ...ports.flatMap(({ name = '', protocol, appProtocol }, index) => {
      const path = `ports[${index}]`
      return [
        ...(name === '' ? [] : problems(`${path}.name`, name, dnsLabelProblems(name))),
        ...oneOf(`${path}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']),
        ...(appProtocol === undefined ? [] : problems(`${path}.appProtocol`, appProtocol, qualifiedNameProblems(appProtocol))),
      ]
    }),
    ...unique(
      ports.map(({ name }) => name),
      (index) => `ports[${index}].name`,
    ),
  ]
}

export const discovery: KindTable = { endpointslices }
