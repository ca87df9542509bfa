/**
 * The Service `kubernetes` in `default`, through which pods and tools reach the API server, with its endpoints.
 * Upstream: pkg/controlplane/controller/kubernetesservice and pkg/controlplane/reconcilers, v1.36.
 */
import { type Client, equal, isReason, type KubeObject, type ObjectKey, unknownKind } from '@capstan/kube'
import { type AddressRange, firstAddress } from './kinds/service/addresses.ts'
import { endpointIP } from './kinds/service/validate.ts'
import { memberAt } from '@capstan/apiserver/kinds'

/** Address at which clients inside of the cluster reach the server. */
export interface AdvertisedEndpoint {
  readonly address: string
  readonly port: number
}

const services = unknownKind({ apiVersion: 'v1', kind: 'Service', plural: 'services' })
const endpoints = unknownKind({ apiVersion: 'v1', kind: 'Endpoints', plural: 'endpoints' })
const slices = unknownKind({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', plural: 'endpointslices' })

const key: ObjectKey = { namespace: 'default', name: 'kubernetes' }

/**
 * Creates the Service and its endpoints. If they exist, corrects the ports of the Service, and the addresses and ports of the endpoints.
 * Writes only the Service if `address` is not an IP address, or is one that pods cannot reach, such as 127.0.0.1.
 */
export async function publishService(client: Client, range: AddressRange, { address, port }: AdvertisedEndpoint): Promise<void> {
  const httpsPort = { name: 'https', protocol: 'TCP' }
  const clusterIP = firstAddress(range)
  await ensure(
    client,
    services,
    { component: 'apiserver', provider: 'kubernetes' },
    {
      spec: {
        clusterIP,
        ipFamilyPolicy: 'SingleStack',
        type: 'ClusterIP',
        ports: [{ ...httpsPort, port: 443, targetPort: port }],
      },
    },
    ['spec', 'ports'],
  )
  if (endpointIP('', address).length > 0) return
  await ensure(
    client,
    endpoints,
    { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    {
      subsets: [{ addresses: [{ ip: address }], ports: [{ ...httpsPort, port }] }],
    },
    ['subsets'],
  )
  await ensure(
    client,
    slices,
    { 'kubernetes.io/service-name': 'kubernetes' },
    {
      addressType: address.includes(':') ? 'IPv6' : 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ ...httpsPort, port }],
    },
    ['endpoints'],
    ['ports'],
  )
}

/** Creates an object; if it exists, corrects the members at `paths`. */
async function ensure(
  client: Client,
  kind: typeof services,
  labels: { [key: string]: string },
  content: Record<string, unknown>,
  ...paths: string[][]
): Promise<void> {
  const expected = { metadata: { ...key, labels }, ...content } as unknown as KubeObject
  try {
    await client.create(kind, expected as never)
    return
  } catch (err) {
    if (!isReason(err, 'AlreadyExists')) throw err
  }
  const stored = await client.get(kind, key)
  const body: Record<string, unknown> = {}
  for (const [member, ...innerNames] of paths) {
    const expectedValue = memberAt(content, [member!, ...innerNames])
    if (equal(memberAt(stored, [member!, ...innerNames]), expectedValue)) continue
    body[member!] = innerNames.reduceRight<unknown>((value, name) => ({ [name]: value }), expectedValue)
  }
  if (Object.keys(body).length > 0) await client.patch(kind, key, { type: 'merge', body })
}
