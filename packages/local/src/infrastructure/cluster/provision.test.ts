import type { Cluster } from '@capstan/api'
import { expect, test } from 'vitest'
import type { LocalCluster } from '../../kinds/local-cluster.ts'
import { provision } from './reconcile.ts'

const metadata = { name: 'demo', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }
const aCluster = (controlPlaneEndpoint?: object) =>
  ({ apiVersion: '', kind: 'Cluster', metadata, spec: { controlPlaneEndpoint } }) as unknown as Cluster
const aLocalCluster = (spec: LocalCluster['spec'] = {}, status: LocalCluster['status'] = {}): LocalCluster => ({
  apiVersion: '',
  kind: 'LocalCluster',
  metadata: { ...metadata },
  spec: { ...spec },
  status: { ...status },
})
const listener = { host: '127.0.0.1', port: 6443 }
const now = Date.UTC(2026, 0, 1)

test.each([
  ['address of the listener by default', aLocalCluster(), aCluster(), listener],
  [
    'endpoint of the Cluster if only the Cluster has one',
    aLocalCluster(),
    aCluster({ host: 'lb', port: 1 }),
    { host: 'lb', port: 1 },
  ],
  [
    'endpoint of its own spec, also if the Cluster has one',
    aLocalCluster({ controlPlaneEndpoint: { host: 'mine', port: 2 } }),
    aCluster({ host: 'lb', port: 1 }),
    { host: 'mine', port: 2 },
  ],
  [
    'address of the listener if the endpoint of its own spec is incomplete and the Cluster has none',
    aLocalCluster({ controlPlaneEndpoint: { host: 'mine' } }),
    aCluster(),
    listener,
  ],
])('the endpoint of a LocalCluster is the %s', (_, object, cluster, expected) => {
  provision(object, cluster, now, listener)
  expect(object.spec?.controlPlaneEndpoint).toEqual(expected)
  expect(object.status?.initialization).toEqual({ provisioned: true })
})

test('the failure domains of the status follow the spec, also after provisioning; the default is a, b and c', () => {
  const object = aLocalCluster({ failureDomains: [{ name: 'z', controlPlane: false }] })
  provision(object, aCluster(), now, listener)
  expect(object.status?.failureDomains).toEqual([{ name: 'z', controlPlane: false }])
  delete object.spec!.failureDomains
  provision(object, aCluster(), now, listener)
  expect(object.status?.failureDomains?.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

test('provisioning takes as long as its delay; a failure that is added to the spec after provisioning has no effect', () => {
  const object = aLocalCluster({ simulated: { provisioningDelay: '2s' } })
  const first = provision(object, aCluster(), now, listener)
  expect(first.outcome).toMatchObject({ kind: 'requeue', after: 2000 })
  expect(first.conditions[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'Provisioning' })
  expect(object.status?.initialization).toBeUndefined()

  expect(provision(object, aCluster(), now + 2000, listener).conditions[0]).toMatchObject({ type: 'Ready', status: 'True' })
  object.spec!.simulated = { failure: { at: 'provisioning', message: 'too late' } }
  expect(provision(object, aCluster(), now + 9000, listener).conditions[0]).toMatchObject({ type: 'Ready', status: 'True' })
})
