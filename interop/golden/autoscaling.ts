/** Scenarios of HorizontalPodAutoscalers in the API versions v1 and v2. */
import { columnsOf, get, mergePatch, post, put, remove, type Scenario, strategicPatch, variants } from './step.ts'

const v1 = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers'
const v2 = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers'
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
const old = {
  apiVersion: 'autoscaling/v1',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'old' },
  spec: { scaleTargetRef, maxReplicas: 5 },
}
const min = { ...old, apiVersion: 'autoscaling/v2', metadata: { name: 'min' } }
const resource = (name: string, target: object) => ({ type: 'Resource', resource: { name, target } })
const utilization = (averageUtilization: number) => ({ type: 'Utilization', averageUtilization })

export const scenarios: readonly Scenario[] = [
  {
    name: 'autoscalers',
    steps: [
      post(v1, old),
      post(v1, { ...old, metadata: { name: 'half' }, spec: { ...old.spec, minReplicas: 2, targetCPUUtilizationPercentage: 50 } }),
      post(v2, min),
      post(v2, {
        ...min,
        metadata: { name: 'max' },
        spec: {
          ...min.spec,
          minReplicas: 2,
          metrics: [
            resource('memory', { type: 'AverageValue', averageValue: '1000Mi' }),
            resource('cpu', utilization(60)),
            {
              type: 'ContainerResource',
              containerResource: { name: 'cpu', container: 'c', target: utilization(70) },
            },
            { type: 'Pods', pods: { metric: { name: 'packets' }, target: { type: 'AverageValue', averageValue: '1k' } } },
            {
              type: 'Object',
              object: {
                metric: { name: 'requests' },
                describedObject: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'main' },
                target: { type: 'Value', value: '10k' },
              },
            },
            {
              type: 'External',
              external: {
                metric: { name: 'queue', selector: { matchLabels: { a: 'b' } } },
                target: { type: 'AverageValue', averageValue: '30' },
              },
            },
          ],
          behavior: {
            scaleDown: { stabilizationWindowSeconds: 60, policies: [{ type: 'Pods', value: 4, periodSeconds: 60 }] },
            scaleUp: { selectPolicy: 'Disabled' },
          },
        },
      }),
      get(`${v1}/max`),
      get(`${v2}/half`),
      get(`${v2}/old`),
      ...variants(v2, min, [
        { spec: null },
        { spec: { scaleTargetRef: null } },
        { spec: { scaleTargetRef: { kind: 'a/b', name: 'a%' } } },
        { spec: { maxReplicas: 0 } },
        { spec: { minReplicas: 0 } },
        { spec: { minReplicas: 0, metrics: [resource('cpu', utilization(50))] } },
        { spec: { minReplicas: 6 } },
        { spec: { metrics: [{ type: 'Sometimes' }] } },
        { spec: { metrics: [{ type: 'Resource' }] } },
        { spec: { metrics: [resource('', utilization(50))] } },
        { spec: { metrics: [resource('cpu', utilization(0))] } },
        { spec: { metrics: [resource('cpu', { type: 'Utilization' })] } },
        { spec: { metrics: [resource('cpu', { type: 'AverageValue', averageValue: '0' })] } },
        { spec: { metrics: [resource('cpu', { type: 'Sometimes', averageValue: '1' })] } },
        { spec: { metrics: [{ type: 'Pods', pods: { metric: {}, target: { type: 'AverageValue' } } }] } },
        {
          spec: {
            metrics: [
              { type: 'External', external: { metric: { name: 'a' }, target: { type: 'Value', value: '1', averageValue: '1' } } },
            ],
          },
        },
        { spec: { metrics: [{ type: 'Object', object: { metric: { name: 'a' }, describedObject: {}, target: {} } }] } },
        { spec: { metrics: [{ ...resource('cpu', utilization(50)), pods: { metric: { name: 'a' }, target: {} } }] } },
        { spec: { behavior: { scaleUp: { stabilizationWindowSeconds: 4000, selectPolicy: 'Sometimes', policies: [] } } } },
        { spec: { behavior: { scaleDown: { policies: [{ type: 'Sometimes', value: 0, periodSeconds: 0 }] } } } },
        { spec: { behavior: { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 1801 }] } } } },
      ]),
      ...variants(v1, old, [{ spec: { targetCPUUtilizationPercentage: 0 } }, { spec: { minReplicas: 7 } }]),
      mergePatch(`${v1}/half`, { spec: { targetCPUUtilizationPercentage: 70 } }),
      get(`${v2}/half`),
      mergePatch(`${v2}/min`, { spec: { maxReplicas: 9 } }),
      strategicPatch(`${v1}/max`, { metadata: { labels: { a: 'b' } } }),
      get(`${v2}/max`),
      put(`${v1}/max`, { ...old, metadata: { name: 'max' } }),
      mergePatch(`${v2}/min/status`, {
        status: {
          observedGeneration: 1,
          currentReplicas: 3,
          desiredReplicas: 4,
          currentMetrics: [
            { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 40, averageValue: '10m' } } },
          ],
          conditions: [{ type: 'AbleToScale', status: 'True' }],
        },
      }),
      get(`${v1}/min`),
      mergePatch(`${v2}/min/status`, { status: { currentReplicas: -1, desiredReplicas: -1 } }),
      columnsOf(v2),
      columnsOf(v1),
      remove(`${v1}/min`),
    ],
  },
]
