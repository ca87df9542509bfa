/** Scenarios of PodDisruptionBudgets, and of evictions of pods with and without a budget. */
import { columnsOf, mergePatch, post, remove, type Scenario, variants } from './step.ts'

const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'min' },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
}
const pods = '/api/v1/namespaces/default/pods'
const pod = (name: string, labels: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: {
    nodeName: 'n',
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [{ name: 'c', image: 'i' }],
  },
})
const evict = (name: string, fields: object = {}) =>
  post(`${pods}/${name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: 'default' },
    ...fields,
  })
const running = {
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [] },
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'budgets',
    steps: [
      post(budgets, budget),
      post(budgets, {
        ...budget,
        metadata: { name: 'max' },
        spec: {
          maxUnavailable: '25%',
          unhealthyPodEvictionPolicy: 'AlwaysAllow',
          selector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
        },
      }),
      post(budgets, { ...budget, metadata: { name: 'empty' }, spec: {} }),
      ...variants(budgets, budget, [
        { spec: { maxUnavailable: 1 } },
        { spec: { minAvailable: -1 } },
        { spec: { minAvailable: 'many' } },
        { spec: { minAvailable: '101%' } },
        { spec: { minAvailable: null, maxUnavailable: '101%' } },
        { spec: { unhealthyPodEvictionPolicy: 'Sometimes' } },
        { spec: { selector: { matchLabels: { app: 'not valid!' } } } },
        { spec: { selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } } },
      ]),
      mergePatch(`${budgets}/min`, { spec: { minAvailable: 2 } }),
      mergePatch(`${budgets}/min`, { spec: { selector: { matchLabels: { app: 'other' } } } }),
      mergePatch(`${budgets}/min/status`, {
        status: { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 },
      }),
      mergePatch(`${budgets}/min/status`, {
        status: { observedGeneration: 3, disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3 },
      }),
      columnsOf(budgets),
      remove(`${budgets}/min`),
      remove(`${budgets}/max`),
      remove(`${budgets}/empty`),
    ],
  },
  {
    name: 'evictions',
    steps: [
      {
        prepare: { method: 'POST', path: '/api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'default' } } },
      },
      { prepare: post(pods, pod('a', { app: 'web' })).request! },
      { prepare: post(pods, pod('b', { app: 'web' })).request! },
      { prepare: post(pods, pod('c', { app: 'web' })).request! },
      { prepare: post(pods, pod('d', { app: 'web' })).request! },
      { prepare: post(pods, pod('free', { app: 'free' })).request! },
      { prepare: mergePatch(`${pods}/a/status`, running).request! },
      { prepare: mergePatch(`${pods}/b/status`, running).request! },
      { prepare: mergePatch(`${pods}/d/status`, { status: { phase: 'Running' } }).request! },
      post(budgets, budget),
      evict('free'),
      evict('none'),
      evict('c'),
      evict('a'),
      mergePatch(`${budgets}/min/status`, {
        status: { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2, expectedPods: 3 },
      }),
      evict('a'),
      evict('d'),
      mergePatch(`${budgets}/min/status`, {
        status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3 },
      }),
      evict('a', { deleteOptions: { dryRun: ['All'] } }),
      evict('a', { deleteOptions: { preconditions: { uid: 'other' } } }),
      evict('a'),
      { request: { method: 'GET', path: `${budgets}/min` } },
      evict('b'),
      post(budgets, { ...budget, metadata: { name: 'second' } }),
      evict('b'),
      evict('b', { metadata: { name: 'other', namespace: 'default' } }),
      evict('b', { apiVersion: 'policy/v1beta1' }),
      evict('b', { kind: 'Pod' }),
    ],
  },
]
