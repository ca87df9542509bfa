import type { Cluster } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { endpointOf } from '../controlplane/endpoint.ts'
import { BootstrapFormat, formatBootstrapData, parseBootstrapData } from './data.ts'
import { missingFor } from './reconcile.ts'

const data = {
  role: 'worker' as const,
  clusterName: 'demo',
  controlPlaneEndpoint: '127.0.0.1:6443',
  nodeLabels: { tier: 'blue' },
  nodeTaints: [{ key: 'gpu', effect: 'NoSchedule' as const }],
}

test('parses the data written for a machine', () => {
  expect(parseBootstrapData(formatBootstrapData(data), BootstrapFormat)).toMatchObject({
    nodeLabels: data.nodeLabels,
    nodeTaints: data.nodeTaints,
  })
})

test.each([
  ['data of another provider', '#cloud-config', 'cloud-config'],
  ['no data', undefined, undefined],
])('a machine boots from %s with defaults', (_, value, format) => {
  expect(parseBootstrapData(value, format)).toEqual({ nodeLabels: {}, nodeTaints: [] })
})

test('invalid data in the format capstan is an error that does not quote the data', () => {
  expect(() => parseBootstrapData('secret: {', BootstrapFormat)).toThrow(
    'Cannot read bootstrap data: its format is capstan, but it is not JSON',
  )
})

describe('bootstrap data waits', () => {
  const worker = { isControlPlane: false }
  const controlPlane = { isControlPlane: true }
  const cluster = (initialization: object, endpoint?: object) =>
    ({ spec: { controlPlaneEndpoint: endpoint }, status: { initialization } }) as unknown as Cluster
  const endpoint = { host: '127.0.0.1', port: 6443 }
  const provisioned = { infrastructureProvisioned: true }
  const initialized = { ...provisioned, controlPlaneInitialized: true }
  test.each([
    [
      'for the infrastructure',
      worker,
      cluster({}),
      'Waiting for Cluster status.initialization.infrastructureProvisioned to be true',
    ],
    ['for the endpoint', worker, cluster(provisioned), 'Waiting for Cluster spec.controlPlaneEndpoint to be set'],
    [
      'on workers, for the control plane',
      worker,
      cluster(provisioned, endpoint),
      'Waiting for Cluster control plane to be initialized',
    ],
    ['on control plane machines, not for the control plane', controlPlane, cluster(provisioned, endpoint), undefined],
    ['not after the control plane is initialized', worker, cluster(initialized, endpoint), undefined],
  ])('%s', (_, of, owner, expected) => {
    expect(missingFor({ ...of, endpoint: endpointOf(undefined, owner) }, owner)).toBe(expected)
  })
})
