import { expect, test } from 'vitest'
import { goForm } from './go-form.ts'

const normalized = (component: string, object: object) => {
  const draft = structuredClone(object) as { [field: string]: unknown }
  goForm(component, draft)
  return draft
}

test.each<[string, string, object, object]>([
  [
    "omits zero values that Go's encoder omits",
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
    'keeps zero values of pointers, and null',
    'io.k8s.api.core.v1.Pod',
    { spec: { automountServiceAccountToken: false, priority: 0, containers: null } },
    { spec: { automountServiceAccountToken: false, priority: 0, containers: null } },
  ],
  [
    'converts quantities and times to their canonical form, and sets absent times of conditions to null',
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
])('goForm %s', (_, component, object, expected) => expect(normalized(component, object)).toEqual(expected))

test('goForm does not change an object that it has normalized before', () => {
  const once = normalized('io.k8s.api.core.v1.Node', { spec: { podCIDR: '' }, status: { capacity: { cpu: '1000m' } } })
  expect(normalized('io.k8s.api.core.v1.Node', once)).toEqual(once)
  expect(once).toMatchObject({ spec: {}, status: { capacity: { cpu: '1' } } })
})

test('goForm rejects invalid quantities and times', () => {
  expect(() => normalized('io.k8s.api.core.v1.ResourceQuota', { spec: { hard: { pods: 'many' } } })).toThrow(
    'quantities must match',
  )
  expect(() => normalized('io.k8s.api.core.v1.Node', { status: { conditions: [{ lastHeartbeatTime: 'yesterday' }] } })).toThrow(
    'Invalid time value',
  )
})
