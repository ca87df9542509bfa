import { describe, expect, test } from 'vitest'
import { toV1, toV2 } from './conversion.ts'

const prefix = 'autoscaling.alpha.kubernetes.io/'
const metric = { name: 'queue', selector: { matchLabels: { a: 'b' } } }
const describedObject = { kind: 'Service', name: 'web', apiVersion: 'v1' }

const autoscaler = (spec: object, status: object = {}, metadata: object = {}): any => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'a', ...metadata },
  spec: { scaleTargetRef: { kind: 'Deployment', name: 'web' }, maxReplicas: 3, ...spec },
  status: { desiredReplicas: 0, ...status },
})

describe('conversion from v2 to v1 and back', () => {
  test.each([
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
    { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } },
    {
      type: 'ContainerResource',
      containerResource: { name: 'cpu', container: 'main', target: { type: 'Utilization', averageUtilization: 50 } },
    },
    { type: 'Pods', pods: { metric, target: { type: 'AverageValue', averageValue: '10' } } },
    { type: 'Object', object: { describedObject, metric, target: { type: 'Value', value: '10' } } },
    { type: 'Object', object: { describedObject, metric, target: { type: 'AverageValue', averageValue: '10' } } },
    { type: 'External', external: { metric, target: { type: 'Value', value: '10' } } },
    { type: 'External', external: { metric, target: { type: 'AverageValue', averageValue: '10' } } },
  ])('preserves a metric of type $type', (metricSpec) => {
    const object = autoscaler({ metrics: [metricSpec] })
    toV1(object)
    expect(object.spec.metrics).toBeUndefined()
    toV2(object)
    expect(object).toEqual(autoscaler({ metrics: [metricSpec] }))
  })

  test('writes fields that only v2 has into annotations, and reads them from there', () => {
    const behavior = {
      scaleDown: {
        stabilizationWindowSeconds: 5,
        selectPolicy: 'Max',
        policies: [{ type: 'Pods', value: 1, periodSeconds: 15 }],
      },
    }
    const conditions = [{ type: 'AbleToScale', status: 'True', lastTransitionTime: null }]
    const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }
    const newAutoscaler = () => autoscaler({ metrics: [cpu], behavior }, { conditions }, { annotations: { mine: 'x' } })
    const object = newAutoscaler()
    toV1(object)
    expect(object.spec.targetCPUUtilizationPercentage).toBe(50)
    expect(Object.keys(object.metadata.annotations)).toEqual(['mine', `${prefix}conditions`, `${prefix}behavior`])
    toV2(object)
    expect(object).toEqual(newAutoscaler())
  })
})

test.each(['{', 'null', '7', '{}', '[null]', '[{"type":"Pods","pods":{}}]', '[{"type":"Resource","resource":7}]'])(
  'an annotation with content %s is removed, and does not prevent the conversion',
  (text) => {
    const annotations = Object.fromEntries(
      ['metrics', 'current-metrics', 'conditions', 'behavior'].map((name) => [prefix + name, text]),
    )
    const object = autoscaler({ targetCPUUtilizationPercentage: 50 }, {}, { annotations })
    toV2(object)
    expect(object.spec.metrics).toContainEqual({
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
    })
    expect(object.metadata.annotations).toBeUndefined()
    toV1(object)
  },
)
