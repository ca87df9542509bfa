import type { Cluster } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { endpointOf } from '../controlplane/endpoint.ts'
import { formatBootstrapData, parseBootstrapData } from './data.ts'
import { missingFor } from './reconcile.ts'

const data = {
  role: 'worker' as const,
  clusterName: 'demo',
  controlPlaneEndpoint: '127.0.0.1:6443',
  nodeLabels: { tier: 'blue' },
  nodeTaints: [{ key: 'gpu', effect: 'NoSchedule' as const }],
}

const formats = ['cloud-config', 'ignition'] as const

test.each(formats)('parseBootstrapData returns labels, taints and expiry from the format %s', (format) => {
  const { nodeLabels, nodeTaints } = data
  const expires = '2026-01-01T00:15:00.000Z'
  expect(parseBootstrapData(formatBootstrapData({ ...data, expires }, format), format)).toEqual({
    nodeLabels,
    nodeTaints,
    expires,
  })
})

test('data in the format cloud-config are YAML with the header that cloud-init requires, and create the sentinel file', () => {
  const text = formatBootstrapData(data, 'cloud-config')
  expect(text).toMatch(/^#cloud-config\n/)
  const { write_files: files, runcmd } = parse(text) as { write_files: { path: string; content: string }[]; runcmd: string[] }
  expect(files.map(({ path, content }) => [path, JSON.parse(content)])).toEqual([['/etc/capstan/bootstrap.json', data]])
  expect(runcmd.join()).toContain('/run/cluster-api/bootstrap-success.complete')
})

// Upstream: bootstrap/kubeadm/pkg/ignition/clc/clc_test.go, v1.14.
test('data in the format ignition have version 2.3, and create the sentinel file', () => {
  const { ignition, storage, systemd } = JSON.parse(formatBootstrapData(data, 'ignition'))
  expect(ignition).toEqual({ version: '2.3.0' })
  const [file, ...otherFiles] = storage.files
  expect(otherFiles).toEqual([])
  expect(file).toMatchObject({ filesystem: 'root', path: '/etc/capstan/bootstrap.json', mode: 0o600 })
  expect(JSON.parse(decodeURIComponent(file.contents.source.replace(/^data:,/, '')))).toEqual(data)
  expect(systemd.units[0].contents).toContain('/run/cluster-api/bootstrap-success.complete')
})

test.each([
  ['cloud-config of another provider', '## template: jinja\n#cloud-config\n{% if x %}', 'cloud-config'],
  ['cloud-config without the file of this provider', '#cloud-config\n{"write_files": []}', 'cloud-config'],
  ['ignition of another provider', '{"ignition": {"version": "2.3.0"}}', 'ignition'],
  ['another format', '{}', 'talos'],
  ['no data', undefined, undefined],
])('parseBootstrapData returns undefined for %s', (_, value, format) => {
  expect(parseBootstrapData(value, format)).toBeUndefined()
})

test.each(formats)('an invalid file in the format %s leads to an error that does not contain the data', (format) => {
  const value = formatBootstrapData({ ...data, clusterName: 'mine' }, format).replace(
    'mine',
    format === 'ignition' ? '%22' : '\\"',
  )
  expect(() => parseBootstrapData(value, format)).toThrow(
    new Error('Cannot read bootstrap data: /etc/capstan/bootstrap.json is not JSON'),
  )
})

describe('bootstrap data', () => {
  const worker = { isControlPlane: false }
  const controlPlane = { isControlPlane: true }
  const cluster = (initialization: object, endpoint?: object) =>
    ({ spec: { controlPlaneEndpoint: endpoint }, status: { initialization } }) as unknown as Cluster
  const endpoint = { host: '127.0.0.1', port: 6443 }
  const provisioned = { infrastructureProvisioned: true }
  const initialized = { ...provisioned, controlPlaneInitialized: true }
  test.each([
    [
      'wait for the infrastructure',
      worker,
      cluster({}),
      'Waiting for Cluster status.initialization.infrastructureProvisioned to be true',
    ],
    ['wait for the endpoint', worker, cluster(provisioned), 'Waiting for Cluster spec.controlPlaneEndpoint to be set'],
    [
      'of workers wait for the control plane',
      worker,
      cluster(provisioned, endpoint),
      'Waiting for Cluster control plane to be initialized',
    ],
    ['of control plane machines do not wait for the control plane', controlPlane, cluster(provisioned, endpoint), undefined],
    ['of workers do not wait after the control plane is initialized', worker, cluster(initialized, endpoint), undefined],
  ])('%s', (_, role, owningCluster, expected) => {
    expect(missingFor({ ...role, endpoint: endpointOf(undefined, owningCluster) }, owningCluster)).toBe(expected)
  })
})
