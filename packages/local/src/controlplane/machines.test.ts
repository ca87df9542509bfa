import type { Cluster } from '@capstan/api'
import { expect, test } from 'vitest'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { desiredMachine, machineName } from './machines.ts'
import type { ControlPlaneScope } from './scope.ts'

const metadata = { name: 'cp', namespace: 'default', uid: 'cp-uid', resourceVersion: '1', creationTimestamp: '' }
const ref = { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name: 'cp' }
const controlPlane = (name: string, template?: string, machineTemplate: object = {}) =>
  ({
    metadata: { ...metadata, name },
    spec: {
      version: 'v1.36.0',
      machineTemplate: { spec: { infrastructureRef: ref }, ...machineTemplate },
      ...(template === undefined ? {} : { machineNaming: { template } }),
    },
  }) as LocalControlPlane

test.each([
  ['the name of the control plane with a random part', 'cp', undefined, 'cp-x2x4x'],
  ['rendered from a template', 'cp', '{{ .cluster.name }}-{{.localControlPlane.name}}-{{ .random }}', 'demo-cp-x2x4x'],
  ['rendered from a template, with an unknown variable unchanged', 'cp', '{{ .zone }}-{{ .random }}', '{{ .zone }}-x2x4x'],
  [
    'rendered from a template, with the unknown variable constructor (a property of every object) unchanged',
    'cp',
    '{{ .constructor }}-{{ .random }}',
    '{{ .constructor }}-x2x4x',
  ],
  [
    'truncated to the maximum length of a label value, with the random part at the end',
    'c'.repeat(80),
    undefined,
    `${'c'.repeat(57)}-x2x4x`,
  ],
])('the name of a Machine is %s', (_, name, template, expected) => {
  expect(machineName(controlPlane(name, template), 'demo', 'x2x4x')).toBe(expected)
})

test('a Machine has its control plane as owner, its failure domain, and the fields of the machine template', () => {
  const template = {
    metadata: { labels: { team: 'a' } },
    spec: { infrastructureRef: ref, deletion: { nodeDrainTimeoutSeconds: 5 } },
  }
  const scope = {
    controlPlane: controlPlane('cp', undefined, template),
    cluster: { metadata: { ...metadata, name: 'demo' } } as Cluster,
  } as ControlPlaneScope
  expect(desiredMachine(scope, 'cp-1', 'a', { group: 'infrastructure.capstan.dev', kind: 'LocalMachine' })).toEqual({
    metadata: {
      name: 'cp-1',
      namespace: 'default',
      labels: {
        team: 'a',
        'cluster.x-k8s.io/cluster-name': 'demo',
        'cluster.x-k8s.io/control-plane': '',
        'cluster.x-k8s.io/control-plane-name': 'cp',
      },
      annotations: { 'controlplane.capstan.dev/propagated-metadata': 'team;' },
      finalizers: ['machine.cluster.x-k8s.io'],
      ownerReferences: [
        {
          apiVersion: 'controlplane.capstan.dev/v1alpha1',
          kind: 'LocalControlPlane',
          name: 'cp',
          uid: 'cp-uid',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      clusterName: 'demo',
      version: 'v1.36.0',
      failureDomain: 'a',
      deletion: { nodeDeletionTimeoutSeconds: 10, nodeDrainTimeoutSeconds: 5 },
      infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachine', name: 'cp-1' },
      bootstrap: { configRef: { apiGroup: 'bootstrap.capstan.dev', kind: 'LocalBootstrapConfig', name: 'cp-1' } },
    },
  })
})
