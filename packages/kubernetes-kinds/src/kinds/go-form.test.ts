import { expect, test } from 'vitest'
import { goForm } from './go-form.ts'

const formed = (component: string, object: object) => {
  const draft = structuredClone(object) as { [field: string]: unknown }
  goForm(component, draft)
  return draft
}

test.each<[string, string, object, object]>([
  [
    'omits zero values that Go omits',
    'io.k8s.api.core.v1.Pod',
    {
      spec: {
        nodeName: '',
        hostNetwork: false,
        containers: [{ name: '', command: [], stdin: false, env: [{ name: 'A', value: '' }] }],
      },
    },
    { spec: { containers: [{ name: '', env: [{ name: 'A' }] }] } },
  ],
  [
    'keeps zero values of pointers',
    'io.k8s.api.core.v1.Pod',
    { spec: { automountServiceAccountToken: false, priority: 0, containers: null } },
    { spec: { automountServiceAccountToken: false, priority: 0, containers: null } },
  ],
  [
    'converts quantities and times to their canonical form',
    'io.k8s.api.core.v1.Pod',
    {
      spec: { containers: [{ name: 'c', resources: { limits: { cpu: 0.5, memory: '1024Mi' } } }] },
      status: { startTime: '2026-01-02T03:04:05+01:00', conditions: [{ type: 'a', status: 'True' }] },
    },
    {
      spec: { containers: [{ name: 'c', resources: { limits: { cpu: '500m', memory: '1Gi' } } }] },
      status: {
        startTime: '2026-01-02T02:04:05Z',
        conditions: [{ type: 'a', status: 'True', lastProbeTime: null, lastTransitionTime: null }],
      },
    },
  ],
])('the Go form %s', (_, component, object, expected) => expect(formed(component, object)).toEqual(expected))

test('an object in its Go form is unchanged by another conversion', () => {
  const once = formed('io.k8s.api.core.v1.Node', { spec: { podCIDR: '' }, status: { capacity: { cpu: '1000m' } } })
  expect(formed('io.k8s.api.core.v1.Node', once)).toEqual(once)
  expect(once).toMatchObject({ spec: {}, status: { capacity: { cpu: '1' } } })
})

test('invalid quantities and times are rejected', () => {
  expect(() => formed('io.k8s.api.core.v1.ResourceQuota', { spec: { hard: { pods: 'many' } } })).toThrow('quantities must match')
  expect(() => formed('io.k8s.api.core.v1.Node', { status: { conditions: [{ lastHeartbeatTime: 'yesterday' }] } })).toThrow(
    'Invalid time value',
  )
})
